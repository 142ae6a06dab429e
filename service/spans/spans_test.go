// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// at is so many milliseconds after a time.
func at(ms int) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond)
}

// live is an update that was carried out.
func live(id int64) service.Course {
	return service.Course{Asked: at(0), Handed: at(1), Written: at(3), Taken: at(6), Switched: at(10), Told: at(15),
		Parent: service.Parent{Trace: strings.Repeat("a", 32), Span: strings.Repeat("b", 16)},
		Update: service.Update{ID: id, Client: "c", Ops: "function", Enable: true, Records: 4, State: "live", Batch: 7}}
}

// memory is a file in memory.
type memory struct{ bytes.Buffer }

func (*memory) Close() error { return nil }

// told is the lines that are written of updates, one each.
func told(t *testing.T, all ...service.Course) (lines []map[string]any) {
	t.Helper()
	var out memory
	w := New(&out)
	for _, c := range all {
		w.Tell(c)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, v)
	}
	return lines
}

// first goes down to the first object of lists.
func first(v any, names ...string) any {
	for _, name := range names {
		v = v.(map[string]any)[name]
		if list, ok := v.([]any); ok && name != "spans" {
			v = list[0]
		}
	}
	return v
}

// story is the spans of a line: name, parent and, in milliseconds, from when until when.
func story(line map[string]any) (out []string) {
	names := map[string]string{strings.Repeat("b", 16): "client", "": "none"}
	for _, s := range first(line, "resourceSpans", "scopeSpans", "spans").([]any) {
		s := s.(map[string]any)
		var from, until int64
		fmt.Sscan(s["startTimeUnixNano"].(string), &from)
		fmt.Sscan(s["endTimeUnixNano"].(string), &until)
		parent, _ := s["parentSpanId"].(string)
		start := at(0).UnixNano()
		out = append(out, fmt.Sprintf("%s of %s %d-%d", s["name"], names[parent], (from-start)/1e6, (until-start)/1e6))
		names[s["spanId"].(string)] = s["name"].(string)
	}
	return out
}

// TestSpans: an update's span has its client's as its parent, and below it what it waited for, one after the other.
func TestSpans(t *testing.T) {
	line := told(t, live(1))[0]
	want := "[update of client 0-15 accept of update 0-1 sync of update 1-3 gather of update 3-6 rounds of update 6-10 " +
		"sync of update 10-15]"
	if got := fmt.Sprint(story(line)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, s := range first(line, "resourceSpans", "scopeSpans", "spans").([]any) {
		if s := s.(map[string]any); s["traceId"] != strings.Repeat("a", 32) || len(s["spanId"].(string)) != 16 {
			t.Errorf("%v", s)
		}
	}
	own := first(line, "resourceSpans", "scopeSpans", "spans").([]any)[0].(map[string]any)
	wantOwn := "[map[key:textpoke.update value:map[intValue:1]] map[key:textpoke.client value:map[stringValue:c]] " +
		"map[key:textpoke.ops value:map[stringValue:function]] map[key:textpoke.enable value:map[boolValue:true]] " +
		"map[key:textpoke.records value:map[intValue:4]] map[key:textpoke.state value:map[stringValue:live]] " +
		"map[key:textpoke.batch value:map[intValue:7]]]"
	if got := fmt.Sprint(own["attributes"]); got != wantOwn || own["kind"] != 2. || own["status"] != nil {
		t.Errorf("%v %v %s\nwant %s", own["kind"], own["status"], got, wantOwn)
	}
	if name := first(line, "resourceSpans", "resource", "attributes", "value", "stringValue"); name != "textpoke" {
		t.Errorf("the resource is %v", line)
	}
}

// TestSpansOfOthers: what was cancelled has no rounds; what failed says why; without a traceparent each update has a trace
// of its own; and what its client does not record is not written.
func TestSpansOfOthers(t *testing.T) {
	cancelled, bad, own, other, unsampled := live(1), live(2), live(3), live(4), live(5)
	cancelled.State, cancelled.Waits, cancelled.Taken, cancelled.Switched, cancelled.Batch = "cancelled", true, time.Time{}, time.Time{}, 0
	bad.State, bad.Error = "failed", "why"
	own.Parent, other.Parent, unsampled.Parent.Unsampled = service.Parent{}, service.Parent{}, true
	lines := told(t, cancelled, bad, own, other, unsampled)
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4", len(lines))
	}
	if got := fmt.Sprint(story(lines[0])); got != "[update of client 0-15 accept of update 0-1 write of update 1-3 sync of update 3-15]" {
		t.Error(got)
	}
	of := func(line int) map[string]any {
		return first(lines[line], "resourceSpans", "scopeSpans", "spans").([]any)[0].(map[string]any)
	}
	if got := fmt.Sprint(of(1)["status"]); got != "map[code:2 message:why]" {
		t.Error(got)
	}
	if a, b := of(2)["traceId"].(string), of(3)["traceId"].(string); a == b || len(a) != 32 || of(2)["parentSpanId"] != nil {
		t.Errorf("%v and %v", of(2), of(3))
	}
}

// refusing is a file that takes nothing.
type refusing struct{}

var errFull = errors.New("no room")

func (refusing) Write([]byte) (int, error) { return 0, errFull }
func (refusing) Close() error              { return nil }

// TestSpansThatCannotBeWritten: updates do not wait for a disk that takes nothing, and the end says how many are missing.
func TestSpansThatCannotBeWritten(t *testing.T) {
	w := New(refusing{})
	for i := range 10_000 {
		w.Tell(live(int64(i)))
	}
	if err := w.Close(t.Context()); err == nil || err.Error() != "no room\nthe spans of 10000 updates were left out" {
		t.Error(err)
	}
}

// TestSpansWithoutReader: Close waits no longer than its context for a reader.
func TestSpansWithoutReader(t *testing.T) {
	_, out := io.Pipe()
	w := New(out)
	w.Tell(live(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := w.Close(ctx)
	if !errors.Is(err, io.ErrClosedPipe) || !strings.HasSuffix(err.Error(), "the spans of 1 updates were left out") {
		t.Error(err)
	}
}
