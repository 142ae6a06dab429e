// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/service/api"
)

// TestCtlTrace: a server's lines as text, counted, and as a timeline; the one that the end of --for cuts in two is none.
func TestCtlTrace(t *testing.T) {
	const lines = `{"kind":"function","name":"vfs_read","cpu":1,"time_ns":5000,"text":"cat vfs_read"}
{"kind":"function","name":"vfs_read","cpu":0,"time_ns":6000,"text":"sh vfs_read"}
%s{"cpu":1,"text":"CPU:1 [LOST 9 EVENTS]","lost":9}
`
	const graph = `{"kind":"graph","name":"vfs_open","cpu":1,"text":"vfs_open() {"}
{"kind":"graph","name":"vfs_open","cpu":1,"end":true,"text":"}"}
`
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		more := ""
		if strings.Contains(asked, "graph") {
			more = graph
		}
		fmt.Fprintf(w, lines, more)
		if strings.Contains(asked, "client=cut") {
			fmt.Fprint(w, `{"kind":"event","name":"sched_sw`)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "x.pftrace")
	for _, c := range []struct{ args, want string }{
		{"trace --client a b", ""},
		{"trace --client a", "cat vfs_read\nsh vfs_read\nCPU:1 [LOST 9 EVENTS]\n"},
		{"trace --client cut --for 2s", "cat vfs_read\nsh vfs_read\nCPU:1 [LOST 9 EVENTS]\n"},
		{"count --client a --ops graph --for 4s --format csv",
			"kind,name,calls,calls_per_s\n,lost,9,2.25\nfunction,vfs_read,2,0.5\ngraph,vfs_open,1,0.25\n"},
		{"trace --client a --trace " + file, ""},
	} {
		r := textpoke(t, append([]string{"ctl", "--server", s.URL}, strings.Fields(c.args)...)...)
		if ok := !strings.Contains(c.args, "a b"); r.out != c.want || ok != (r.code == exitDone) {
			t.Errorf("%s: %d %s%s, want %s", c.args, r.code, r.out, r.err, c.want)
		}
		if strings.HasPrefix(c.args, "count") && asked != "/v1/trace?client=a&ops=graph&renew=false" {
			t.Errorf("asks for %s", asked)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := readtrace.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, track := range trace.Tracks {
		for _, s := range track.Slices {
			got = append(got, fmt.Sprintf("%s %s %d %v", track.Name, s.Name, s.From, s.Instant))
		}
	}
	if want := "CPU 1 vfs_read 5000 true,CPU 1 9 events lost 6000 true,CPU 0 vfs_read 6000 true"; strings.Join(got, ",") != want {
		t.Errorf("timeline %q, want %s", got, want)
	}
}

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
