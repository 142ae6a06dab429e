// SPDX-License-Identifier: Apache-2.0

// Package readtrace reads Perfetto timelines for tests, and refuses what a
// reader would have to guess at. It shares nothing with the writer: the messages of
// trace.txtpb were taken from the .proto files of google/perfetto once more, and
// google.golang.org/protobuf reads them.
package readtrace

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// File is the content of a timeline.
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

//go:embed trace.txtpb
var messages []byte

// trace is the message that a file is.
var trace = func() protoreflect.MessageDescriptor {
	var file descriptorpb.FileDescriptorProto
	err := prototext.Unmarshal(messages, &file)
	if err != nil {
		panic(err)
	}
	read, err := protodesc.NewFile(&file, nil)
	if err != nil {
		panic(err)
	}
	return read.Messages().ByName("Trace")
}()

// message is one, with its fields by their names.
type message struct{ protoreflect.Message }

func (m message) field(name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}
func (m message) has(name protoreflect.Name) bool               { return m.Has(m.field(name)) }
func (m message) get(name protoreflect.Name) protoreflect.Value { return m.Get(m.field(name)) }
func (m message) uint(name protoreflect.Name) uint64            { return m.get(name).Uint() }
func (m message) int(name protoreflect.Name) int64              { return m.get(name).Int() }
func (m message) in(name protoreflect.Name) message             { return message{m.get(name).Message()} }

// known refuses fields that trace.txtpb does not have, or has with another wire type.
func known(m proto.Message) error {
	return protorange.Range(m.ProtoReflect(), func(v protopath.Values) error {
		if is, ok := v.Index(-1).Value.Interface().(protoreflect.Message); ok && len(is.GetUnknown()) > 0 {
			return fmt.Errorf("%s: unknown field %x", is.Descriptor().Name(), is.GetUnknown())
		}
		return nil
	})
}

// Read reads a timeline and checks it: every packet is of the one sequence, whose
// first says that nothing came before it; events are on tracks that were made
// before them; names resolve; on every track time does not go back and slices
// nest; every arrow leaves once, arrives once, and not before it left.
func Read(b []byte) (*File, error) {
	f := &File{byID: map[uint64]*Track{}, names: map[uint64]string{}}
	all := dynamicpb.NewMessage(trace)
	if err := proto.Unmarshal(b, all); err != nil {
		return nil, err
	}
	if err := known(all); err != nil {
		return nil, err
	}
	packets := message{all}.get("packet").List()
	for i := range packets.Len() {
		if err := f.packet(message{packets.Get(i).Message()}); err != nil {
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

func (f *File) packet(p message) error {
	if err := f.interned(p.in("interned_data").get("event_names").List()); err != nil {
		return err
	}
	if p.has("trace_packet_defaults") {
		f.preset = p.in("trace_packet_defaults").in("track_event_defaults").uint("track_uuid")
	}
	if p.has("track_descriptor") {
		if err := f.track(p.in("track_descriptor")); err != nil {
			return err
		}
	}
	flags := p.uint("sequence_flags")
	f.cleared = f.cleared || flags&1 != 0
	switch seq := p.uint("trusted_packet_sequence_id"); {
	case seq != 1:
		return fmt.Errorf("sequence %d", seq)
	case !f.cleared:
		return fmt.Errorf("nothing has cleared the sequence's state")
	case !p.has("track_event"):
		return nil
	case !p.has("timestamp") || int64(p.uint("timestamp")) < 0 || flags&2 == 0:
		return fmt.Errorf("an event at %d with flags %d", p.uint("timestamp"), flags)
	}
	return f.event(p.in("track_event"), int64(p.uint("timestamp")))
}

func (f *File) interned(names protoreflect.List) error {
	for i := range names.Len() {
		name := message{names.Get(i).Message()}
		if iid := name.uint("iid"); f.names[iid] != "" {
			return fmt.Errorf("name %d is there already", iid)
		}
		f.names[name.uint("iid")] = name.get("name").String()
	}
	return nil
}

func (f *File) track(d message) error {
	t := &Track{ID: d.uint("uuid"), Parent: d.uint("parent_uuid"), Name: d.get("name").String(),
		Rank: d.int("sibling_order_rank"), Counter: d.has("counter")}
	if t.ID == 0 || f.byID[t.ID] != nil {
		return fmt.Errorf("track %d %q is there already", t.ID, t.Name)
	}
	f.byID[t.ID] = t
	f.Tracks = append(f.Tracks, t)
	return nil
}

// flows are the arrows of a field, of an event at a time.
func (f *File) flows(e message, field protoreflect.Name, at int64, arrives bool) (ids []uint64) {
	list := e.get(field).List()
	for i := range list.Len() {
		ids = append(ids, list.Get(i).Uint())
		f.ends = append(f.ends, flowEnd{ids[i], at, arrives})
	}
	return ids
}

func (f *File) event(e message, at int64) error {
	s := Slice{From: at, Until: at, Name: f.names[e.uint("name_iid")], Leaves: f.flows(e, "flow_ids", at, false),
		Arrives: f.flows(e, "terminating_flow_ids", at, true)}
	id, kind := f.preset, e.int("type")
	if e.has("track_uuid") {
		id = e.uint("track_uuid")
	}
	t := f.byID[id]
	switch {
	case e.has("name_iid") && s.Name == "":
		return fmt.Errorf("name %d is not there", e.uint("name_iid"))
	case t == nil:
		return fmt.Errorf("track %d is not there", id)
	case at < t.last:
		return fmt.Errorf("track %q: from %d back to %d", t.Name, t.last, at)
	case t.Counter != (kind == 4):
		return fmt.Errorf("track %q: an event of type %d", t.Name, kind)
	}
	t.last = at
	return t.add(kind, s, e.int("counter_value"))
}

func (t *Track) add(kind int64, s Slice, value int64) error {
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
