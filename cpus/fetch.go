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
// that may be seen; grain is the number of bytes that never mix.
func (f Fetch) mix(window []Version, off, n, grain int, ch Chooser) isa.Text {
	if len(window) == 1 {
		return window[0].Text.Slice(off, n)
	}
	base := ch.Choose(ChooseVersion, len(window))
	if f == Atomic || grain >= n {
		return window[base].Text.Slice(off, n)
	}
	var t isa.Text
	for at := 0; at < n; at += grain {
		from := base
		switch {
		case f == Weak:
			from = ch.Choose(ChooseVersion, len(window))
		case base > 0: // Ordered: this version or the store right after it
			from -= ch.Choose(ChooseGrain, 2)
		}
		w := min(grain, n-at)
		t = t.Splice(at, w, window[from].Text.Slice(off+at, w))
	}
	return t
}
