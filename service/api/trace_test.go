// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/service"
)

// traced is a machine whose trace has a line of each of two functions, is lost once, and is too fast for its reader; then
// it goes on without a line.
type traced struct{ service.Machine }

func (traced) Trace(ctx context.Context, _ string, keep func(*service.Line) bool, tell func([]service.Line, int) error) error {
	var kept []service.Line
	for _, l := range []service.Line{{Kind: "function", Name: "fn1", Text: "a fn1"}, {Kind: "function", Name: "fn2", Text: "b fn2"},
		{CPU: 3, Lost: 9, Text: "CPU:3 [LOST 9 EVENTS]"}} {
		if keep(&l) {
			kept = append(kept, l)
		}
	}
	if err := tell(nil, 0); err != nil {
		return err
	}
	if err := tell(kept, 7); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestTrace: a client gets the lines of what it wants, with what is missing between them, as JSON and as text; the
// server's end ends the stream.
func TestTrace(t *testing.T) {
	w := ready(t, func(c *service.Config, _ *Config) {
		simulated := c.Machine
		c.Machine = func(l *cpus.Listener, log *zap.Logger) (service.Machine, error) {
			m, err := simulated(l, log)
			return traced{m}, err
		}
	})
	is[Update](w.do("POST", "/v1/updates", `{"client":"a","enable":true,"records":["fn2"],"wait":true}`), 200)
	for format, want := range map[string]string{
		"json": `{"kind":"function","name":"fn2","cpu":0,"text":"b fn2"}` + "\n" + `{"cpu":3,"text":"CPU:3 [LOST 9 EVENTS]","lost":9}` + "\n" +
			`{"cpu":0,"text":"# 7 lines are missing: they are read too slowly","missed":7}` + "\n",
		"text": "b fn2\nCPU:3 [LOST 9 EVENTS]\n# 7 lines are missing: they are read too slowly\n",
	} {
		resp, err := w.client.Get(w.http.URL + "/v1/trace?client=a&format=" + format)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		for n := 0; n < len(got); {
			more, err := resp.Body.Read(got[n:])
			if n += more; err != nil {
				t.Fatalf("%q: %v", got[:n], err)
			}
		}
		resp.Body.Close()
		if string(got) != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
		if last := strings.TrimSpace(want[strings.LastIndex(strings.TrimSpace(want), "\n")+1:]); format == "json" {
			var l TraceLine
			if err := json.Unmarshal([]byte(last), &l); err != nil || l.Missed != 7 {
				t.Errorf("%s: %+v %v", last, l, err)
			}
		}
	}
	for query, field := range map[string]string{"": "client", "client=a&format=xml": "format"} {
		if p := is[Problem](w.do("GET", "/v1/trace?"+query, nil), 400); p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// TestNoTrace: a machine without a trace says so.
func TestNoTrace(t *testing.T) {
	p := is[Problem](ready(t).do("GET", "/v1/trace?client=a", nil), 409)
	if p.Type != "urn:textpoke:problem:no-trace" {
		t.Errorf("%+v", p)
	}
}
