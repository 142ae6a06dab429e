// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// TestRate: a token has so many requests, its answers say how many are left, and one too many is refused with the time
// that it takes. Another token has its own, and what anybody may ask for costs none.
func TestRate(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) {
		c.Tokens = tokens(t, "full "+fullToken+"\nread "+readToken+"\n")
		c.Limits.Rate = service.Limit{Max: 3, Period: time.Hour}
	})
	w.token = readToken
	for _, left := range []string{"2", "1", "0"} {
		got := w.do("GET", "/v1/stats", nil)
		if limit := got.header.Get("RateLimit"); got.status != 200 || !strings.HasPrefix(limit, `"token";r=`+left+`;t=`) ||
			got.header.Get("RateLimit-Policy") != `"token";q=3;w=3600` {
			t.Errorf("%d, %q, want %s left", got.status, limit, left)
		}
		w.do("GET", "/healthz", nil)
	}
	got := w.do("GET", "/v1/stats", nil)
	if p := is[Problem](got, 429); p.Type != "urn:textpoke:problem:rate-limited" || got.header.Get("Retry-After") != "1200" {
		t.Errorf("%+v, after %s s", p, got.header.Get("Retry-After"))
	}
	w.token = fullToken
	is[Stats](w.do("GET", "/v1/stats", nil), 200)
}

// TestRateWithoutTokens: who shows a token that nobody asked for has no requests of its own for it; and the most
// requests that there can be are not fewer than none.
func TestRateWithoutTokens(t *testing.T) {
	for most, want := range map[int]string{2: `"token";r=0;`, math.MaxInt: `"token";r=9223372036854775807;`} {
		w := ready(t, func(_ *service.Config, c *Config) { c.Limits.Rate = service.Limit{Max: most, Period: time.Hour} })
		var got reply
		for _, w.token = range []string{"", "one", "two"} {
			got = w.do("GET", "/v1/stats", nil)
		}
		if limit := got.header.Get("RateLimit"); (got.status == 429) != (most == 2) || !strings.HasPrefix(limit, want) {
			t.Errorf("of %d: %d, %q, want %q", most, got.status, limit, want)
		}
	}
}

// TestTraceFlags: the first bit of the flags says whether the client records its trace (3.2.2.5).
func TestTraceFlags(t *testing.T) {
	for flags, unsampled := range map[string]bool{"00": true, "01": false, "02": true, "ff": false} {
		r := httptest.NewRequest("POST", "/v1/updates", nil)
		id, span := strings.Repeat("a", 32), strings.Repeat("b", 16)
		r.Header.Set("Traceparent", "00-"+id+"-"+span+"-"+flags)
		if got, want := traceOf(r), (service.Parent{Trace: id, Span: span, Unsampled: unsampled}); got != want {
			t.Errorf("flags %s: %+v, want %+v", flags, got, want)
		}
	}
}

// TestTraceparent: the trace that a request is part of is in the log; what is no traceparent is not, and harms nothing.
func TestTraceparent(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for said, known := range map[string]bool{
		"00-" + id + "-" + span + "-01": true, "cc-" + id + "-" + span + "-01-what-comes": true, "": false, "00": false,
		"00-" + id + "-" + span + "-01-x": false, "ff-" + id + "-" + span + "-01": false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false, "00-" + id + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + strings.ToUpper(id) + "-" + span + "-01": false,
	} {
		w := ready(t)
		is[Stats](w.do("GET", "/v1/stats", nil, "Traceparent", said), 200)
		if got := strings.Contains(w.log.String(), `"trace_id":"`+id+`"`); got != known {
			t.Errorf("%q: in the log %v", said, got)
		}
	}
}
