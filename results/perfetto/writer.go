// SPDX-License-Identifier: Apache-2.0

// Package perfetto writes timelines in Perfetto's protobuf trace format, which
// ui.perfetto.dev and trace_processor open: tracks with slices, instants,
// counters, and arrows from one event to others.
//
// A [Writer] streams: events are complete once they are written, and a file that is cut short loses
// its end only. Event names are written once and referred to by number. The file can be bounded:
// events beyond the limit are counted and left out, except those that complete an event in the file
// (the end of a slice, the head of an arrow).
//
// The format is that of https://github.com/google/perfetto, directory
// protos/perfetto/trace, read in 2026: trace_packet.proto (commit
// 02603952ce0ca9a1f4728ec3153663e8b4b05e06), track_event/track_event.proto
// (005055c991ae2d5717df2d086495181ef7fe5a32), track_event/track_descriptor.proto
// (2b40f5e5d5ed74c76977c20393a3132e8ac978f4; its fields from 11 on, and unit_name
// of counter_descriptor.proto, are younger and were read in code that others
// generated from them: kxxt/tracexec, crates/tracexec-exporter-perfetto/src/proto.rs),
// interned_data/interned_data.proto and docs/reference/synthetic-track-event.md.
// trace_packet.proto calls what is used here "STABLE PUBLIC API: TrackEvent".
package perfetto

import (
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Writer writes one timeline. It is not safe for concurrent use. Errors of the
// file beneath stay until Close, which returns the first.
type Writer struct {
	w   io.Writer
	err error
	buf []byte

	names  map[string]uint64
	tracks uint64
	flows  uint64
	last   int64 // latest time of any event

	limit    int64 // bytes
	written  int64 // bytes, those in buf too
	reserved int64 // bytes that the open slices may still need
	dropped  uint64
	body     []byte // of the packet that is being made
	inner    []byte // a message on its way into another one
}

// NewWriter begins a timeline of at most limit bytes; 0 for no limit. A timeline
// of tracks alone takes some hundred bytes, whatever the limit.
func NewWriter(w io.Writer, limit int64) *Writer {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	p := &Writer{w: w, limit: limit, buf: make([]byte, 0, flushAt+1024), names: map[string]uint64{}, reserved: closingRoom}
	// The first packet says that nothing came before it. Events that name no track
	// are on the track of events that were left out.
	p.tracks = uint64(leftOut)
	p.inner = appendUint(p.inner[:0], eventTrack, uint64(leftOut))
	defaults := appendMessage(nil, defaultsEvent, p.inner)
	packet := appendUint(nil, packetSequence, sequence)
	packet = appendUint(packet, packetFlags, stateCleared|stateNeeded)
	packet = appendUint(packet, packetFirst, 1)
	packet = appendUint(packet, packetDropped, 1)
	packet = appendMessage(packet, packetDefaults, defaults)
	packet = appendMessage(packet, packetTrack, appendText(appendUint(nil, trackID, uint64(leftOut)), trackName,
		"left out"))
	p.packet(packet)
	return p
}

const (
	flushAt = 1 << 15 // bytes

	maxName     = 64  // longer names of events are cut
	endRoom     = 48  // bytes that the end of a slice takes, at most
	eventRoom   = 176 // any other event, with its name and without its flows
	flowRoom    = 10  // one flow of an event
	closingRoom = 256 // what Close writes
)

// Track is one line of the timeline. The zero Track is none: events there are
// left out.
type Track uint64

// leftOut is the track that Close writes on, and the default one.
const leftOut Track = 1

// About describes a track.
type About struct {
	Name   string
	Parent Track // 0: none
	Rank   int   // place among the tracks of the same parent, the lowest first
	// Counter is a track of values instead of slices, of this unit: "" for a
	// plain count.
	Counter bool
	Unit    string
}

// Track makes a track; the zero Track when there is no room for one.
func (w *Writer) Track(a About) Track {
	d := appendUint(w.inner[:0], trackID, w.tracks+1)
	d = appendText(d, trackName, strings.ToValidUTF8(a.Name, "?"))
	if a.Parent != 0 {
		d = appendUint(d, trackParent, uint64(a.Parent))
	}
	d = appendUint(d, trackRank, uint64(a.Rank))
	d = appendUint(d, trackMerge, mergeNone)
	switch {
	case !a.Counter:
		d = appendUint(d, trackChildren, orderExplicit)
	case a.Unit == "":
		d = appendMessage(d, trackCounter, appendUint(nil, counterUnit, unitCount))
	default:
		d = appendMessage(d, trackCounter, appendText(nil, counterUnitName, a.Unit))
	}
	w.inner = d
	packet := appendUint(appendMessage(nil, packetTrack, d), packetSequence, sequence)
	if !w.room(sizeMessage(len(packet))) {
		w.dropped++
		return 0
	}
	w.tracks++
	w.packet(packet)
	return Track(w.tracks)
}

// Flow is one arrow.
type Flow uint64

// Flows reserves n arrows, numbered from first on, with the room for the event
// that they leave from and the slices that they lead to. It tells whether there
// is that room; if not, one event counts as left out.
func (w *Writer) Flows(n int) (first Flow, ok bool) {
	need := eventRoom + n*(flowRoom+arrivalRoom)
	if !w.room(need) {
		w.dropped++
		return 0, false
	}
	w.reserved += int64(need)
	first = Flow(w.flows + 1)
	w.flows += uint64(n)
	return first, true
}

// arrivalRoom is the size of a slice that an arrow leads to.
const arrivalRoom = eventRoom + flowRoom + endRoom

// Link ties an event to arrows: Count of them leave from it, from First on, as
// Flows gave them; Arrives ends at it. An arrow cannot fork: every event that it
// is to reach takes one of its own. The zero Link is none.
type Link struct {
	First   Flow
	Count   int
	Arrives Flow
}

// Begin begins a slice, at nanoseconds. Slices on a track nest, and its events
// come in order of time. It tells whether the slice is there: if not, it was left
// out for want of room, and no End may follow.
func (w *Writer) Begin(t Track, name string, at int64, l Link) bool {
	return w.event(at, event{kind: typeBegin, track: t, link: l}, name, endRoom)
}

// End ends the slice that began last on the track.
func (w *Writer) End(t Track, at int64) {
	w.reserved -= endRoom
	w.event(at, event{kind: typeEnd, track: t}, "", 0)
}

// Instant is an event without a duration. It tells whether there was room.
func (w *Writer) Instant(t Track, name string, at int64, l Link) bool {
	return w.event(at, event{kind: typeInstant, track: t, link: l}, name, 0)
}

// Count gives a counter its value from here on. It tells whether there was room.
func (w *Writer) Count(t Track, value, at int64) bool {
	return w.event(at, event{kind: typeCounter, track: t, value: value}, "", 0)
}

// LeaveOut counts an event that the caller did not even ask to write.
func (w *Writer) LeaveOut() { w.dropped++ }

// Dropped is how many events were left out for want of room.
func (w *Writer) Dropped() uint64 { return w.dropped }

// Last is the latest time of any event.
func (w *Writer) Last() int64 { return w.last }

// Close says on a track of its own what was left out, and hands the rest on. It
// does not close the file beneath.
func (w *Writer) Close() error {
	w.reserved -= closingRoom
	if n := w.dropped; n > 0 {
		w.Instant(leftOut, fmt.Sprintf("%d left out beyond %d bytes", n, w.limit), w.last, Link{})
	}
	w.flush()
	if w.err != nil {
		return fmt.Errorf("write timeline: %w", w.err)
	}
	return nil
}

// room tells whether n more bytes fit.
func (w *Writer) room(n int) bool { return w.limit-w.written-w.reserved >= int64(n) }

// packet writes a packet for which there is room.
func (w *Writer) packet(body []byte) {
	before := len(w.buf)
	w.buf = appendMessage(w.buf, tracePacket, body)
	w.written += int64(len(w.buf) - before)
	if len(w.buf) >= flushAt {
		w.flush()
	}
}

func (w *Writer) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// event is one TrackEvent.
type event struct {
	kind  uint64
	track Track
	name  uint64 // 0: none
	value int64  // of a counter
	link  Link
}

// event writes an event if there is room for it and for the bytes that must follow it. It
// uses the room that was reserved for its arrows up, so that one with arrows always fits.
func (w *Writer) event(at int64, e event, name string, follows int64) bool {
	if e.link.Count > 0 {
		w.reserved -= int64(eventRoom + e.link.Count*flowRoom)
	}
	if e.link.Arrives != 0 {
		w.reserved -= arrivalRoom
	}
	at = max(at, 0)
	fresh := ""
	if name != "" {
		name = name[:min(len(name), maxName)]
		if e.name = w.names[name]; e.name == 0 {
			e.name, fresh = uint64(len(w.names))+1, strings.ToValidUTF8(name, "?")
		}
	}
	body := appendUint(w.body[:0], packetTimestamp, uint64(at))
	w.inner = e.append(w.inner[:0])
	body = appendMessage(body, packetEvent, w.inner)
	if fresh != "" { // the new name travels with the event that first has it
		w.inner = appendText(appendUint(w.inner[:0], nameNumber, e.name), nameText, fresh)
		body = appendMessage(body, packetInterned, appendMessage(nil, internedEventName, w.inner))
	}
	w.body = append(body, trailer...)
	if e.track == 0 || !w.room(sizeMessage(len(w.body))+int(follows)) {
		w.dropped++
		return false
	}
	if fresh != "" {
		w.names[strings.Clone(name)] = e.name
	}
	w.reserved += follows
	w.last = max(w.last, at)
	w.packet(w.body)
	return true
}

// trailer ends every packet of an event: which sequence it is of, and that it
// needs the names and defaults of that.
var trailer = string(appendUint(appendUint(nil, packetSequence, sequence), packetFlags, stateNeeded))

func (e *event) append(b []byte) []byte {
	b = appendUint(b, eventType, e.kind)
	if e.track != leftOut {
		b = appendUint(b, eventTrack, uint64(e.track))
	}
	if e.name != 0 {
		b = appendUint(b, eventName, e.name)
	}
	if e.kind == typeCounter {
		b = appendUint(b, eventCounter, uint64(e.value))
	}
	for i := range e.link.Count {
		b = appendFixed(b, eventFlow, uint64(e.link.First)+uint64(i))
	}
	if e.link.Arrives != 0 {
		b = appendFixed(b, eventFlowEnd, uint64(e.link.Arrives))
	}
	return b
}

// Field numbers, message by message.
const (
	tracePacket = 1 // Trace.packet, trace.proto

	// TracePacket, trace_packet.proto.
	packetTimestamp   = 8
	packetSequence    = 10 // trusted_packet_sequence_id
	packetEvent       = 11
	packetInterned    = 12
	packetFlags       = 13 // sequence_flags
	packetDropped     = 42 // previous_packet_dropped
	packetDefaults    = 59 // trace_packet_defaults
	packetTrack       = 60 // track_descriptor
	packetFirst       = 87 // first_packet_on_sequence
	defaultsEvent     = 11 // TracePacketDefaults.track_event_defaults, trace_packet_defaults.proto
	internedEventName = 2  // InternedData.event_names, interned_data.proto
	nameNumber        = 1  // EventName.iid, track_event.proto
	nameText          = 2  // EventName.name

	// TrackEvent, and where it has them TrackEventDefaults, track_event.proto.
	eventType    = 9
	eventName    = 10 // name_iid
	eventTrack   = 11 // track_uuid
	eventCounter = 30 // counter_value
	eventFlow    = 47 // flow_ids, fixed64
	eventFlowEnd = 48 // terminating_flow_ids, fixed64

	// TrackDescriptor, track_descriptor.proto.
	trackID       = 1 // uuid
	trackName     = 2
	trackParent   = 5  // parent_uuid
	trackCounter  = 8  // counter
	trackChildren = 11 // child_ordering
	trackRank     = 12 // sibling_order_rank
	trackMerge    = 15 // sibling_merge_behavior

	// CounterDescriptor, counter_descriptor.proto.
	counterUnit     = 3
	counterUnitName = 6
)

// Values.
const (
	stateCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	stateNeeded  = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	typeBegin   = 1 // TYPE_SLICE_BEGIN
	typeEnd     = 2 // TYPE_SLICE_END
	typeInstant = 3 // TYPE_INSTANT
	typeCounter = 4 // TYPE_COUNTER

	orderExplicit = 3 // ChildTracksOrdering.EXPLICIT: by sibling_order_rank
	mergeNone     = 2 // SIBLING_MERGE_BEHAVIOR_NONE: tracks of one name stay apart
	unitCount     = 2 // UNIT_COUNT
)

// sequence is the number of the one sequence of packets that a file has; any but
// 0 will do.
const sequence = 1

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendMessage(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

// sizeMessage is the size of a packet of n bytes in the file.
func sizeMessage(n int) int { return protowire.SizeTag(tracePacket) + protowire.SizeBytes(n) }
