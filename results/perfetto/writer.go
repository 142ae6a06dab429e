// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"fmt"
	"io"
	"math"
	"strings"
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
	reserved int64 // bytes that what is there already may still need
	dropped  uint64
	body     []byte // of the packet that is being made
	inner    []byte // a message on its way into another one
}

// NewWriter begins a timeline of at most limit bytes; 0 for no limit. A timeline
// of nothing but tracks takes some hundred bytes, whatever the limit.
func NewWriter(w io.Writer, limit int64) *Writer {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	p := &Writer{w: w, limit: limit, buf: make([]byte, 0, flushAt+1024), names: map[string]uint64{}, reserved: closingRoom}
	// The first packet says that nothing came before it, and which track events
	// are on that name none: the one of what was left out.
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

// About is what a track is.
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

// arrivalRoom is what a slice takes that an arrow leads to.
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
