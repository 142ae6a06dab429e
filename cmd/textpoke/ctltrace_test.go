// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/readtrace"
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
		if strings.HasPrefix(c.args, "count") && asked != "/v1/trace?client=a&ops=graph" {
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
