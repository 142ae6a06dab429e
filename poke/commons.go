// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// Commons is the state that patchers share besides text, batches and interrupts. It is a small
// value that can be compared: the live machine exchanges it as a whole, the timed engine has one,
// the checker packs it into its states. Rules says what it means. The zero value has every lock
// free and nothing mapped.
type Commons struct {
	Held   [NumMutexes]int8 // the patcher that has the lock, plus 1
	Mapped int32            // the site whose page stores go to, plus 1; 0 where pages are not mapped
	Told   bool             // somebody has raised the flag
	Tables Tables
}

// Access is one access to what patchers share: that of a step.
type Access struct {
	Op    Op    // Lock, Unlock, Map, Walk, Split, Collapse, Free, Raise or Expect
	Mutex Mutex // to be taken or given back
	Site  int32 // to be mapped
	Below bool  // of a Walk: it reads the table's entry, and not the large page's, which may lead to a table
}

// Takes tells whether a lock is to be taken.
func (a Access) Takes(mu Mutex) bool { return a.Op == Lock && a.Mutex == mu }

// Rules are what patchers of one machine are held to, whatever state it is in.
type Rules struct {
	Code *cpus.Code
	// Slots is what the vector has room for, 0 for as many as there are patches.
	Slots int

	order [NumMutexes][NumMutexes]bool // by lock and lock: some plan takes the second while it holds the first
}

// NewRules are the rules for patchers with these plans.
func NewRules(code *cpus.Code, slots int, plans ...[]Step) Rules {
	r := Rules{Code: code, Slots: slots}
	for _, plan := range plans {
		var holds [NumMutexes]bool
		for _, st := range plan {
			switch st.Op {
			case Lock:
				for h, held := range holds {
					r.order[h][st.Mutex] = r.order[h][st.Mutex] || held
				}
				holds[st.Mutex] = true
			case Unlock:
				holds[st.Mutex] = false
			}
		}
	}
	return r
}

// Share makes an access for a patcher on a CPU. yes: the lock was free and is the patcher's, or was the
// patcher's and is free; the entry leads to a table; the flag is raised.
func (r *Rules) Share(c *Commons, a Access, patcher, cpu int) (yes bool, broken *cpus.Violation) {
	switch a.Op {
	case Lock:
		return r.lock(c, a.Mutex, patcher, cpu)
	case Unlock:
		if yes = int(c.Held[a.Mutex]) == patcher+1; yes {
			c.Held[a.Mutex] = 0
		}
	case Map: // where stores go to, in the one slot that all patchers share
		c.Mapped = a.Site + 1
	case Walk:
		if a.Below {
			return false, c.Tables.readTable(patcher, cpu)
		}
		return c.Tables.readEntry(patcher), nil
	case Raise:
		c.Told = true
	case Expect:
		return c.Told, nil
	default:
		c.Tables.reshape(a.Op)
	}
	return yes, nil
}

// lock takes a lock for a patcher on a CPU if it is free, and tells whether it did.
// Taking two locks in an order in which another plan takes them the other way round is a
// violation, whether or not anybody hangs this time.
func (r *Rules) lock(c *Commons, mu Mutex, patcher, cpu int) (took bool, broken *cpus.Violation) {
	if c.Held[mu] != 0 {
		return false, nil
	}
	for h := range Mutex(NumMutexes) {
		if int(c.Held[h]) == patcher+1 && r.order[mu][h] {
			broken = &cpus.Violation{
				Property: cpus.LockOrder, CPU: cpu,
				Why: fmt.Sprintf("takes %s while it holds %s; elsewhere %s is taken while %s is held", mu, h, h, mu),
			}
		}
	}
	c.Held[mu] = int8(patcher + 1)
	return true, broken
}

// Lands tells which site a store of n bytes for a site goes to.
func (r *Rules) Lands(c Commons, cpu, site, n int, t isa.Text) (at int, broken *cpus.Violation) {
	at = int(c.Mapped) - 1
	if at < 0 || at == site {
		return site, nil
	}
	return at, &cpus.Violation{
		Property: cpus.WrongPage, CPU: cpu, Site: at, Addr: r.Code.Sites[at], Bytes: t.Format(n),
		Why: fmt.Sprintf("another patcher has mapped this site's page meanwhile: the store for site %d goes here", site),
	}
}

// Overflows tells whether patches are too many for the vector that they are published in.
func (r *Rules) Overflows(cpu int, patches []Patch) *cpus.Violation {
	n := len(patches)
	if r.Slots == 0 || n <= r.Slots {
		return nil
	}
	last := &patches[n-1]
	return &cpus.Violation{
		Property: cpus.Overflow, CPU: cpu, Site: int(last.Site), Addr: last.Addr, Bytes: last.New.Format(r.Code.Len),
		Why: fmt.Sprintf("%d patches in a vector of %d slots: the rest is written behind its end", n, r.Slots),
	}
}

// Tables is the large page in which all sites lie, as init_mm's page tables have it. It is one entry of 2 MiB, as in the
// zero value, or it is split: the entry leads to a table of 512 entries. __text_poke (arch/x86/kernel/alternative.c) finds
// a module's page by vmalloc_to_page (mm/vmalloc.c), which reads the large page's entry and then the table's.
// cpa_collapse_large_pages (arch/x86/mm/pat/set_memory.c, Linux 6.16) puts one entry in the table's place, has every CPU
// flush its TLB, and frees the table.
//
// Patchers whose walk has read the first entry and not yet the second are kept in sets, one bit a patcher, by what became
// of the table that they are about to read.
type Tables struct {
	Split bool
	Live  uint8 // it is the table in use
	Gone  uint8 // an entry is in its place
	Freed uint8
}

// maskedWord is behind a Walk whose CPU takes no interrupt between the two entries.
const maskedWord = "masked"

// Masks tells whether the patcher holds back its CPU's interrupts. A sender of a round between Collapse and Free
// waits for it then, as lockless walks of user space's page tables have it (gup_fast, mm/gup.c, Linux 7.2).
func (p *Patcher) Masks() bool {
	return p.At < len(p.Plan) && p.Plan[p.At].Op == Walk && p.Plan[p.At].Masked && p.stage == waiting
}

// readEntry reads the large page's entry for a patcher, and tells whether it leads to a table.
func (t *Tables) readEntry(patcher int) bool {
	if t.Split {
		t.Live |= 1 << patcher
	}
	return t.Split
}

// reshape splits the large page, collapses it, or frees the table that was collapsed.
func (t *Tables) reshape(op Op) {
	switch {
	case op == Split:
		t.Split = true
	case op == Collapse && t.Split:
		t.Split, t.Gone, t.Live = false, t.Gone|t.Live, 0
	case op == Free:
		t.Freed, t.Gone = t.Freed|t.Gone, 0
	}
}

// readTable reads the table's entry for a patcher. In a table that was freed there is the entry of any page, or none.
func (t *Tables) readTable(patcher, cpu int) (broken *cpus.Violation) {
	me := uint8(1) << patcher
	if t.Freed&me != 0 {
		broken = &cpus.Violation{Property: cpus.FreedTable, CPU: cpu,
			Why: fmt.Sprintf("patcher %d reads the entry of its page in a page table that was freed", patcher)}
	}
	t.Live, t.Gone, t.Freed = t.Live&^me, t.Gone&^me, t.Freed&^me
	return broken
}

// place is where a store goes. The order of stores to one place is kept everywhere.
type place struct {
	kind placeKind
	site int32  // of text and literals
	ops  uint64 // that is attached or released
}

type placeKind uint8

const (
	siteText    placeKind = iota
	siteLiteral           // the pointer to its ops
	theBatch              // what handlers find, and the references on it
	anOps                 // what a call through it amounts to
)

// store is one store on its way to memory.
type store struct {
	place
	off, n uint8
	text   isa.Text // or the ops that a literal is to name
	of     StoreID  // which it is
}

// buffer holds stores that are not visible yet, the oldest first. Younger stores
// may overtake those in it, but for stores to the same place.
type buffer []store

// bufferedStores bounds the buffer: about what current cores have.
const bufferedStores = 56

// oldest is the oldest store to a place, -1 for none.
func (b buffer) oldest(at place) int {
	for i := range b {
		if b[i].place == at {
			return i
		}
	}
	return -1
}

// over is what a load of this CPU reads where memory has t: its own stores that
// wait come first.
func (b buffer) over(at place, t isa.Text) isa.Text {
	for _, s := range b {
		if s.place == at {
			t = t.Splice(int(s.off), int(s.n), s.text)
		}
	}
	return t
}

// put makes a store, or lets it wait where stores do. It is false when another one
// had to become visible before: an older one to the same place, or the oldest where
// the buffer is full.
func (p *Patcher) put(s store, g Ground, ch cpus.Chooser) bool {
	if p.Code.Traits.StoresBuffered {
		if p.push(s.place, g) {
			return false
		}
		if len(p.buffer) == bufferedStores {
			p.release(0, g)
			return false
		}
		if ch.Choose(cpus.ChooseDrain, 4) == 0 { // one in four is overtaken by younger ones
			p.buffer = append(p.buffer, s)
			return true
		}
	}
	p.make(s, g)
	return true
}

// push makes the oldest store to a place visible, and tells whether there was one.
func (p *Patcher) push(at place, g Ground) bool {
	i := p.buffer.oldest(at)
	if i >= 0 {
		p.release(i, g)
	}
	return i >= 0
}

// drainOne makes the oldest store visible, and tells whether there was one.
func (p *Patcher) drainOne(g Ground) bool {
	if len(p.buffer) == 0 {
		return false
	}
	p.release(0, g)
	return true
}

// drain makes all visible.
func (p *Patcher) drain(g Ground) {
	for p.drainOne(g) {
	}
}

func (p *Patcher) release(i int, g Ground) {
	p.make(p.buffer[i], g)
	p.buffer = append(p.buffer[:i], p.buffer[i+1:]...)
}

// make makes the store. Half of a pointer joins the other half that the literal holds by then.
// Only this patcher writes literals, so reading it is no access of its own.
func (p *Patcher) make(s store, g Ground) {
	st := p.Plan[s.of.At]
	switch s.kind {
	case siteText:
		if st.Part == Breakpoint {
			p.begin(st, s.of.Patch, g)
		}
		g.Store(int(s.site), int(s.off), int(s.n), s.text)
	case siteLiteral:
		ops := s.text
		if s.n < 8 {
			ops = isa.Text(g.Literal(int(s.site))).Splice(int(s.off), int(s.n), s.text)
		}
		g.StoreLiteral(int(s.site), uint64(ops))
	case theBatch:
		if st.Op == Publish {
			for i := st.From; i < st.To; i++ {
				p.begin(st, i, g)
			}
			g.Publish(int(s.of.At), p.Patches[st.From:st.To], st.Undo)
		} else {
			g.Unpublish()
		}
	default:
		o := cpus.CalledTracer
		if st.Op == Release {
			o = cpus.CalledFreed
		}
		g.SetOps(s.ops, o)
	}
}

// begin notes what a step begins to make of a patch's site.
func (p *Patcher) begin(st Step, patch int32, g Ground) {
	g.Begin(int(p.Patches[patch].Site), p.Patches[patch].Change(st.Undo))
}
