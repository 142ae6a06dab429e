// SPDX-License-Identifier: Apache-2.0

// Package readtrace reads Perfetto timelines for tests, and refuses what a
// reader would have to guess at. It shares nothing with the writer: the field
// numbers were taken from the .proto files of google/perfetto once more.
package readtrace

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// File is what a timeline shows.
type File struct {
	Tracks  []*Track
	byID    map[uint64]*Track
	names   map[uint64]string
	cleared bool
	preset  uint64 // default track of events
	ends    []flowEnd
}

// Track is one line of it.
type Track struct {
	ID, Parent uint64
	Name       string
	Rank       int64
	Counter    bool
	Slices     []Slice // instants too
	Values     []Value
	open       []int
	last       int64
}

// Slice is something with a duration, or an instant.
type Slice struct {
	Name        string
	From, Until int64
	Instant     bool
	Depth       int
	Leaves      []uint64 // flows
	Arrives     []uint64
}

// Value is a counter's.
type Value struct{ At, Value int64 }

// flowEnd is one end of an arrow.
type flowEnd struct {
	flow    uint64
	at      int64
	arrives bool
}

// field is one field of a message.
type field struct {
	n    protowire.Number
	v    uint64
	body []byte
}

func fields(b []byte) (out []field, err error) {
	for len(b) > 0 {
		n, kind, l := protowire.ConsumeTag(b)
		if l < 0 {
			return nil, protowire.ParseError(l)
		}
		b = b[l:]
		f := field{n: n}
		switch kind {
		case protowire.VarintType:
			f.v, l = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.v, l = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.body, l = protowire.ConsumeBytes(b)
		default:
			return nil, fmt.Errorf("field %d has wire type %d", n, kind)
		}
		if l < 0 {
			return nil, protowire.ParseError(l)
		}
		b = b[l:]
		out = append(out, f)
	}
	return out, nil
}

// Read reads a timeline and checks it: every packet is of the one sequence, whose
// first says that nothing came before it; events are on tracks that were made
// before them; names resolve; on every track time does not go back and slices
// nest; every arrow leaves once, arrives once, and not before it left.
func Read(b []byte) (*File, error) {
	f := &File{byID: map[uint64]*Track{}, names: map[uint64]string{}}
	packets, err := fields(b)
	if err != nil {
		return nil, err
	}
	for i, p := range packets {
		if p.n != 1 {
			return nil, fmt.Errorf("packet %d: field %d of Trace", i, p.n)
		}
		if err := f.packet(p.body); err != nil {
			return nil, fmt.Errorf("packet %d: %w", i, err)
		}
	}
	for _, t := range f.Tracks {
		if len(t.open) > 0 {
			return nil, fmt.Errorf("track %q: slice %q never ends", t.Name, t.Slices[t.open[len(t.open)-1]].Name)
		}
		if t.Parent != 0 && f.byID[t.Parent] == nil {
			return nil, fmt.Errorf("track %q: its parent %d is not there", t.Name, t.Parent)
		}
	}
	return f, f.checkFlows()
}

func (f *File) packet(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	at, seq, flags := int64(-1), uint64(0), uint64(0)
	var event []byte
	for _, x := range all {
		switch x.n {
		case 8:
			at = int64(x.v)
		case 10:
			seq = x.v
		case 11:
			event = x.body
		case 12:
			err = f.interned(x.body)
		case 13:
			flags = x.v
		case 59:
			err = f.defaults(x.body)
		case 60:
			err = f.track(x.body)
		case 42, 87:
		default:
			err = fmt.Errorf("field %d of TracePacket", x.n)
		}
		if err != nil {
			return err
		}
	}
	f.cleared = f.cleared || flags&1 != 0
	switch {
	case seq != 1:
		return fmt.Errorf("sequence %d", seq)
	case !f.cleared:
		return fmt.Errorf("nothing has cleared the sequence's state")
	case event == nil:
		return nil
	case at < 0 || flags&2 == 0:
		return fmt.Errorf("an event at %d with flags %d", at, flags)
	}
	return f.event(event, at)
}

func (f *File) interned(b []byte) error {
	names, err := fields(b)
	if err != nil {
		return err
	}
	for _, n := range names {
		parts, err := fields(n.body)
		if err != nil || n.n != 2 || len(parts) != 2 || parts[0].n != 1 || parts[1].n != 2 {
			return fmt.Errorf("interned data %x: %w", b, err)
		}
		if f.names[parts[0].v] != "" {
			return fmt.Errorf("name %d is there already", parts[0].v)
		}
		f.names[parts[0].v] = string(parts[1].body)
	}
	return nil
}

func (f *File) defaults(b []byte) error {
	outer, err := fields(b)
	if err != nil || len(outer) != 1 || outer[0].n != 11 {
		return fmt.Errorf("defaults %x: %w", b, err)
	}
	inner, err := fields(outer[0].body)
	if err != nil || len(inner) != 1 || inner[0].n != 11 {
		return fmt.Errorf("event defaults %x: %w", b, err)
	}
	f.preset = inner[0].v
	return nil
}

func (f *File) track(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	t := &Track{}
	for _, x := range all {
		switch x.n {
		case 1:
			t.ID = x.v
		case 2:
			t.Name = string(x.body)
		case 5:
			t.Parent = x.v
		case 8:
			t.Counter = true
		case 12:
			t.Rank = int64(x.v)
		case 11, 15:
		default:
			return fmt.Errorf("field %d of TrackDescriptor", x.n)
		}
	}
	if t.ID == 0 || f.byID[t.ID] != nil {
		return fmt.Errorf("track %d %q is there already", t.ID, t.Name)
	}
	f.byID[t.ID] = t
	f.Tracks = append(f.Tracks, t)
	return nil
}

func (f *File) event(b []byte, at int64) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	kind, id, value, s := uint64(0), f.preset, int64(0), Slice{From: at, Until: at}
	for _, x := range all {
		switch x.n {
		case 9:
			kind = x.v
		case 10:
			if s.Name = f.names[x.v]; s.Name == "" {
				return fmt.Errorf("name %d is not there", x.v)
			}
		case 11:
			id = x.v
		case 30:
			value = int64(x.v)
		case 47:
			s.Leaves = append(s.Leaves, x.v)
			f.ends = append(f.ends, flowEnd{x.v, at, false})
		case 48:
			s.Arrives = append(s.Arrives, x.v)
			f.ends = append(f.ends, flowEnd{x.v, at, true})
		default:
			return fmt.Errorf("field %d of TrackEvent", x.n)
		}
	}
	t := f.byID[id]
	switch {
	case t == nil:
		return fmt.Errorf("track %d is not there", id)
	case at < t.last:
		return fmt.Errorf("track %q: from %d back to %d", t.Name, t.last, at)
	case t.Counter != (kind == 4):
		return fmt.Errorf("track %q: an event of type %d", t.Name, kind)
	}
	t.last = at
	return t.add(kind, s, value)
}

func (t *Track) add(kind uint64, s Slice, value int64) error {
	s.Depth = len(t.open)
	switch kind {
	case 1:
		t.open = append(t.open, len(t.Slices))
		t.Slices = append(t.Slices, s)
	case 2:
		if len(t.open) == 0 {
			return fmt.Errorf("track %q: an end of nothing at %d", t.Name, s.From)
		}
		t.Slices[t.open[len(t.open)-1]].Until = s.From
		t.open = t.open[:len(t.open)-1]
	case 3:
		s.Instant = true
		t.Slices = append(t.Slices, s)
	case 4:
		t.Values = append(t.Values, Value{s.From, value})
	default:
		return fmt.Errorf("track %q: an event of type %d", t.Name, kind)
	}
	return nil
}

// checkFlows goes through the ends of arrows in order of time, those of one time
// in the file's order, as trace_processor does.
func (f *File) checkFlows() error {
	slices.SortStableFunc(f.ends, func(a, b flowEnd) int { return cmp.Compare(a.at, b.at) })
	state := map[uint64]int{}
	for _, e := range f.ends {
		switch {
		case !e.arrives && state[e.flow] != 0, e.arrives && state[e.flow] != 1:
			return fmt.Errorf("flow %d at %d: arrives %v, and has %d ends by then", e.flow, e.at, e.arrives, state[e.flow])
		}
		state[e.flow]++
	}
	for flow, n := range state {
		if n != 2 {
			return fmt.Errorf("flow %d leaves and never arrives", flow)
		}
	}
	return nil
}

// Under is the tracks below one of that name.
func (f *File) Under(name string) (out []*Track) {
	for _, t := range f.Tracks {
		if p := f.byID[t.Parent]; p != nil && p.Name == name {
			out = append(out, t)
		}
	}
	return out
}

// Flows is how many arrows there are.
func (f *File) Flows() int { return len(f.ends) / 2 }
