// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browse opens a server's page and waits until it has something to show.
func browse(t *testing.T, server string) *Tab {
	t.Helper()
	tab := open(t, server)
	tab.Do(chromedp.WaitVisible("#interrupts tbody tr"))
	return tab
}

// open opens a server's page, which may ask nobody but that server.
func open(t *testing.T, server string) *Tab {
	t.Helper()
	return Open(t, server, server+"/", "blob:"+server)
}

// TestManyEvents: with 256 CPUs and 10,000 events a second the picture goes on
// moving while all events are read, however long this machine takes for so many.
func TestManyEvents(t *testing.T) {
	const events, frames = 20_000, 20
	tab := browse(t, simulated(t, 256, 10000).URL)
	type measured struct{ Frames, Events, Left, Longest, Seconds, CPUs float64 }
	seen := Ask[measured](tab, fmt.Sprintf(`new Promise(done => {
		const begun = performance.now(), events = tracks.seen, left = tracks.left;
		let last = begun, frames = 0, longest = 0;
		requestAnimationFrame(function frame(now) {
			frames++;
			longest = Math.max(longest, now - last);
			last = now;
			if (tracks.seen - events < %d) requestAnimationFrame(frame);
			else done({Frames: frames, Events: tracks.seen - events, Left: tracks.left - left, Longest: longest,
				Seconds: (now - begun) / 1000, CPUs: tracks.cpus.length});
		});
	})`, events))
	t.Logf("%.1f frames a second, the longest took %.0f ms; %.0f events a second, %.0f left out",
		seen.Frames/seen.Seconds, seen.Longest, seen.Events/seen.Seconds, seen.Left)
	if seen.CPUs != 256 || seen.Frames < frames {
		t.Errorf("%+v: want 256 CPUs, and at least %d frames while %d events were read", seen, frames, events)
	}
	tab.Picture("many-light")
	tab.Scheme("dark")
	tab.Picture("many-dark")
}

// TestNamed: whatever can be operated or read as a whole has a name for those who
// do not see it, and CPUs can be chosen without a mouse.
func TestNamed(t *testing.T) {
	tab := browse(t, simulated(t, 8, 100).URL)
	tree, err := chromedp.Call(tab.Context, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
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
	tab.Do(chromedp.Focus("#canvas"), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowUp))
	if got := Ask[string](tab,
		`$("canvas").getAttribute("aria-valuetext")`); got != "CPU 6, idle, online: interrupts: 6 static_key, 504 sync; "+
		"72 rounds sent, 17 traps." {
		t.Errorf("chosen: %q", got)
	}
	tab.Picture("few-light")
	tab.Scheme("dark")
	tab.Picture("few-dark")
}

// TestNarrow: on a telephone nothing is cut, in either scheme; what is drawn has an axis,
// and says what it is where somebody points.
func TestNarrow(t *testing.T) {
	tab := browse(t, simulated(t, 64, 100).URL)
	for _, width := range []int64{1280, 390, 320} {
		tab.Do(chromedp.EmulateViewport(width, 844))
		tab.Await(`tracks.width <= innerWidth && tracks.drawn.length > 50 && $("clients").rows.length > 2`)
		if over := Ask[int](tab, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("on a screen of %d pixels the page is %d pixels too wide", width, over)
		}
		if cut := tab.TooWide(); len(cut) > 0 {
			t.Errorf("on a screen of %d pixels these are cut: %q", width, cut)
		}
		ticks := Ask[[]string](tab, `[...$("axis").children].map(tick => tick.textContent)`)
		if len(ticks) < 4 || ticks[0] != "now" || ticks[len(ticks)-1] != "s before now" {
			t.Errorf("on a screen of %d pixels the axis has %q", width, ticks)
		}
		if on := Ask[int](tab, `(() => {
			const boxes = [...$("axis").querySelectorAll("span")].map(tick => tick.getBoundingClientRect()).sort((a, b) => a.left - b.left);
			return boxes.filter((box, i) => i && box.left < boxes[i - 1].right).length;
		})()`); on > 0 {
			t.Errorf("on a screen of %d pixels %d of the axis' figures lie on others", width, on)
		}
		tab.Picture(fmt.Sprintf("width-%d", width))
	}
}

// TestTips: whoever points at the tracks is told what is there, and at a figure what it
// counts.
func TestTips(t *testing.T) {
	tab := browse(t, simulated(t, 8, 100).URL)
	tab.Await(`tracks.drawn.length > 100`)
	said := Ask[[]string](tab, `(() => {
		const said = new Set();
		$("pause").click();
		for (let x = 105; x < tracks.width; x++) for (let y = 4; y < tracks.height; y += tracks.row / 2) {
			const event = new PointerEvent("pointermove"), at = $("canvas").getBoundingClientRect();
			Object.defineProperty(event, "offsetX", {value: x});
			Object.defineProperty(event, "offsetY", {value: y});
			$("canvas").dispatchEvent(event);
			if (!$("tip").hidden) said.add($("tip").textContent.replace(/[\d.]+( s ago| ms)/g, "T$1").replace(/\d+/g, "N"));
		}
		return [...said].sort();
	})()`)
	want := []string{
		"CPU N asked N CPUs to answer (sync), T s ago", "CPU N ran into a breakpoint, T ms, T s ago",
		"CPU N took an interrupt (sync), T ms, T s ago", "patcher on CPU N: Sync N, T ms, T s ago",
	}
	if !slices.Equal(said, want) {
		t.Errorf("the tracks say %q, want %q", said, want)
	}
	if mute := Ask[int](tab, `[...$("figures").querySelectorAll("dt")].filter(name => !name.title).length`); mute > 0 {
		t.Errorf("%d figures do not say what they count", mute)
	}
}
