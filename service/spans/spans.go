// SPDX-License-Identifier: Apache-2.0

// Package spans writes how updates went as spans of OpenTelemetry: an object of OTLP on each line, as the collector's
// file receiver reads them (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/), and as POST /v1/traces
// takes them.
package spans

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// Writer writes the updates that it is told. It never holds up an update: one that comes while many wait to be written
// is left out.
type Writer struct {
	out   io.WriteCloser
	queue chan service.Course
	left  atomic.Int64
	ended chan error
}

// New writes to out from now on, until Close.
func New(out io.WriteCloser) *Writer {
	w := &Writer{out: out, queue: make(chan service.Course, 4096), ended: make(chan error, 1)}
	go func() { w.ended <- w.run(bufio.NewWriter(out)) }()
	return w
}

// Tell has the spans of an update written, unless its client's trace is not recorded.
func (w *Writer) Tell(c service.Course) {
	if c.Parent.Unsampled {
		return
	}
	select {
	case w.queue <- c:
	default:
		w.left.Add(1)
	}
}

// Close writes the rest. Where that takes longer than the context it closes what it writes to: a pipe may have a reader
// that does not read. Its error says what could not be written, or how many updates were left out. No Tell follows.
func (w *Writer) Close(ctx context.Context) error {
	close(w.queue)
	late := context.AfterFunc(ctx, func() { w.out.Close() })
	err := <-w.ended
	late()
	if n := w.left.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("the spans of %d updates were left out", n))
	}
	return err
}

func (w *Writer) run(out *bufio.Writer) (err error) {
	lines, buffered := json.NewEncoder(out), int64(0)
	for c := range w.queue {
		if buffered++; err == nil {
			err = lines.Encode(traces(&c))
		}
		if err == nil && len(w.queue) == 0 { // so it is for the last one, too
			if err = out.Flush(); err == nil {
				buffered = 0
			}
		}
	}
	if err != nil {
		w.left.Add(buffered)
	}
	return err
}

// What follows is of opentelemetry/proto/trace/v1/trace.proto, in the JSON that the protocol has for it: identifiers in
// hexadecimal, numbers of 64 bits as texts (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
type (
	object = map[string]any
	span   struct {
		TraceID    string   `json:"traceId"`
		SpanID     string   `json:"spanId"`
		Parent     string   `json:"parentSpanId,omitempty"`
		Name       string   `json:"name"`
		Kind       int      `json:"kind"`
		Start      string   `json:"startTimeUnixNano"`
		End        string   `json:"endTimeUnixNano"`
		Attributes []object `json:"attributes,omitempty"`
		Status     object   `json:"status,omitempty"`
	}
)

const (
	internal, server = 1, 2 // kinds
	failed           = 2    // status
)

func attribute(key, kind string, value any) object {
	return object{"key": key, "value": object{kind: value}}
}

func text(key, value string) object { return attribute(key, "stringValue", value) }

func number(key string, n int64) object { return attribute(key, "intValue", strconv.FormatInt(n, 10)) }

// traces is an update's spans: its own and, below it, one for each thing that it waited for.
func traces(c *service.Course) object {
	trace := c.Parent.Trace
	if trace == "" {
		trace = id() + id()
	}
	own := span{TraceID: trace, SpanID: id(), Parent: c.Parent.Span, Name: "update", Kind: server,
		Start: unixNano(c.Asked), End: unixNano(c.Told), Attributes: []object{
			number("textpoke.update", c.ID), text("textpoke.client", c.Client), text("textpoke.ops", c.Ops),
			attribute("textpoke.enable", "boolValue", c.Enable), number("textpoke.records", int64(c.Records)),
			text("textpoke.state", string(c.State)),
		}}
	if c.Batch != 0 {
		own.Attributes = append(own.Attributes, number("textpoke.batch", c.Batch))
	}
	if c.State == journal.Failed {
		own.Status = object{"code": failed, "message": c.Error}
	}
	written := "sync"
	if c.Waits {
		written = "write"
	}
	all := []span{own}
	from := c.Asked
	for _, s := range []struct {
		name  string
		until time.Time
	}{{"accept", c.Handed}, {written, c.Written}, {"gather", c.Taken}, {"rounds", c.Switched}, {"sync", c.Told}} {
		if s.until.IsZero() { // it came to nothing like it
			continue
		}
		all = append(all, span{TraceID: trace, SpanID: id(), Parent: own.SpanID, Name: s.name, Kind: internal,
			Start: unixNano(from), End: unixNano(s.until)})
		from = s.until
	}
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": []object{text("service.name", "textpoke")}},
		"scopeSpans": []object{{"scope": object{"name": "github.com/textpoke/textpoke/service"}, "spans": all}},
	}}}
}

// id is a span's, random and no secret; two of them are a trace's.
func id() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func unixNano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
