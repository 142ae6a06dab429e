// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/lessons"
)

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
	Need(t)
	p, err := lessons.Page(t.Context())
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
	tab := Open(t, "file://"+file, "file:")
	at := 0
	for _, c := range p.Chapters {
		for _, c := range c.Cases {
			if c.Trace != nil {
				step(tab, at, c.Trace)
				at++
			}
		}
	}
	if at != 7 {
		t.Errorf("%d counterexamples, want 7", at)
	}
	tab.Picture("wide-light")
	for _, width := range []int64{390, 320} {
		tab.Do(chromedp.EmulateViewport(width, 844))
		if over := Ask[int](tab, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("on a screen of %d pixels the page is %d too wide", width, over)
		}
		if small := Ask[int](tab, `[...document.querySelectorAll("button")].filter(b => b.checkVisibility() &&
			(b.getBoundingClientRect().height < 40 || b.getBoundingClientRect().width < 40)).length`); small > 0 {
			t.Errorf("on a screen of %d pixels %d buttons are too small for a finger", width, small)
		}
		tab.Picture(fmt.Sprintf("narrow-%d", width))
	}
	tab.Scheme("dark")
	tab.Do(chromedp.EmulateViewport(1280, 900))
	if paper := Ask[string](tab, `getComputedStyle(document.body).backgroundColor`); paper != "rgb(20, 22, 26)" {
		t.Errorf("in the dark the page is %s", paper)
	}
	tab.Picture("wide-dark")
}

// step steps one counterexample there and back.
func step(tab *Tab, at int, trace *explore.Trace) {
	tab.Helper()
	compare := func(n int) {
		tab.Helper()
		got, want := Ask[shown](tab, fmt.Sprintf(read, at)), must(trace, n)
		if diff := cmp.Diff(want, got); diff != "" {
			tab.Fatalf("counterexample %d (-want +got): %s", at, diff)
		}
	}
	Ask[bool](tab, fmt.Sprintf(`(document.querySelectorAll(".stepper")[%d].closest(".case").focus(), true)`, at))
	compare(0)
	last := len(trace.Steps) - 1
	for n := 1; n <= last; n++ {
		tab.Do(chromedp.KeyEvent(kb.ArrowRight))
		compare(n)
	}
	tab.Do(chromedp.KeyEvent(kb.ArrowRight))
	compare(last)
	for n := last - 1; n >= 0; n-- {
		tab.Do(chromedp.KeyEvent(kb.ArrowLeft))
		compare(n)
	}
	tab.Do(chromedp.KeyEvent(kb.End))
	compare(last)
}
