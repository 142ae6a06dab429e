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
