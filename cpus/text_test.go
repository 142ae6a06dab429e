package cpus

import (
	"slices"
	"testing"

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
	for _, bad := range []string{"", "0", "-1", "x", "busy", "busy=", "busy=-1", "lazy=2", "isolated=2", "offline=1", "8193", "99999999999999999999", "busy=8192,idle=1", "8,8", "busy=1,"} {
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
