// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"errors"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Fetch says how finely the versions in a CPU's window mix in one fetch.
type Fetch uint8

// The fetch models; docs/fetch-models.md says of each which machine it stands
// for. A fetch reads the grains of an instruction (isa.Arch.Grain), which never
// mix: bytes on x86_64, aligned words on arm64 and, with Ziccif, on riscv64.
const (
	// Weak: every grain may come from any version. This is Intel's worst case
	// (SDM vol. 3A, "Handling Self- and Cross-Modifying Code") and contains every
	// machine we know.
	Weak Fetch = iota
	// Coherent: the grains are read one after the other, from the lowest address
	// up, and stores become visible in their order: no grain comes from an older
	// version than the one before it, but where it lies in the next aligned quadword,
	// which a store reaches by itself. The head is read before the tail.
	Coherent
	// Quadword: a fetch reads an aligned quadword at once; an instruction in two quadwords takes
	// two reads, each of which may see any version (AMD APM vol. 2, 7.6.1).
	Quadword
	// Atomic: a fetch reads all at once. Where the instruction lies in one aligned quadword it
	// sees one whole version. A store across two quadwords may have reached only one of them (AMD
	// APM vol. 2, 7.3.2: accesses within an aligned quadword are atomic; Intel's SDM, "Guaranteed
	// Atomic Operations", promises it within a cache line since P6), and then the fetch sees it in
	// flight.
	Atomic
)

var fetchNames = []string{"weak", "coherent", "quadword", "atomic"}

// FetchNames lists the models as --fetch spells them, Fetches themselves.
func FetchNames() []string { return fetchNames }

// Fetches lists the models.
func Fetches() []Fetch { return []Fetch{Weak, Coherent, Quadword, Atomic} }

func (f Fetch) String() string { return fetchNames[f] }

// ParseFetch reads a model's name.
func ParseFetch(s string) (Fetch, error) {
	if s == "ordered" { // two versions with one store between them, in any mixture
		return 0, errors.New(`fetch "ordered": retired, since no manual states it; the nearest is coherent, ` +
			`which keeps the order of stores, too`)
	}
	return spelling.Number[Fetch]("fetch", s, fetchNames)
}

// InOrder tells whether it matters in which order the versions of a window came: to Weak and
// Quadword they are a set.
func (f Fetch) InOrder() bool { return f != Weak && f != Quadword }

// quadword is what one store replaces whole, in bytes.
const quadword = 8

// part is how many bytes at address at never mix.
func (c *Code) part(at records.Addr) int {
	switch grain := c.Arch.Grain(at); c.Fetch {
	case Quadword, Atomic:
		return max(grain, quadword-int(at%quadword))
	default:
		return grain
	}
}

// Grains is how many parts of one fetch at an address can come from different versions.
func (c *Code) Grains(at records.Addr) (parts int) {
	for i := 0; i < c.Traits.FetchLen; i += c.part(at + records.Addr(i)) {
		parts++
	}
	return parts
}

// mix is one fetch of n bytes at off, which have the address at: window, newest first, holds the
// versions that may be seen. It asks only for choices that make a difference: versions that agree
// count once, and a breakpoint is one whatever bytes follow.
func (c *Code) mix(window []Version, at records.Addr, off, n int, ch Chooser) isa.Text {
	w := c.part(at)
	if w >= n {
		return window[among(window, off, n, ch)].Text.Slice(off, n)
	}
	base, reach := 0, len(window)
	inFlight := c.Fetch == Atomic // one store at most
	if inFlight {
		base = amongPairs(window, off, n, ch)
	}
	var t isa.Text
	for i := 0; i < n; i += w {
		w = min(c.part(at+records.Addr(i)), n-i)
		from := base
		if i > 0 && (at+records.Addr(i))%quadword == 0 { // the last store may not have got here
			reach = min(reach+1, len(window))
		}
		switch {
		case !inFlight:
			from = among(window[:reach], off+i, w, ch)
		case base > 0 && window[base].Text.Slice(off+i, w) != window[base-1].Text.Slice(off+i, w):
			from -= ch.Choose(ChooseGrain, 2) // this version or the store right after it
		}
		t = t.Splice(i, w, window[from].Text.Slice(off+i, w))
		if bp := c.Traits.BreakpointLen; i+w >= bp && bp < n && t.Slice(0, bp) == c.Arch.Breakpoint() {
			return t
		}
		if c.Fetch == Coherent { // the oldest that has this text leaves the most to what follows
			reach = last(window[:reach], from, off+i, w) + 1
		}
	}
	return t
}

// among chooses one of the versions that differ in w bytes at off.
func among(window []Version, off, w int, ch Chooser) int {
	return oneOf(len(window), ch, func(i int) bool { return first(window, i, off, w) })
}

// amongPairs chooses one of the versions that differ in n bytes at off themselves, or after the
// next store. A store that changes nothing does not count.
func amongPairs(window []Version, off, n int, ch Chooser) int {
	text := func(i int) isa.Text { return window[max(i, 0)].Text.Slice(off, n) }
	return oneOf(len(window), ch, func(i int) bool {
		if i > 0 && text(i) == text(i-1) {
			return false
		}
		for k := range i {
			if text(k) == text(i) && text(k-1) == text(i-1) {
				return false
			}
		}
		return true
	})
}

// oneOf chooses one of the first n numbers that are meant.
func oneOf(n int, ch Chooser, meant func(i int) bool) int {
	among := 0
	for i := range n {
		if meant(i) {
			among++
		}
	}
	skip := 0
	if among > 1 {
		skip = ch.Choose(ChooseVersion, among)
	}
	for i := range n {
		if meant(i) {
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

// last is the oldest version that has the same bytes as the i-th.
func last(window []Version, i, off, w int) int {
	t := window[i].Text.Slice(off, w)
	for i = len(window) - 1; window[i].Text.Slice(off, w) != t; i-- {
	}
	return i
}
