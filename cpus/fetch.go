package cpus

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Fetch says how finely the versions in a CPU's window mix in one fetch.
type Fetch uint8

// The fetch models, from the weakest. Borders between what may mix are the
// architecture's (isa.Arch.Grain): bytes on x86_64, aligned words on arm64 and,
// with Ziccif, on riscv64.
const (
	// Weak: every grain may come from any version, forward or back. This is
	// Intel's worst case (SDM vol. 3A, "Handling Self- and Cross-Modifying
	// Code") and contains every machine we know.
	Weak Fetch = iota
	// Ordered: stores become visible one after the other; only the grains of
	// one store in flight can mix, with the version it replaces.
	Ordered
	// Atomic: a fetch sees one whole version.
	Atomic
)

var fetchNames = []string{"weak", "ordered", "atomic"}

// FetchNames lists the models as --fetch spells them.
func FetchNames() []string { return fetchNames }

func (f Fetch) String() string { return fetchNames[f] }

// ParseFetch reads a model's name.
func ParseFetch(s string) (Fetch, error) {
	for i, n := range fetchNames {
		if n == s {
			return Fetch(i), nil
		}
	}
	return 0, fmt.Errorf("fetch model %q: not one of %v", s, fetchNames)
}

// mix is one fetch of n bytes at off: window, newest first, holds the versions
// that may be seen; grain is the number of bytes that never mix. What makes no
// difference is not asked for: versions that agree count once, and a breakpoint
// is one whatever follows.
func (c *Code) mix(window []Version, off, n, grain int, ch Chooser) isa.Text {
	if len(window) == 1 {
		return window[0].Text.Slice(off, n)
	}
	if c.Fetch == Atomic || grain >= n {
		return window[among(window, off, n, ch)].Text.Slice(off, n)
	}
	base := 0
	if c.Fetch == Ordered {
		base = ch.Choose(ChooseVersion, len(window)) // also among equal ones: the next stores differ
	}
	var t isa.Text
	for at := 0; at < n; at += grain {
		w := min(grain, n-at)
		from := base
		switch {
		case c.Fetch == Weak:
			from = among(window, off+at, w, ch)
		case base > 0 && window[base].Text.Slice(off+at, w) != window[base-1].Text.Slice(off+at, w):
			from -= ch.Choose(ChooseGrain, 2) // this version or the store right after it
		}
		t = t.Splice(at, w, window[from].Text.Slice(off+at, w))
		if bp := c.Traits.BreakpointLen; at+w == bp && bp < n && t.Slice(0, bp) == c.Arch.Breakpoint() {
			return t
		}
	}
	return t
}

// among chooses one of the versions that differ in w bytes at off.
func among(window []Version, off, w int, ch Chooser) int {
	distinct := 0
	for i := range window {
		if first(window, i, off, w) {
			distinct++
		}
	}
	skip := 0
	if distinct > 1 {
		skip = ch.Choose(ChooseVersion, distinct)
	}
	for i := range window {
		if first(window, i, off, w) {
			if skip == 0 {
				return i
			}
			skip--
		}
	}
	return 0
}

// first tells whether no newer version has the same bytes.
func first(window []Version, i, off, w int) bool {
	t := window[i].Text.Slice(off, w)
	for _, v := range window[:i] {
		if v.Text.Slice(off, w) == t {
			return false
		}
	}
	return true
}
