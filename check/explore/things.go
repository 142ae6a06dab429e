// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// same tells whether two worlds agree in a thing. Both count stores from the same one.
func (w *world) same(o *world, t Thing) bool {
	switch first, n := t.Kind(); first {
	case Registers:
		return w.cpu[n] == o.cpu[n]
	case Mail:
		return w.box[n] == o.box[n] && w.stopped[n] == o.stopped[n] && w.space[n] == o.space[n] &&
			(w.m.Refs != int3.PerCPU || w.refs[n] == o.refs[n])
	case Parked:
		return w.parked[n] == o.parked[n]
	case Text:
		return slices.Equal(w.textsOf(n), o.textsOf(n))
	case Literal:
		return w.literal[n] == o.literal[n]
	case Promised:
		return w.settled[n] == o.settled[n]
	case Changing:
		return w.begun[n] == o.begun[n]
	case Place:
		return w.sat[n] == o.sat[n] && samePlace(&w.patcher[n], &o.patcher[n])
	case Answers:
		return w.left[n] == o.left[n]
	case Operations:
		return w.ops == o.ops
	case Batch:
		return w.published == o.published
	case References:
		return w.m.Refs == int3.PerCPU || *w.ref(0) == *o.ref(0)
	case Arrived:
		return w.arrived == o.arrived && w.arriving == o.arriving
	case Stopping:
		return w.stopping == o.stopping
	case Locks:
		return w.Held == o.Held
	case Window:
		return w.Mapped == o.Mapped && w.Tables == o.Tables
	case Flag:
		return w.Told == o.Told
	default: // Stores
		return w.logged == o.logged
	}
}

// version is one of a site's texts, and the position of its store.
type version struct {
	at   int
	text uint8
}

// textsOf are the texts of a site that some CPU may still fetch.
func (w *world) textsOf(site int) []version {
	list := []version{{-1, w.base[site]}}
	for i, s := range w.log[:w.logged] {
		if int(s.site) == site {
			list = append(list, version{i, s.text})
		}
	}
	return list
}

func samePlace(a, b *poke.Patcher) bool {
	var rooms [2][maxBuffered]poke.StoreID
	x, y := a.Progress(rooms[0][:0]), b.Progress(rooms[1][:0])
	return x.At == y.At && x.Done == y.Done && x.Stage == y.Stage && slices.Equal(x.Buffered, y.Buffered)
}

// disturb exchanges what is not among the things for what another world has.
func (w *world) disturb(kept Things, o *world) {
	text := kept.Has(Stores)
	for site := range w.m.Code.Sites {
		text = text || kept.Has(Text+Thing(site))
	}
	if !text {
		w.base, w.log, w.logged = o.base, o.log, o.logged
	}
	for t := range numThings {
		if first, _ := t.Kind(); !kept.Has(t) && first != Text && first != Stores {
			w.take(o, t)
		}
	}
}

// take makes a thing what it is in another world.
func (w *world) take(o *world, t Thing) {
	switch first, n := t.Kind(); first {
	case Registers:
		w.cpu[n] = o.cpu[n]
	case Mail:
		w.box[n], w.stopped[n], w.space[n] = o.box[n], o.stopped[n], o.space[n]
		if w.m.Refs == int3.PerCPU {
			w.refs[n] = o.refs[n]
		}
	case Parked:
		w.parked[n] = o.parked[n]
	case Literal:
		w.literal[n] = o.literal[n]
	case Promised:
		w.settled[n] = o.settled[n]
	case Changing:
		w.begun[n] = o.begun[n]
	case Place:
		if w.sat[n] = o.sat[n]; n < len(w.m.Programs) {
			w.patcher[n].Resume(o.patcher[n].Progress(nil))
		}
	case Answers:
		w.left[n] = o.left[n]
	case Operations:
		w.ops = o.ops
	case Batch:
		w.published = o.published
	case References:
		if w.m.Refs != int3.PerCPU {
			*w.ref(0) = *o.ref(0)
		}
	case Arrived:
		w.arrived, w.arriving = o.arrived, o.arriving
	case Stopping:
		w.stopping = o.stopping
	case Locks:
		w.Held = o.Held
	case Window:
		w.Mapped, w.Tables = o.Mapped, o.Tables
	case Flag:
		w.Told = o.Told
	}
}
