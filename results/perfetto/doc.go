// Package perfetto writes timelines in Perfetto's protobuf trace format, which
// ui.perfetto.dev and trace_processor open: tracks with slices, instants,
// counters, and arrows from one event to others.
//
// A [Writer] streams: what has been written is complete, a file that is cut short
// loses its end only. Event names are written once and referred to by number. The
// file can be bounded: events beyond the limit are counted and left out, those
// that belong to what is there already (the end of a slice, the head of an arrow)
// never are.
//
// The format is that of https://github.com/google/perfetto, directory
// protos/perfetto/trace, read in 2026: trace_packet.proto (commit
// 02603952ce0ca9a1f4728ec3153663e8b4b05e06), track_event/track_event.proto
// (005055c991ae2d5717df2d086495181ef7fe5a32), track_event/track_descriptor.proto,
// interned_data/interned_data.proto and docs/reference/synthetic-track-event.md.
// Those files promise that the fields used here stay as they are: "STABLE PUBLIC
// API: TrackEvent".
package perfetto
