// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
)

// TestWindow compares the text with a model that forgets nothing: what a CPU
// may fetch is the version in force at its last synchronisation and all since.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const sites = 3
		text := newText(sites, func(i int) isa.Text { return isa.Text(i) }, 0)
		history := make([][]Version, sites)
		for i := range history {
			history[i] = []Version{{1, isa.Text(i)}}
		}
		seq, synced := Seq(1), []Seq{1, 1}
		for range rapid.IntRange(0, 60).Draw(t, "ops") {
			switch site := rapid.IntRange(0, sites-1).Draw(t, "site"); rapid.IntRange(0, 2).Draw(t, "op") {
			case 0:
				off, n := rapid.IntRange(0, 7).Draw(t, "off"), 0
				n = rapid.IntRange(1, 8-off).Draw(t, "n")
				x := isa.Text(rapid.Uint64().Draw(t, "text"))
				text.Store(site, off, n, x)
				seq++
				last := history[site][len(history[site])-1].Text
				b := last.Bytes(8)
				copy(b[off:off+n], x.Bytes(8))
				history[site] = append(history[site], Version{seq, isa.TextOf(b...)})
			case 1:
				synced[rapid.IntRange(0, 1).Draw(t, "cpu")] = text.Seq()
				text.oldest.Store(uint64(slices.Min(synced)))
			case 2:
				for _, s := range synced {
					got, _ := text.Window(site, s, nil)
					if want := windowOf(history[site], s); !slices.Equal(got, want) {
						t.Fatalf("site %d synced %d: window %v, want %v", site, s, got, want)
					}
				}
			}
		}
		if text.Seq() != seq {
			t.Fatalf("seq %d, want %d", text.Seq(), seq)
		}
	})
}

// windowOf is the slow twin of Window.
func windowOf(history []Version, synced Seq) (out []Version) {
	for _, v := range slices.Backward(history) {
		out = append(out, v)
		if v.Seq <= synced {
			break
		}
	}
	return out
}

// TestForget: versions that no CPU can fetch are gone after the next store.
func TestForget(t *testing.T) {
	text := newText(1, func(int) isa.Text { return 0 }, 0)
	for i := range 1000 {
		text.Store(0, 0, 8, isa.Text(i))
		text.oldest.Store(uint64(text.Seq()))
		if n := text.versions(0); n > 3 {
			t.Fatalf("after %d stores, each synchronised: %d versions are held", i+1, n)
		}
	}
	text.oldest.Store(0)
}

// TestSettle: a promise is about the text that is wanted, arrived or not.
func TestSettle(t *testing.T) {
	text := newText(1, func(int) isa.Text { return 1 }, 0)
	text.Store(0, 0, 8, 2)
	text.Settle(0, 2)
	if got := text.Settled(0); got != 2 {
		t.Errorf("promise about the newest version: %d, want its position 2", got)
	}
	text.Settle(0, 3) // its store is still on the way
	if got := text.Settled(0); got != 3 {
		t.Errorf("promise about a store to come: %d, want the next position 3", got)
	}
	text.Unsettle(0)
	if got := text.Settled(0).Seq(); got != 0 {
		t.Errorf("promise taken back: %d", got)
	}
	first := text.Settled(0)
	text.Settle(0, 2)
	second := text.Settled(0)
	text.Unsettle(0)
	text.Settle(0, 2)
	if again := text.Settled(0); again.Seq() != second.Seq() || again == second || again == first {
		t.Errorf("promise taken back and made again: %x after %x", again, second)
	}
}

// TestSiteTakesHalfALine: two sites share a cache line, and none lies in two.
func TestSiteTakesHalfALine(t *testing.T) {
	text := newText(3, func(int) isa.Text { return 0 }, 0)
	if size, at := unsafe.Sizeof(text.sites[0]), uintptr(unsafe.Pointer(&text.sites[0])); size != 32 || at%32 != 0 {
		t.Errorf("a site takes %d bytes, from %d behind a border of 32 on", size, at%32)
	}
}

// told is the text that tests store at a position.
func told(seq Seq) isa.Text { return isa.Text(seq) * 0x9e3779b97f4a7c15 }

// TestUpdateAmidWindow puts a whole update, with its promise, between any two of the
// accesses that make a window. No version has another one's text. The promise is
// never about a store that the window lacks, or a CPU would be blamed for what nobody
// had promised it: it is read before the versions.
func TestUpdateAmidWindow(t *testing.T) {
	for _, synced := range []Seq{2, 1} { // a window of one version, and of two
		points := 1
		for at := 0; at < points; at++ {
			text := newText(1, func(int) isa.Text { return told(1) }, 0)
			text.Store(0, 0, 8, told(2))
			var between func()
			calls := 0
			between = func() {
				if calls++; calls != at+1 {
					return
				}
				text.between = nil
				text.Store(0, 0, 8, told(3))
				text.Settle(0, told(3))
				text.between = between
			}
			text.between = between
			window, promise := text.Window(0, synced, nil)
			text.between = nil
			points = calls
			for _, v := range window {
				if v.Text != told(v.Seq) {
					t.Errorf("synchronised at %d, update behind access %d: version %v", synced, at+1, v)
				}
			}
			if last := window[len(window)-1].Seq; last != synced || promise.Seq() > window[0].Seq {
				t.Errorf("synchronised at %d, update behind access %d: from %d to %d, the promise is about %d",
					synced, at+1, last, window[0].Seq, promise.Seq())
			}
		}
		if points < 2 {
			t.Fatalf("a window is made of %d accesses, want the promise and the versions at least", points)
		}
	}
}

// TestReadersAmidStore reads at every point of a store: whole versions, the old one
// or the new one, and nobody who has seen the new one sees the old one after it.
func TestReadersAmidStore(t *testing.T) {
	for _, stores := range []Seq{1, 2, 3} { // a site that was never stored to is another case
		text := newText(1, func(int) isa.Text { return told(1) }, 0)
		for text.Seq() < stores {
			text.Store(0, 0, 8, told(text.Seq()+1))
		}
		points, newest := 0, stores
		var look func()
		look = func() {
			points++
			text.between = nil
			lagging, _ := text.Window(0, max(stores-1, 1), nil)
			current, _ := text.Window(0, text.Seq(), nil)
			for _, v := range append(append(lagging, current[0], text.last(0)), text.last(0)) {
				if v.Text != told(v.Seq) || v.Seq < stores-1 || v.Seq > stores+1 {
					t.Errorf("point %d of store %d: version %v", points, stores, v)
				}
			}
			if text.Seq() > current[0].Seq {
				t.Errorf("point %d of store %d: position %d is published, the window ends at %d", points, stores, text.Seq(),
					current[0].Seq)
			}
			for _, seq := range []Seq{lagging[0].Seq, current[0].Seq, text.last(0).Seq, lagging[0].Seq} {
				if seq < newest {
					t.Errorf("point %d of store %d: %d, after %d was seen", points, stores, seq, newest)
				}
				newest = max(newest, seq)
			}
			text.between = look
		}
		text.between = look
		text.Store(0, 0, 8, told(stores+1))
		if text.between = nil; points < 3 {
			t.Fatalf("a store has %d points", points)
		}
	}
}

// TestReadersSeeWholeVersions: while a site changes its readers wait for nobody, and
// no text comes with another one's position; no reader goes back.
func TestReadersSeeWholeVersions(t *testing.T) {
	const stores = 20000
	text := newText(1, func(int) isa.Text { return told(1) }, 0)
	var (
		wait    sync.WaitGroup
		synceds [2]atomic.Uint64
	)
	for reader := range synceds {
		synceds[reader].Store(1)
		wait.Go(func() {
			var buf []Version
			for newest, synced := Seq(1), Seq(1); newest <= stores; {
				now := text.last(0)
				if buf, _ = text.Window(0, synced, buf); len(buf) == 0 || now.Text != told(now.Seq) || now.Seq < newest {
					t.Errorf("at %d: version %v, window %v", newest, now, buf)
					return
				}
				for i, v := range buf {
					if v.Text != told(v.Seq) || i > 0 && buf[i-1].Seq != v.Seq+1 || v.Seq <= synced != (i == len(buf)-1) {
						t.Errorf("synchronised at %d: window %v", synced, buf)
						return
					}
				}
				if newest = buf[0].Seq; newest < now.Seq {
					t.Errorf("the window ends at %d, after %d was seen", newest, now.Seq)
					return
				}
				synced = max(synced, text.Seq()-Seq(reader)) // one keeps up, one lags
				synceds[reader].Store(uint64(synced))
				runtime.Gosched()
			}
		})
	}
	for range stores {
		seq := text.Seq() + 1
		text.Store(0, 0, 8, told(seq))
		text.oldest.Store(min(synceds[0].Load(), synceds[1].Load()))
		if seq%16 == 0 {
			runtime.Gosched()
		}
	}
	wait.Wait()
}

func TestRandomChoosesInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRandom(rapid.Uint64().Draw(t, "seed"), 0)
		what := Choice(rapid.IntRange(0, int(ChooseDrain)).Draw(t, "what"))
		n := rapid.IntRange(1, 1<<20).Draw(t, "n")
		for range 50 {
			if x := r.Choose(what, n); x < 0 || x >= n {
				t.Fatalf("Choose(%d, %d) = %d", what, n, x)
			}
		}
	})
}

// TestSitesAreSkewed: few sites take most calls, and every site is called.
func TestSitesAreSkewed(t *testing.T) {
	const n, calls = 1000, 400_000
	r := NewRandom(1, 1)
	count := make([]int, n)
	for range calls {
		count[r.Choose(ChooseSite, n)]++
	}
	slices.Sort(count)
	if count[0] == 0 {
		t.Error("some site is never called")
	}
	top := 0
	for _, c := range count[n-n/20:] {
		top += c
	}
	// Log-uniform over 10 levels: the first 1/32 is all of 5 levels and parts
	// of others, so that a twentieth of the sites takes over half of the calls.
	if top < calls/2 {
		t.Errorf("the hottest twentieth takes %d of %d calls", top, calls)
	}
}

func TestParseRoles(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"8", "8"}, {"1", "1"}, {"busy=3", "3"},
		{"busy=6,isolated=2", "busy=6,isolated=2"},
		{"busy=4,idle=2,irqsoff=1,offline=1", "busy=4,idle=2,irqsoff=1,offline=1"},
		{"busy=1,idle=0,busy=1", "2"},
	} {
		roles, err := ParseRoles(c.spec)
		if err != nil || FormatRoles(roles) != c.want {
			t.Errorf("%q: %q, %v; want %q", c.spec, FormatRoles(roles), err, c.want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "x", "busy", "busy=", "busy=-1", "lazy=2", "isolated=2", "offline=1",
		"8193", "99999999999999999999", "busy=8192,idle=1", "8,8", "busy=1,"} {
		if roles, err := ParseRoles(bad); err == nil {
			t.Errorf("%q: accepted as %q", bad, FormatRoles(roles))
		}
	}
}

func FuzzParseRoles(f *testing.F) {
	f.Add("8")
	f.Add("busy=6,isolated=2")
	f.Fuzz(func(t *testing.T, s string) {
		roles, err := ParseRoles(s)
		if err != nil {
			return
		}
		again, err := ParseRoles(FormatRoles(roles))
		if err != nil || !slices.Equal(again, roles) {
			t.Errorf("%q: %v prints as %q, which reads as %v, %v", s, roles, FormatRoles(roles), again, err)
		}
	})
}

// versions counts the versions held for a site, for tests of forgetting.
func (t *Text) versions(site int) int {
	n := 0
	for v := t.history[site].Load(); v != nil; v = v.older.Load() {
		n++
	}
	return max(n, 1)
}
