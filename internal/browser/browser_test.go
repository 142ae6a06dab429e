// SPDX-License-Identifier: Apache-2.0

// Package browser looks at the pages of the service and of the lessons in chromium. Its tests take the flag -browser,
// without which they skip, and -look DIR, which keeps pictures.
package browser_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	with = flag.Bool("browser", false, "look at the page with chromium")
	look = flag.String("look", "", "keep screenshots in this `directory`")
)

// Tab is a page in a browser of its own.
type Tab struct {
	testing.TB
	Context context.Context // for chromedp
}

// Need skips a test without the flag -browser, or where chromium is not installed. It returns the
// program.
func Need(t testing.TB) (program string) {
	t.Helper()
	if !*with {
		t.Skip("pages are tested with -browser (see .ci/browser)")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	return program
}

// Open opens an address. Whatever the page complains about fails the test, and so does a
// request for an address that begins with none of own, and is not data.
func Open(t testing.TB, address string, own ...string) *Tab {
	t.Helper()
	program := Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx, chromedp.WithListener(func(event any) { listen(t, own, event) }),
		chromedp.WithAllocatorOptions(
			chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 1400),
			chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true)))
	t.Cleanup(stop)
	tab := &Tab{t, ctx}
	tab.Do(chromedp.Navigate(address))
	return tab
}

// listen hears what the page complains about and whom it asks.
func listen(t testing.TB, own []string, event any) {
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
		url := e.Request.URL
		if !slices.ContainsFunc(append(own, "data:"), func(prefix string) bool { return strings.HasPrefix(url, prefix) }) {
			t.Errorf("the page asked for %s", url)
		}
	}
}

// Do does things in the page.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(t.Context, actions...); err != nil {
		t.Fatal(err)
	}
}

// Await waits until an expression is true in the page.
func (t *Tab) Await(expression string) {
	t.Helper()
	if _, err := chromedp.Run(t.Context, chromedp.Poll[bool](expression,
		chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		t.Fatalf("waited for %s: %v", expression, err)
	}
}

// Ask evaluates an expression in the page.
func Ask[T any](t *Tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(t.Context, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Scheme chooses light or dark.
func (t *Tab) Scheme(name string) {
	t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	if _, err := chromedp.Call(t.Context, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
}

// TooWide is the elements that are cut at their right side, or cut what is inside, unless
// they say that they scroll (an id of one that does); by tag, id and class.
func (t *Tab) TooWide(scrolls ...string) []string {
	t.Helper()
	cut := Ask[[]string](t, `[...document.querySelectorAll("body, body *")].filter(e => {
		const style = getComputedStyle(e), box = e.getBoundingClientRect();
		return box.width > 1 && style.visibility !== "hidden" && style.position !== "absolute" &&
			(box.right > innerWidth + 1 || style.overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1);
	}).map(e => e.tagName.toLowerCase() + (e.id && "#" + e.id) + (e.className && "." + e.className))`)
	return slices.DeleteFunc(cut, func(name string) bool { return slices.Contains(scrolls, name) })
}

// Picture keeps a screenshot of the whole page, if asked.
func (t *Tab) Picture(name string) {
	t.Helper()
	if *look == "" {
		return
	}
	png, err := chromedp.Run(t.Context, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*look, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
