// SPDX-License-Identifier: Apache-2.0

package perfetto

import "google.golang.org/protobuf/encoding/protowire"

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
