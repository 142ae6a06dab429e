// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// A state's words: one for each CPU, one more for each CPU's parked task where
// tasks can be preempted, then what all share. The upper bits of a CPU's word are
// what the machine knows of that CPU.
const (
	bitsRequest = bitsFrom + 2 // sender, cause
	bitsFrom    = 2
	bitsRefs    = 5 // signed: who entered an earlier batch may leave this one
	atBox       = cpus.CodecBits
	atRefs      = atBox + bitsRequest*MaxPatchers
	atStopped   = atRefs + bitsRefs
	atSpace     = atStopped + 1
	_           = uint(64 - (atSpace + 2)) // it must fit

	bitsDone  = 3
	bitsStage = 2
	bitsCount = 4

	maxPatches = 1 << bitsDone // of one step
	maxStretch = 2             // of calls with interrupts masked: up to twice that less one are left
)

// layout is how the words of a model's states are laid out.
type layout struct {
	words    int
	own      int  // of each CPU
	stores   int  // of text, at most, that some CPU has not seen
	buffered int  // stores that can wait at once, of all programs
	text     uint // bits of a text's index
	site     uint
	change   uint // of an index of a site's changes
	ops      uint // bits of an index of ops
	locks    bool // some program takes one
	walks    uint // bits of a set of patchers, where some walk through page tables
	batch    uint
	at       uint // of a place in a plan
	store    uint // of a store that can wait in a buffer
}

func width(n int) uint { return uint(bits.Len(uint(max(n-1, 0)))) }

// checkWidths refuses what the words have no room for.
func (m *Model) checkWidths() error {
	for _, p := range m.Programs {
		for _, s := range p.Plan {
			if n := s.To - s.From; n > maxPatches {
				return fmt.Errorf("a step about %d patches: at most %d", n, maxPatches)
			}
		}
	}
	if n := m.Code.Stretch; slices.Contains(m.Roles, cpus.IrqsOff) && (n < 1 || n > maxStretch) {
		return fmt.Errorf("stretches of %d calls with interrupts masked: want 1 to %d", n, maxStretch)
	}
	return nil
}

// layOut works out how many words a state takes.
func (m *Model) layOut() {
	l := &m.layout
	l.site, l.ops, l.batch = width(len(m.Code.Sites)), width(len(m.codec.Ops)), width(len(m.flat)+1)
	for _, t := range m.texts {
		l.text = max(l.text, width(len(t)))
	}
	for _, p := range m.Programs {
		l.at = max(l.at, width(len(p.Plan)+1))
	}
	if l.locks = m.executes(poke.Lock); m.executes(poke.Walk) {
		l.walks = uint(len(m.Programs))
	}
	if l.own = 1; m.Preempt {
		l.own++
	}
	if m.Code.Path.Ways() {
		l.own++
	}
	l.words = l.own * len(m.Roles)
	var p packer
	p.w = make([]uint64, 64)
	w := newWorld(m)
	w.logged = l.stores
	w.sharedFields(&p)
	// The rest of the log and of the buffers may be longer than in that world.
	total := p.i*64 + int(p.off) + l.buffered*int(l.store)
	l.words += (total + 63) / 64
}

// packer goes over fields one behind the other: it writes their values, or where it reads, it has them from the words.
type packer struct {
	w     []uint64
	i     int
	off   uint
	reads bool
}

// field is the value of a field of n bits: v, which it writes; or the one that it reads in v's place.
func field[T ~int | ~int8 | ~int32 | ~uint8 | ~uint32 | ~uint64](p *packer, v T, n uint) T {
	if p.reads {
		return T(p.get(n))
	}
	p.put(uint64(v), n)
	return v
}

// boolean is a field of one bit.
func boolean(p *packer, v bool) bool {
	bit := uint8(0)
	if v {
		bit = 1
	}
	return field(p, bit, 1) != 0
}

func (p *packer) put(v uint64, n uint) {
	if n == 0 { // there may be no word any more
		return
	}
	p.w[p.i] |= v << p.off
	if p.off += n; p.off >= 64 {
		p.i++
		if p.off -= 64; p.off > 0 {
			p.w[p.i] |= v >> (n - p.off)
		}
	}
}

func (p *packer) get(n uint) uint64 {
	if n == 0 {
		return 0
	}
	v := p.w[p.i] >> p.off
	if p.off += n; p.off >= 64 {
		p.i++
		if p.off -= 64; p.off > 0 {
			v |= p.w[p.i] << (n - p.off)
		}
	}
	return v & (1<<n - 1)
}

// pack writes the world into words.
func (w *world) pack(words []uint64) {
	clear(words)
	for i := range w.m.Roles {
		w.packOwn(words, i)
	}
	w.sharedFields(&packer{w: words[w.m.layout.own*len(w.m.Roles):]})
}

// packOwn writes the words of one CPU: its own, its preempted task's, and its ways'.
func (w *world) packOwn(words []uint64, i int) {
	n := len(w.m.Roles)
	words[i] = w.packCPU(i)
	if w.m.Preempt {
		words[n+i] = w.m.codec.PackTask(&w.parked[i])
	}
	if w.m.Code.Path.Ways() {
		words[(w.m.layout.own-1)*n+i] = w.m.codec.PackWay(&w.cpu[i], &w.under[i])
	}
}

// packCPU writes the word of a CPU, unpackCPU reads it: most steps write no other word.
func (w *world) packCPU(i int) uint64 {
	v := w.m.codec.Pack(&w.cpu[i])
	for k, r := range w.box[i][:len(w.m.Programs)] {
		v |= uint64(r) << (atBox + bitsRequest*k)
	}
	v |= uint64(w.refs[i])&(1<<bitsRefs-1)<<atRefs | uint64(w.space[i])<<atSpace
	if w.stopped[i] {
		v |= 1 << atStopped
	}
	return v
}

func (w *world) unpackCPU(i int, v uint64) {
	w.m.codec.Unpack(v, &w.cpu[i])
	for k := range w.m.Programs {
		w.box[i][k] = request(v >> (atBox + bitsRequest*k) & (1<<bitsRequest - 1))
	}
	w.refs[i] = int8(v>>atRefs<<(8-bitsRefs)) >> (8 - bitsRefs)
	w.stopped[i] = v>>atStopped&1 != 0
	w.space[i] = cpus.Space(v >> atSpace & 3)
}

// sharedFields goes over what all share.
func (w *world) sharedFields(p *packer) {
	m, l := w.m, &w.m.layout
	w.logged = field(p, w.logged, 5)
	for i := range m.Code.Sites {
		w.base[i] = field(p, w.base[i], l.text)
		w.settled[i] = cpus.PromiseOf(field(p, w.settled[i].Seq(), 5), 1) // of no other count: see outdate
		w.begun[i] = field(p, w.begun[i], l.change)
		if m.Code.Named() {
			w.literal[i] = m.codec.Ops[field(p, m.opsIndex(w.literal[i]), l.ops)]
		}
	}
	w.ops = field(p, w.ops, m.table.Bits())
	w.published = field(p, w.published, l.batch)
	w.arrived, w.arriving, w.stopping = field(p, w.arrived, 4), field(p, w.arriving, 4), field(p, w.stopping, 2)
	w.Mapped, w.Told = field(p, w.Mapped, 3), boolean(p, w.Told)
	if t := &w.Tables; l.walks > 0 {
		t.Split = boolean(p, t.Split)
		t.Live, t.Gone, t.Freed = field(p, t.Live, l.walks), field(p, t.Gone, l.walks), field(p, t.Freed, l.walks)
	}
	for i := range m.Programs {
		w.patcherFields(p, i)
	}
	if l.locks {
		for i := range w.Held {
			w.Held[i] = field(p, w.Held[i], 2)
		}
	}
	for i := range w.logged {
		s := &w.log[i]
		s.site, s.text = field(p, s.site, l.site), field(p, s.text, l.text)
	}
}

// patcherFields goes over how far a patcher has got.
func (w *world) patcherFields(p *packer, i int) {
	var room [maxBuffered]poke.StoreID
	g := w.patcher[i].Progress(room[:0])
	w.sat[i] = field(p, w.sat[i], 2)
	g.At, g.Done, g.Stage = field(p, g.At, w.m.layout.at), field(p, g.Done, bitsDone), field(p, g.Stage, bitsStage)
	w.left[i] = field(p, w.left[i], 4)
	if stores := &w.m.stores[i]; stores.all != nil {
		g.Buffered = room[:field(p, len(g.Buffered), bitsCount)]
		for k, b := range g.Buffered {
			g.Buffered[k] = stores.all[field(p, stores.index(&w.m.Programs[i], b), w.m.layout.store)]
		}
	}
	if p.reads {
		w.patcher[i].Resume(g)
	}
}

func (m *Model) opsIndex(addr uint64) uint64 {
	for i, a := range m.codec.Ops {
		if a == addr {
			return uint64(i)
		}
	}
	panic("an ops that no store leads to")
}

// unpack reads a world from words.
func (w *world) unpack(words []uint64) { w.unpackOver(nil, words) }

// unpackOver does so where the world is as other words say, if these are not nil:
// states that are looked at one after the other have most words in common. It
// tells which CPUs it has read, one bit each, and whether what they share.
func (w *world) unpackOver(is, words []uint64) (changed uint, shared bool) {
	same := func(i int) bool { return is != nil && is[i] == words[i] }
	n := len(w.m.Roles)
	ways := (w.m.layout.own - 1) * n
	for i := range n {
		if w.m.Preempt && !same(n+i) {
			w.parked[i] = w.m.codec.UnpackTask(words[n+i], i)
		}
		on := w.m.Code.Path.Ways()
		if same(i) && (!on || same(ways+i)) {
			continue
		}
		w.unpackCPU(i, words[i])
		if changed |= 1 << i; on {
			w.m.codec.UnpackWay(words[ways+i], &w.cpu[i], &w.under[i])
		}
	}
	n *= w.m.layout.own
	if is == nil || !slices.Equal(is[n:], words[n:]) {
		w.sharedFields(&packer{w: words[n:], reads: true})
		shared = true
	}
	return changed, shared
}
