// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Seq is a position in the global order of stores to text. The text as it was
// before the first store is at 1.
type Seq uint64

// Version is what a site's text was from Seq on.
type Version struct {
	Seq  Seq
	Text isa.Text
}

// Promise is what completed updates promise about a site: no CPU executes what
// was replaced before Seq. A promise that is made again after it was taken back
// is another one, though it may be about the same version.
type Promise uint64

const promiseSeq = 1<<48 - 1 // the rest counts how often it was taken back

// Seq is the position that the promise is about, 0 where there is none.
func (p Promise) Seq() Seq { return Seq(p & promiseSeq) }

// version is one link of a site's history, newest first.
type version struct {
	Version
	older atomic.Pointer[version]
}

// siteText is a site between updates, as a CPU reads it: half a cache line, so that it takes one
// miss. A version and its text are read as a whole where the position is the same before and after.
type siteText struct {
	seq     atomic.Uint64 // of the newest version; changing while a store is under way
	text    atomic.Uint64 // of the newest version
	settled atomic.Uint64 // Promise
	literal atomic.Uint64 // the ops that the site's literal points to
}

// changing is later than any position: who reads it looks at the history.
const changing = math.MaxUint64

// Text is the text of all sites with the versions that some CPU may still fetch. Readers take no
// lock and never wait; stores are serialised, as by patch_lock (arch/arm64/kernel/patching.c) and
// text_mutex elsewhere.
type Text struct {
	sites   []siteText
	history []atomic.Pointer[version] // of sites that were stored to: the newest version, and those before it
	changes []atomic.Pointer[Change]  // by site: the update begun last
	newest  atomic.Uint64             // Seq of the last store
	oldest  atomic.Uint64             // no CPU can fetch a version that was replaced by then
	store   sync.Mutex

	// between, where set, is called between any two accesses that belong together, so
	// that a test can put something there.
	between func()
}

// newText starts every site with one version, initial(i), and a literal.
func newText(n int, initial func(i int) isa.Text, literal uint64) *Text {
	t := &Text{
		sites:   make([]siteText, n),
		history: make([]atomic.Pointer[version], n),
		changes: make([]atomic.Pointer[Change], n),
	}
	for i := range t.sites {
		s := &t.sites[i]
		s.seq.Store(1)
		s.text.Store(uint64(initial(i)))
		s.literal.Store(literal)
	}
	t.newest.Store(1)
	return t
}

// Seq is the position of the last store.
func (t *Text) Seq() Seq { return Seq(t.newest.Load()) }

// Peek is the newest text of a site, as a load of data would see it.
func (t *Text) Peek(site int) isa.Text { return t.last(site).Text }

// last is the newest version of a site.
func (t *Text) last(site int) Version {
	s := &t.sites[site]
	if seq := s.seq.Load(); seq != changing {
		t.pause()
		if text := s.text.Load(); s.seq.Load() == seq {
			return Version{Seq(seq), isa.Text(text)}
		}
	}
	return t.history[site].Load().Version
}

// Store replaces n bytes from off on of a site's text. The version becomes
// reachable before the position is published, so that a CPU whose
// synchronisation saw the position also sees the version.
func (t *Text) Store(site, off, n int, text isa.Text) {
	t.store.Lock()
	defer t.store.Unlock()
	s, old := &t.sites[site], t.history[site].Load()
	if old == nil {
		old = &version{Version: t.last(site)}
		t.history[site].Store(old)
	}
	v := &version{Version: Version{Seq: Seq(t.newest.Load() + 1), Text: old.Text.Splice(off, n, text)}}
	v.older.Store(old)
	t.pause()
	s.seq.Store(changing) // first, so that a reader that has seen v does not find the version before it
	t.pause()
	t.history[site].Store(v)
	t.pause()
	s.text.Store(uint64(v.Text))
	t.pause()
	s.seq.Store(uint64(v.Seq))
	t.pause()
	t.newest.Store(uint64(v.Seq))
	forget(v, Seq(t.oldest.Load()))
}

// forget drops the versions that were replaced before every CPU's last
// synchronisation: a reader that stands on one of them may walk on, a new
// reader no longer gets there.
func forget(v *version, oldest Seq) {
	for ; v != nil; v = v.older.Load() {
		if v.Seq <= oldest {
			v.older.Store(nil)
			return
		}
	}
}

// Window collects into buf what a CPU that synchronised at synced may fetch
// from a site: newest first, down to the version that was in force then. The
// site's promise beside it is read before the versions: read after them, it could
// be about a store that they lack.
func (t *Text) Window(site int, synced Seq, buf []Version) ([]Version, Promise) {
	s := &t.sites[site]
	settled := Promise(s.settled.Load())
	t.pause()
	if seq := s.seq.Load(); Seq(seq) <= synced {
		t.pause()
		if text := s.text.Load(); s.seq.Load() == seq {
			t.pause()
			return append(buf[:0], Version{Seq(seq), isa.Text(text)}), settled
		}
	}
	buf = buf[:0]
	for v := t.history[site].Load(); v != nil; v = v.older.Load() {
		buf = append(buf, v.Version)
		if v.Seq <= synced {
			break
		}
	}
	t.pause()
	return buf, settled
}

func (t *Text) pause() {
	if t.between != nil {
		t.between()
	}
}

// Settle promises that no CPU executes the text of a site from before the store of want.
func (t *Text) Settle(site int, want isa.Text) {
	s := &t.sites[site].settled
	s.Store(uint64(Promise(s.Load()).Of(t.last(site), want, t.Seq())))
}

// Unsettle takes the promise back, before the next update's first store.
func (t *Text) Unsettle(site int) {
	s := &t.sites[site].settled
	s.Store(uint64(Promise(s.Load()).TakenBack()))
}

// Begin notes which update of a site is begun, Changing is the last that was.
func (t *Text) Begin(site int, c Change) { t.changes[site].Store(&c) }
func (t *Text) Changing(site int) Change {
	if c := t.changes[site].Load(); c != nil {
		return *c
	}
	return Change{}
}

// Settled is the site's promise.
func (t *Text) Settled(site int) Promise { return Promise(t.sites[site].settled.Load()) }

// Literal and StoreLiteral access the 8-byte pointer to a site's ops. It is
// data: coherent, and atomic when aligned.
func (t *Text) Literal(site int) uint64           { return t.sites[site].literal.Load() }
func (t *Text) StoreLiteral(site int, ops uint64) { t.sites[site].literal.Store(ops) }

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
		return window[pickVersion(window, off, n, ch)].Text.Slice(off, n)
	}
	base, reach := 0, len(window)
	inFlight := c.Fetch == Atomic // one store at most
	if inFlight {
		base = pickPair(window, off, n, ch)
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
			from = pickVersion(window[:reach], off+i, w, ch)
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

// pickVersion chooses one of the versions that differ in w bytes at off.
func pickVersion(window []Version, off, w int, ch Chooser) int {
	return oneOf(len(window), ch, func(i int) bool { return first(window, i, off, w) })
}

// pickPair chooses one of the versions that differ in n bytes at off themselves, or after the
// next store. A store that changes no text does not count.
func pickPair(window []Version, off, n int, ch Chooser) int {
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

// oneOf chooses one of the numbers below n for which meant is true.
func oneOf(n int, ch Chooser, meant func(i int) bool) int {
	count := 0
	for i := range n {
		if meant(i) {
			count++
		}
	}
	skip := 0
	if count > 1 {
		skip = ch.Choose(ChooseVersion, count)
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
