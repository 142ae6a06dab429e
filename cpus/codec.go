// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Codec writes the CPUs of a small machine as words, for engines that hold many
// of its states. Fields that matter in no step from a CPU's phase on are left out, so
// that two CPUs that can only behave alike have the same word.
type Codec struct {
	Code   *Code
	NopOps uint64
	Ops    []uint64     // every value that a loaded ops can have, at most CodecValues
	Acts   []isa.Insn   // every instruction that handlers can act as, at most CodecValues
	Inside [][]Executed // by site: the parts of it that a CPU can have executed, at most CodecValues
	CPUs   int          // tickets name a sender by the quotient
}

// Executed is how far a CPU has come at a site of several instructions: the version of
// it that is being executed, and where its next instruction begins.
type Executed struct {
	Text isa.Text
	Off  uint8
}

// Halfway lists how far a CPU can have come at a site that holds one of some texts.
func (c *Code) Halfway(site int, texts []isa.Text) (list []Executed) {
	add := func(e Executed) {
		if e.Off > 0 && !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	for _, t := range texts {
		for off := range c.Insns(site, t) {
			add(Executed{t, uint8(off)})
			if c.Path.GoesBack {
				add(Executed{garbled, uint8(off)})
			}
		}
	}
	return list
}

// The fields of a word, from the lowest bit.
const (
	bitsPhase   = 5
	bitsBack    = 4
	bitsFlags   = 4
	bitsSite    = 2
	bitsMasked  = 2
	bitsAwake   = 2
	bitsSynced  = 5
	bitsPromise = bitsSynced + 3
	bitsValue   = 5 // of ops, act or what is begun
	bitsSender  = 2

	atBack    = bitsPhase
	atFlags   = atBack + bitsBack
	atSite    = atFlags + bitsFlags
	atMasked  = atSite + bitsSite
	atAwake   = atMasked + bitsMasked
	atSynced  = atAwake + bitsAwake
	atPromise = atSynced + bitsSynced
	atValue   = atPromise + bitsPromise
	atTaken   = atValue + bitsValue
	atQuiesce = atTaken + bitsSender

	// CodecBits is how many bits of a word are used.
	CodecBits = atQuiesce + bitsSender
)

// The limits of a word.
const (
	CodecSites   = 1 << bitsSite
	CodecValues  = 1 << bitsValue
	CodecSynced  = 1<<bitsSynced - 1 // highest position
	CodecSenders = 1 << bitsSender

	promiseCounts = 1 << (bitsPromise - bitsSynced)
	backStopped   = lastBorder + 1 // how Stopped is written as Back
)

// Pack writes a CPU as a word.
func (k *Codec) Pack(c *CPU) uint64 {
	w := uint64(c.Phase)
	ph := c.Phase
	switch ph {
	case Interrupted, Syncing, Answering:
		ph = c.Back
		w |= uint64(min(c.Back, backStopped)) << atBack
		if c.Phase != Interrupted {
			w |= uint64(int(c.Taken.Ticket)/k.CPUs) << atTaken
		}
	}
	if c.polled && (c.Phase <= lastBorder || c.Phase == Stopped) {
		w |= 1 << atFlags
	}
	if c.Quiet {
		w |= 4<<atFlags | uint64(int(c.Quiesce)/k.CPUs)<<atQuiesce
	}
	if c.stop {
		w |= 8 << atFlags
	}
	w |= uint64(c.Masked)<<atMasked | uint64(c.Awake)<<atAwake | uint64(c.Synced)<<atSynced
	switch ph {
	case Boundary, Asleep, Arriving, Stopped, Resuming, Crossing, Down:
		return w
	}
	w |= uint64(c.Site) << atSite
	return w | k.packTask(ph, c)
}

// Site is the site that a packed CPU is about, where it is about one; WithSite is
// the word of a CPU that is about another one in the same way.
func (k *Codec) Site(w uint64) (site int, about bool) {
	c := CPU{Task: Task{Phase: Phase(w & (1<<bitsPhase - 1))}, Back: Phase(w >> atBack & (1<<bitsBack - 1))}
	ph := c.Phase
	switch ph {
	case Interrupted, Syncing, Answering:
		if ph = c.Back; ph == backStopped {
			ph = Stopped
		}
	}
	switch ph {
	case Boundary, Asleep, Arriving, Stopped, Resuming, Crossing, Down:
		return 0, false
	}
	return int(w >> atSite & (1<<bitsSite - 1)), true
}

// WithSite is the other half of Site.
func (k *Codec) WithSite(w uint64, site int) uint64 {
	return w&^(uint64(1<<bitsSite-1)<<atSite) | uint64(site)<<atSite
}

// packTask writes the parts of the present call that matter in this phase.
func (k *Codec) packTask(ph Phase, c *CPU) (w uint64) {
	switch ph {
	case Inside:
		w = index(k.Inside[c.Site], Executed{c.Text, c.Off}) << atValue
	case Entered:
		w = packPromise(c.Promise)
	case Calling, Doubting:
		w = index(k.Ops, c.Ops) << atValue
		if c.Ops == k.NopOps { // only then does anybody ask what was promised
			w |= packPromise(c.Promise)
		}
	case Returning:
		w = index(k.Acts, c.Act) << atValue
	case Trapped, Leaving:
		if c.hit && k.Code.Path.found>>ph&1 != 0 {
			w = 2<<atFlags | index(k.Acts, c.Act)<<atValue
		}
	}
	if k.carries(ph) { // beside the value; the promise matters only later
		w |= index(k.Ops, c.Ops) << atPromise
	}
	if inHandler(ph) {
		w |= uint64(c.Off) << atTrapped
	}
	return w
}

// inHandler tells whether a CPU in this phase has run into a breakpoint.
func inHandler(ph Phase) bool { return ph == Signalled || ph >= Trapped && ph <= Retrying }

// atTrapped is where the offset stands at which a CPU ran into a breakpoint: above the
// ops that it carries.
const atTrapped = atPromise + bitsValue

// carries tells whether a CPU in this phase has loaded the ops that it will call a
// function with.
func (k *Codec) carries(ph Phase) bool {
	return k.Code.Path.Apart && (ph == Again || ph == Inside || inHandler(ph))
}

// packPromise keeps apart what a small machine can have promised.
func packPromise(p Promise) uint64 {
	if p.Seq() == 0 { // a missing promise has no number that matters
		return 0
	}
	return (uint64(p.Seq())&CodecSynced | uint64(p)/(promiseSeq+1)%promiseCounts<<bitsSynced) << atPromise
}

func unpackPromise(w uint64) Promise {
	w = w >> atPromise & (1<<bitsPromise - 1)
	return PromiseOf(Seq(w&CodecSynced), w>>bitsSynced)
}

// index finds a value among few.
func index[T comparable](list []T, v T) uint64 {
	for i := range list {
		if list[i] == v {
			return uint64(i)
		}
	}
	panic("a value that no plan leads to") // callers list them all
}

// Unpack reads a word. Fields that the word leaves out are those of a new CPU; ID and Role stay.
func (k *Codec) Unpack(w uint64, c *CPU) {
	field := func(at, bits int) uint64 { return w >> at & (1<<bits - 1) }
	*c = CPU{ID: c.ID, Role: c.Role}
	c.Phase = Phase(field(0, bitsPhase))
	ph := c.Phase
	switch ph {
	case Interrupted, Syncing, Answering:
		if c.Back = Phase(field(atBack, bitsBack)); c.Back == backStopped {
			c.Back = Stopped
		}
		ph = c.Back
		c.Taken.Ticket = Ticket(int(field(atTaken, bitsSender))*k.CPUs + int(c.ID))
	}
	flags := field(atFlags, bitsFlags)
	c.polled, c.hit, c.Quiet, c.stop = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	if c.Quiet {
		c.Quiesce = Ticket(int(field(atQuiesce, bitsSender))*k.CPUs + int(c.ID))
	}
	c.Masked, c.Awake = uint16(field(atMasked, bitsMasked)), uint16(field(atAwake, bitsAwake))
	c.Synced = Seq(field(atSynced, bitsSynced))
	c.Site = int32(field(atSite, bitsSite))
	k.unpackTask(ph, w, c)
}

func (k *Codec) unpackTask(ph Phase, w uint64, c *CPU) {
	value := w >> atValue & (CodecValues - 1)
	switch ph {
	case Inside:
		b := k.Inside[c.Site][value]
		c.Text, c.Off = b.Text, b.Off
		for off, insn := range k.Code.Insns(int(c.Site), b.Text) {
			if off < int(b.Off) && insn.Kind == isa.Scratch {
				c.Scratch = uint64(insn.Target)
			}
		}
	case Entered:
		c.Promise = unpackPromise(w)
	case Calling, Doubting:
		c.Ops, c.Promise = k.Ops[value], unpackPromise(w)
	case Trapped, Leaving, Returning:
		if c.hit || ph == Returning {
			c.Act = k.Acts[value]
		}
	}
	if k.carries(ph) {
		c.Ops = k.Ops[w>>atPromise&(CodecValues-1)]
	}
	if inHandler(ph) {
		c.Off = uint8(w >> atTrapped & 7)
	}
}

// TaskBits is how many bits a parked task takes.
const TaskBits = 3 + bitsSite + bitsPromise + bitsValue + 1 + bitsSender

// PackTask writes a parked task.
func (k *Codec) PackTask(t *Task) uint64 {
	if !t.There() {
		return 0
	}
	c := CPU{Task: *t}
	w := uint64(t.Phase) | uint64(t.Site)<<3
	w |= k.packTask(t.Phase, &c) >> atPromise << (3 + bitsSite)
	if t.Quiet {
		w |= (1 | uint64(int(t.Quiesce)/k.CPUs)<<1) << (TaskBits - 1 - bitsSender)
	}
	return w
}

// UnpackTask reads a parked task; its tickets are those of CPU cpu.
func (k *Codec) UnpackTask(w uint64, cpu int) (t Task) {
	if w&7 == 0 {
		return Task{}
	}
	c := CPU{Task: Task{Site: int32(w >> 3 & (CodecSites - 1)), Phase: Phase(w & 7)}}
	k.unpackTask(c.Phase, w>>(3+bitsSite)<<atPromise, &c)
	t = c.Task
	if owes := w >> (TaskBits - 1 - bitsSender); owes&1 != 0 {
		t.Quiet, t.Quiesce = true, Ticket(int(owes>>1)*k.CPUs+cpu)
	}
	return t
}

// Repoll makes the CPU look for interrupts before it does anything else at the
// border that it stands at; SkipPoll makes it go on without looking, as after a look
// that found nothing. Polled tells which of the two holds.
func (c *CPU) Repoll()      { c.polled = false }
func (c *CPU) SkipPoll()    { c.polled = true }
func (c *CPU) Polled() bool { return c.polled }

// Owes tells whether the CPU has something to do at the next border between two
// calls: to stand still, or to answer a grace period.
func (c *CPU) Owes() bool { return c.stop || c.Quiet }

// Asked is the grace period that the CPU owes an answer, if any.
func (c *CPU) Asked() (t Ticket, owes bool) { return c.Quiesce, c.Quiet }

// Shift moves the CPU's positions down, when so many versions from first on are
// forgotten.
func (c *CPU) Shift(first, by Seq) {
	c.Synced = c.Synced.shift(first, by)
	c.Promise = c.Promise.Shift(first, by)
}

// Shift moves the position of a promise down.
func (p Promise) Shift(first, by Seq) Promise {
	if p.Seq() == 0 {
		return p
	}
	return p.With(p.Seq().shift(first, by))
}

// shift moves a position down; a forgotten one becomes the one before the first.
func (s Seq) shift(first, by Seq) Seq {
	switch {
	case s < first:
		return s
	case s < first+by:
		return first - 1
	}
	return s - by
}

// With is the promise that is made, about a position, after this one.
func (p Promise) With(seq Seq) Promise { return p&^promiseSeq | Promise(seq) }

// Of is the promise that no CPU executes the text that want has replaced, of a site whose newest version is
// given, where last is the position of the last store. When want has not arrived in memory yet
// the promise is about the store to come, so that a plan that relied on it is caught.
func (p Promise) Of(newest Version, want isa.Text, last Seq) Promise {
	if newest.Text != want {
		return p.With(last + 1)
	}
	return p.With(newest.Seq)
}

// PromiseOf is a promise about a position, taken back so often before.
func PromiseOf(seq Seq, count uint64) Promise { return Promise(seq) | Promise(count*(promiseSeq+1)) }

// TakenBack is the promise once it is taken back.
func (p Promise) TakenBack() Promise { return p&^promiseSeq + promiseSeq + 1 }

// The fields of a word about ways, from the lowest bit: the CPU's own, then what an NMI
// has interrupted, and where on its ways that was.
const (
	bitsWay = 3
	bitsOn  = 4
	bitsCR3 = 4

	atOn    = bitsWay
	atCR3   = atOn + bitsOn
	bitsOwn = atCR3 + bitsCR3

	_ = uint(64 - (CodecBits + 2*bitsOwn)) // it must fit
)

// PackWay writes where a CPU is on its ways, and the state that an NMI has interrupted.
func (k *Codec) PackWay(c, under *CPU) uint64 {
	w := packWay(c)
	if c.InNMI() {
		w |= k.Pack(under)<<bitsOwn | packWay(under)<<(bitsOwn+CodecBits)
	}
	return w
}

func packWay(c *CPU) uint64 { return uint64(c.way) | uint64(c.at)<<atOn | uint64(c.cr3)<<atCR3 }

// UnpackWay reads what PackWay has written; under keeps its ID and Role.
func (k *Codec) UnpackWay(w uint64, c, under *CPU) {
	if unpackWay(w, c); c.InNMI() {
		k.Unpack(w>>bitsOwn&(1<<CodecBits-1), under)
		unpackWay(w>>(bitsOwn+CodecBits), under)
		return
	}
	*under = CPU{ID: under.ID, Role: under.Role}
}

func unpackWay(w uint64, c *CPU) {
	c.way, c.at, c.cr3 = Section(w&(1<<bitsWay-1)), uint8(w>>atOn&(1<<bitsOn-1)), uint8(w>>atCR3&(1<<bitsCR3-1))
}
