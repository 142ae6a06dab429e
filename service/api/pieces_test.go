// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// harmed is the way to a reader: it says what is asked of it, and one of these steps fails.
type harmed struct {
	fails int // the first one is 1; 0 for none
	said  []string
}

var errHarm = errors.New("harm")

func (h *harmed) step(what string) error {
	if h.said = append(h.said, what); len(h.said) == h.fails {
		return errHarm
	}
	return nil
}

func (h *harmed) Header() http.Header { return http.Header{} }

func (h *harmed) WriteHeader(int) {}

func (h *harmed) Write(b []byte) (int, error) { return len(b), h.step(string(b)) }

func (h *harmed) FlushError() error { return h.step("flush") }

func (h *harmed) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		return h.step("no deadline")
	}
	return h.step("deadline")
}

// TestPieceFails: a piece is written with a deadline, and without one once it is there; each step's error ends it.
func TestPieceFails(t *testing.T) {
	steps := []string{"deadline", "text", "flush", "no deadline"}
	for fails := range len(steps) + 1 {
		w := &harmed{fails: fails}
		err := (&pieces{w, http.NewResponseController(w), time.Minute, bytes.NewBufferString("text")}).send()
		want, wantErr := steps, error(nil)
		if fails > 0 {
			want, wantErr = steps[:fails], errHarm
		}
		if fmt.Sprint(w.said) != fmt.Sprint(want) || err != wantErr {
			t.Errorf("step %d fails: %q, %v; want %q, %v", fails, w.said, err, want, wantErr)
		}
	}
}

// TestConnections: of two connections at most, the one that has been idle for longest goes when a third one comes.
// Those that ended count no more, whoever ended them.
func TestConnections(t *testing.T) {
	conns := map[string]net.Conn{}
	for _, name := range []string{"a", "b", "c", "d"} {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		conns[name] = here
	}
	c := &connLimit{most: 2, open: map[net.Conn]*list.Element{}}
	for i, step := range []struct {
		conn  string
		state http.ConnState
		out   string
		open  int
		idle  int
	}{
		{"a", http.StateActive, "", 0, 0}, // it was never new
		{"a", http.StateNew, "", 1, 1},
		{"b", http.StateNew, "", 2, 2},
		{"a", http.StateActive, "", 2, 1},
		{"a", http.StateIdle, "", 2, 2}, // behind b
		{"c", http.StateNew, "b", 2, 2},
		{"b", http.StateClosed, "", 2, 2},
		{"c", http.StateActive, "", 2, 1},
		{"a", http.StateClosed, "", 1, 0},
		{"b", http.StateNew, "", 2, 1},
		{"b", http.StateActive, "", 2, 0},
		{"d", http.StateNew, "d", 2, 0}, // the others are busy
		{"c", http.StateHijacked, "", 1, 0},
	} {
		out := c.note(conns[step.conn], step.state)
		if out != conns[step.out] || len(c.open) != step.open || c.idle.Len() != step.idle {
			t.Errorf("step %d, %s %v: %v goes, %d open, %d idle; want %+v", i, step.conn, step.state, out != nil, len(c.open),
				c.idle.Len(), step)
		}
	}
}
