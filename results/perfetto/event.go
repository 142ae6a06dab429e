// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// event is one TrackEvent.
type event struct {
	kind  uint64
	track Track
	name  uint64 // 0: none
	value int64  // of a counter
	link  Link
}

// event writes an event if there is room for it and for what must follow it. What
// was set aside for its arrows is used up, so that one with arrows always fits.
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
		name = cut(name)
		if e.name = w.names[name]; e.name == 0 {
			e.name, fresh = uint64(len(w.names))+1, strings.ToValidUTF8(name, "?")
		}
	}
	inner := e.size()
	body := sizeUint(packetTimestamp, uint64(at)) + sizeMessage(packetEvent, inner) + len(trailer)
	if fresh != "" {
		body += sizeMessage(packetInterned, sizeInterned(e.name, fresh))
	}
	if e.track == 0 || !w.room(sizeMessage(tracePacket, body)+int(follows)) {
		w.dropped++
		return false
	}
	if fresh != "" {
		w.names[strings.Clone(name)] = e.name
	}
	w.reserved += follows
	w.last = max(w.last, at)
	before := len(w.buf)
	b := appendHead(w.buf, tracePacket, body)
	b = appendUint(b, packetTimestamp, uint64(at))
	b = e.append(appendHead(b, packetEvent, inner))
	if fresh != "" {
		b = appendInterned(b, e.name, fresh)
	}
	w.buf = append(b, trailer...)
	w.wrote(before)
	return true
}

// trailer ends every packet of an event: which sequence it is of, and that it
// needs the names and defaults of that.
var trailer = string(appendUint(appendUint(nil, packetSequence, sequence), packetFlags, stateNeeded))

// cut makes a name short enough for the room that is kept for it.
func cut(name string) string { return name[:min(len(name), maxName)] }

func (e *event) size() int {
	n := sizeUint(eventType, e.kind)
	if e.track != leftOut {
		n += sizeUint(eventTrack, uint64(e.track))
	}
	if e.name != 0 {
		n += sizeUint(eventName, e.name)
	}
	if e.kind == typeCounter {
		n += sizeUint(eventCounter, uint64(e.value))
	}
	n += e.link.Count * (protowire.SizeTag(eventFlow) + protowire.SizeFixed64())
	if e.link.Arrives != 0 {
		n += protowire.SizeTag(eventFlowEnd) + protowire.SizeFixed64()
	}
	return n
}

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

// The new name travels with the event that first has it.

func sizeEventName(number uint64, name string) int {
	return sizeUint(nameNumber, number) + sizeMessage(nameText, len(name))
}

func sizeInterned(number uint64, name string) int {
	return sizeMessage(internedEventName, sizeEventName(number, name))
}

func appendInterned(b []byte, number uint64, name string) []byte {
	b = appendHead(b, packetInterned, sizeInterned(number, name))
	b = appendHead(b, internedEventName, sizeEventName(number, name))
	b = appendUint(b, nameNumber, number)
	return appendText(b, nameText, name)
}
