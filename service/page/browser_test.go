// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	withBrowser = flag.Bool("browser", false, "look at the page with chromium")
	look        = flag.String("look", "", "keep screenshots in this directory")
)

// tab is the page in a browser.
type tab struct {
	*testing.T
	ctx context.Context
}

// browse opens a server's page and waits until it has something to show.
func browse(t *testing.T, server string) *tab {
	t.Helper()
	tab := open(t, server)
	tab.do(chromedp.WaitVisible("#interrupts tbody tr"))
	return tab
}

// open opens a server's page in a new browser. Whatever the page complains about
// fails the test, and so does a request to anybody but that server.
func open(t *testing.T, server string) *tab {
	t.Helper()
	if !*withBrowser {
		t.Skip("without -browser (see .ci/browser) nobody looks at the page")
	}
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: nobody looks at the page")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx, chromedp.WithListener(func(event any) { listen(t, server, event) }),
		chromedp.WithAllocatorOptions(
			chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 1400),
			chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true)))
	t.Cleanup(stop)
	tab := &tab{t, ctx}
	tab.do(chromedp.Navigate(server))
	return tab
}

// listen hears what the page complains about and whom it asks.
func listen(t *testing.T, server string, event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.Errorf("the page threw %s, line %d: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.LineNumber,
			e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		t.Errorf("the page complained: %v", e.Args)
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork { // a request may be refused; whom it asked is looked at below
			t.Errorf("the browser complained: %s", e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, server+"/") && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "blob:"+server) {
			t.Errorf("the page asked for %s", u)
		}
	}
}

// do does things in the page.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(t.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// await waits until an expression is true in the page.
func (t *tab) await(expression string) {
	t.Helper()
	if _, err := chromedp.Run(t.ctx, chromedp.Poll[bool](expression,
		chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		t.Fatalf("waited for %s: %v", expression, err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](t *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(t.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// scheme chooses light or dark.
func (t *tab) scheme(name string) {
	t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	if _, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
}

// picture keeps a screenshot of the whole page, if asked.
func (t *tab) picture(name string) {
	t.Helper()
	if *look == "" {
		return
	}
	png, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*look, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestManyEvents: with 256 CPUs and 10,000 events a second the picture goes on
// moving, and all events are read.
func TestManyEvents(t *testing.T) {
	tab := browse(t, simulated(t, 256, 10000).URL)
	time.Sleep(2 * time.Second)
	type measured struct{ Frames, Events, Left, Longest, CPUs float64 }
	seen := ask[measured](tab, `new Promise(done => {
		const begun = performance.now(), events = tracks.seen, left = tracks.left;
		let last = begun, frames = 0, longest = 0;
		requestAnimationFrame(function frame(now) {
			frames++;
			longest = Math.max(longest, now - last);
			last = now;
			if (now - begun < 5000) requestAnimationFrame(frame);
			else done({Frames: frames / 5, Events: (tracks.seen - events) / 5, Left: tracks.left - left, Longest: longest, CPUs: tracks.cpus.length});
		});
	})`)
	t.Logf("%.1f frames a second, the longest took %.0f ms; %.0f events a second, %.0f left out", seen.Frames,
		seen.Longest, seen.Events, seen.Left)
	if seen.CPUs != 256 || seen.Frames < 20 || seen.Events < 9000 {
		t.Errorf("%+v: want 256 CPUs, at least 20 frames and 9000 events a second", seen)
	}
	tab.picture("many-light")
	tab.scheme("dark")
	tab.picture("many-dark")
}

// TestNamed: whatever can be operated or read as a whole has a name for those who
// do not see it, and CPUs can be chosen without a mouse.
func TestNamed(t *testing.T) {
	tab := browse(t, simulated(t, 8, 100).URL)
	tree, err := chromedp.Call(tab.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role, name := strings.Trim(string(node.Role.Value), `"`), ""
		if node.Name != nil {
			name = strings.Trim(string(node.Name.Value), `"`)
		}
		switch role {
		case "button", "textbox", "combobox", "radio", "slider", "region", "image", "link", "group", "heading":
			if seen[role]++; name == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for role, least := range map[string]int{"button": 4, "textbox": 3, "combobox": 2, "radio": 2, "slider": 1, "region": 9,
		"heading": 7} {
		if seen[role] < least {
			t.Errorf("%d of role %s, want %d", seen[role], role, least)
		}
	}
	tab.do(chromedp.Focus("#canvas"), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowUp))
	if got := ask[string](tab,
		`$("canvas").getAttribute("aria-valuetext")`); got != "CPU 6, idle, online: interrupts: 6 static_key, 504 sync; "+
		"72 rounds sent, 17 traps." {
		t.Errorf("chosen: %q", got)
	}
	tab.picture("few-light")
	tab.do(chromedp.EmulateViewport(400, 900))
	time.Sleep(2 * time.Second)
	if over := ask[int](tab, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("on a narrow screen the page is %d pixels too wide", over)
	}
	tab.picture("narrow")
}
