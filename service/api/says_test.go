// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// TestRefusalsSay: the field and the words of each refusal before a request is read.
func TestRefusalsSay(t *testing.T) {
	all := tokens(t, "full "+fullToken+"\nread "+readToken+"\nown "+ownToken+" a b\n")
	open := New(Config{Log: zap.NewNop()})
	guarded := New(Config{Log: zap.NewNop(), Tokens: all})
	draining := New(Config{Log: zap.NewNop()})
	draining.Ready(nil, nil)
	draining.Drain()
	for _, c := range []struct {
		h      *Handler
		need   Access
		header string // name: value
		host   string
		want   string
	}{
		{open, Read, "", "localhost", "the machine is being started"}, {open, Open, "", "localhost", "<nil>"},
		{draining, Own, "", "localhost", "the service is stopping"}, {draining, Read, "", "localhost", "<nil>"},
		{open, Open, "", "evil.example", `Host: "evil.example": without tokens, only localhost is answered`},
		{open, Open, "Sec-Fetch-Site: cross-site", "localhost",
			`Sec-Fetch-Site: "cross-site": want a request of this server's own page`},
		{open, Open, "Origin: http://evil.example", "localhost",
			`Origin: "http://evil.example": want a request of this server's own page`},
		{guarded, Read, "", "x", "Authorization: want Bearer and a token"},
		{guarded, Read, "Authorization: Basic " + readToken, "x", "Authorization: want Bearer and a token"},
		{guarded, Read, "Authorization: Bearer wrong-0123456789abcdef", "x", "Authorization: no such token"},
		{guarded, Own, "Authorization: bearer " + readToken, "x", "Authorization: this token may only read"},
		{guarded, Full, "Authorization: Bearer " + ownToken, "x",
			"Authorization: this token may only read, and ask for updates of its clients"},
		{guarded, Full, "Authorization: Bearer " + fullToken, "x", "the machine is being started"},
		{guarded, Open, "", "x", "<nil>"},
	} {
		r := httptest.NewRequest("GET", "/v1/x", nil)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		r.Host = c.host
		if got := fmt.Sprint(c.h.allowed(route{path: "/v1/x", access: c.need}, r, &answer{})); got != c.want {
			t.Errorf("%s, %v of %s: %s, want %s", c.header, c.need, c.host, got, c.want)
		}
	}
	a := &answer{clients: []string{"a", "b"}}
	for client, want := range map[string]string{"a": "<nil>", "c": `client: "c": who asks may do so for a, b`} {
		if got := fmt.Sprint(mine(a, client)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := ofPeer("ann", false, Full); err == nil ||
		err.Error() != `"ann" may read, and ask for updates of the client "ann"` {
		t.Error(err)
	}
	if err := open.page(httptest.NewRecorder(), nil); err == nil || err.Error() != "this server has no page" {
		t.Error(err)
	}
	if err := open.profile(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); err == nil ||
		err.Error() != "Authorization: profiles want a full token, and this server has no tokens" {
		t.Error(err)
	}
}

// TestValuesSay: a value of a configuration that is neither a text nor a number, nor a list of these, is refused by
// its name.
func TestValuesSay(t *testing.T) {
	w := ready(t)
	for value, want := range map[string]string{"{}": "config.x", "[[1]]": "config.x",
		"null": "config.x", "[null]": "config.x"} {
		p := is[Problem](w.do("POST", "/v1/experiments", `{"name":"answer","config":{"x":`+value+`}}`), 400)
		if p.Field != want || value != "null" && p.Detail != "want a text, a number, true or false, or a list of these" {
			t.Errorf("%s: %s: %s", value, p.Field, p.Detail)
		}
	}
}

// TestMetricsAreNamed: each thing that is measured has a name of its own, what it is, and as many values as
// there were.
func TestMetricsAreNamed(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"wait":true`)), 200)
	is[CPUs](w.do("GET", "/v1/cpus", nil), 200)
	is[CPUs](w.do("GET", "/v1/cpus", nil), 200)
	text := w.do("GET", "/metrics", nil).body
	for name, help := range map[string]string{
		"accept_seconds":            "Time until an update that was asked for was durable.",
		"wait_seconds":              "Time from asking until a batch took it up.",
		"live_seconds":              "Time from asking until the end was durable.",
		"batch_requests":            "Updates that one batch took up together.",
		"journal_commit_seconds":    "Time that a transaction takes to get on the disk.",
		"http_request_seconds":      "Time from the end of a request's head to the end of its answer.",
		"rounds_total":              "Rounds of interrupts.",
		"event_streams":             "Streams of events that are open.",
		"build_info":                "Always 1; the labels say which program this is.",
		"text_updates_total":        "Updates of the text.",
		"http_requests_total":       "Requests answered.",
		"forecasts_missed_total":    "Forecasts that did not hold, or others interrupted every CPU meanwhile.",
		"lost_records":              "Records that clients wanted at the start and that the table does not have any more.",
		"text_updates_failed_total": "Updates of the text that failed and left every site as it was.",
	} {
		if line := "# HELP textpoke_" + name + " " + help + "\n"; !strings.Contains(text, line) {
			t.Errorf("/metrics has no %s", line)
		}
	}
	for _, line := range []string{"textpoke_accept_seconds_count 1", "textpoke_wait_seconds_count 1",
		"textpoke_live_seconds_count 1",
		"textpoke_batch_requests_count 1", `textpoke_http_request_seconds_count{route="/v1/cpus"} 2`,
		"textpoke_event_streams 0",
		"textpoke_text_updates_total 1", "textpoke_ready 1",
		`textpoke_build_info{goversion="go",revision="abc",version="0"} 1`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("/metrics has no %s", line)
		}
	}
	if strings.Contains(text, "textpoke_journal_commit_seconds_count 0\n") {
		t.Error("no transaction was measured")
	}
}

// TestAttendEnds: when the renewing of leases has ended, none goes on.
func TestAttendEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := small(t, "busy=2")
		var armed atomic.Bool
		goOn := make(chan struct{})
		c.Now = func() time.Time {
			if armed.Load() {
				<-goOn
			}
			return time.Now()
		}
		st, err := journal.Open(t.Context(), t.TempDir(), service.Identity(c.Table))
		if err != nil {
			t.Fatal(err)
		}
		c.Store = st
		s, err := service.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		h := New(Config{Log: zap.NewNop()})
		h.Ready(s, nil)
		h.attend(false, "a")()
		end, ended := h.attend(true, "a"), make(chan struct{})
		armed.Store(true)
		time.Sleep(10 * time.Second) // it looks what time it is
		go func() { defer close(ended); end() }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it has ended while a lease is looked at")
		default:
		}
		armed.Store(false)
		close(goOn)
		<-ended
		if err := errors.Join(s.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}
