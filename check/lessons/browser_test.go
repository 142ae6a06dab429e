// SPDX-License-Identifier: Apache-2.0

package lessons

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/check/explore"
)

var (
	withBrowser = flag.Bool("browser", false, "look at the page with chromium")
	look        = flag.String("look", "", "keep screenshots in this directory")
)

// open opens a page in a new browser. Whatever it complains about fails the test, and so
// does asking anybody for anything.
func open(t *testing.T, file string) context.Context {
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
	ctx, stop := chromedp.NewContext(ctx, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page threw %s: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *log.EventEntryAdded:
			t.Errorf("the browser complained: %s", e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
				t.Errorf("the page asked for %s", u)
			}
		}
	}), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true)))
	t.Cleanup(stop)
	do(t, ctx, chromedp.Navigate("file://"+file))
	return ctx
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

func told[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *look == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*look, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// shown is what a stepper shows, read from the page.
type shown struct {
	Now, At string
	Sites   []string
	Fetch   []string
	Broken  bool
}

const read = `(() => {
	const v = document.querySelectorAll(".stepper")[%d];
	const bytes = e => [...e.querySelectorAll(".text")].map(t => [...t.children].map(b => b.textContent).join(" ")).join(" <- ");
	return {
		Now: v.querySelector(".now").textContent, At: v.querySelector(".at").textContent,
		Sites: [...v.querySelectorAll(".site")].map(s => bytes(s.querySelector(".row"))),
		Fetch: [...v.querySelectorAll(".site")].flatMap(s => [...s.querySelectorAll(".row")].slice(1).map(bytes)),
		Broken: !v.querySelector(".broken").hidden,
	};
})()`

// must is what it must show after step n, from the trace.
func must(t *explore.Trace, n int) (m shown) {
	s := t.Steps[n]
	m.Now, m.At = s.Who+" "+s.What, fmt.Sprintf("step %d of %d", n+1, len(t.Steps))
	for _, site := range s.Sites {
		m.Sites = append(m.Sites, site.Bytes)
		for cpu, texts := range site.Fetch {
			if s.CPUs[cpu] != "patching" {
				m.Fetch = append(m.Fetch, strings.Join(texts, " <- "))
			}
		}
	}
	m.Broken = n == len(t.Steps)-1
	return m
}

// TestStepping steps every counterexample of the lessons forwards and backwards by keys,
// and compares what is shown with the trace.
func TestStepping(t *testing.T) {
	p, err := Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "lessons.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := open(t, file)
	at := 0
	for _, c := range p.Chapters {
		for _, c := range c.Cases {
			if c.Trace != nil {
				step(t, ctx, at, c.Trace)
				at++
			}
		}
	}
	if at != 7 {
		t.Errorf("%d counterexamples, want 7", at)
	}
	picture(t, ctx, "wide-light")
	for _, width := range []int64{390, 320} {
		do(t, ctx, chromedp.EmulateViewport(width, 844))
		if over := told[int](t, ctx, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("on a screen of %d pixels the page is %d too wide", width, over)
		}
		if small := told[int](t, ctx, `[...document.querySelectorAll("button")].filter(b => b.getBoundingClientRect().height < 40 ||
			b.getBoundingClientRect().width < 40).length`); small > 0 {
			t.Errorf("on a screen of %d pixels %d buttons are too small for a finger", width, small)
		}
		picture(t, ctx, fmt.Sprintf("narrow-%d", width))
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
	if paper := told[string](t, ctx, `getComputedStyle(document.body).backgroundColor`); paper != "rgb(20, 22, 26)" {
		t.Errorf("in the dark the page is %s", paper)
	}
	picture(t, ctx, "wide-dark")
}

// step steps one counterexample there and back.
func step(t *testing.T, ctx context.Context, at int, trace *explore.Trace) {
	t.Helper()
	compare := func(n int) {
		t.Helper()
		got, want := told[shown](t, ctx, fmt.Sprintf(read, at)), must(trace, n)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("counterexample %d (-want +got): %s", at, diff)
		}
	}
	told[bool](t, ctx, fmt.Sprintf(`(document.querySelectorAll(".stepper")[%d].closest(".case").focus(), true)`, at))
	compare(0)
	last := len(trace.Steps) - 1
	for n := 1; n <= last; n++ {
		do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
		compare(n)
	}
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	compare(last)
	for n := last - 1; n >= 0; n-- {
		do(t, ctx, chromedp.KeyEvent(kb.ArrowLeft))
		compare(n)
	}
	do(t, ctx, chromedp.KeyEvent(kb.End))
	compare(last)
}
