// SPDX-License-Identifier: Apache-2.0

package perfetto

import "strings"

// event is one TrackEvent.
type event struct {
	kind  uint64
	track Track
	name  uint64 // 0: none
	value int64  // of a counter
	link  Link
}

// event writes an event if there is room for it and for what must follow it. What
// was reserved for its arrows is used up, so that one with arrows always fits.
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

// cut makes a name short enough for the room that is kept for it.
func cut(name string) string { return name[:min(len(name), maxName)] }

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
