// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/service/api"
)

// TestTraceTimeline: another reader finds the calls of each task nested as they were; one whose end was lost ends with the
// call around it, an end without a beginning is left out.
func TestTraceTimeline(t *testing.T) {
	var b bytes.Buffer
	w := newTraceTimeline(&b)
	call := func(task, name string, at, took int64, end bool) {
		l := &api.TraceLine{}
		l.Kind, l.Task, l.Name, l.NS, l.Took, l.End, l.CPU = tracefs.GraphLine, task, name, at, took, end, 3
		if task != "" {
			l.PID = 7
		}
		if err := w.add(l); err != nil {
			t.Error(err)
		}
	}
	call("a", "none", 1, 5, true)
	call("a", "outer", 10, 0, false)
	call("a", "leaf", 12, 3, false)
	call("b", "other", 13, 0, false)
	call("a", "inner", 20, 0, false)
	call("a", "lost", 22, 0, false)
	call("a", "inner", 30, 10, true)
	call("b", "other", 35, 22, true)
	call("a", "outer", 40, 30, true)
	call("", "early", 50, 2, false)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := readtrace.Read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, track := range f.Tracks {
		for _, s := range track.Slices {
			got[fmt.Sprintf("%s %s %d-%d", track.Name, s.Name, s.From, s.Until)] = true
		}
	}
	want := map[string]bool{"a-7 outer 10-40": true, "a-7 leaf 12-15": true, "a-7 inner 20-30": true, "a-7 lost 22-30": true,
		"b-7 other 13-35": true, "CPU 3 early 50-52": true}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	l := &api.TraceLine{}
	if l.Kind = tracefs.GraphLine; w.add(l) == nil {
		t.Error("a line without its time is accepted")
	}
}
