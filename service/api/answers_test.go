// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// TestRefusals: the whole answer to each request that is wrong in one place, and the status of those at their borders.
func TestRefusals(t *testing.T) {
	w := newWorld(t, atRest(t))
	w.handler.Ready(w.service, w.lab)
	var out bytes.Buffer
	ask := func(method, path, query, body string) {
		t.Helper()
		rec := w.answered(t, method, path, query, body)
		fmt.Fprintf(&out, "%s %s?%.60s %.60q: %d", method, path, query, body, rec.Code)
		for _, name := range []string{"Allow", "Retry-After"} {
			if value := rec.Header().Get(name); value != "" {
				fmt.Fprintf(&out, " %s %s", name, value)
			}
		}
		if p := new(Problem); rec.Code >= 400 && json.Unmarshal(rec.Body.Bytes(), p) == nil {
			fmt.Fprintf(&out, " %s %q field %q: %s", p.Type, p.Title, p.Field, p.Detail)
		}
		fmt.Fprintln(&out)
	}
	numbers := func(name string) []string {
		return []string{name + "=", name + "=-1", name + "=0", name + "=1", name + "=x", name + "=1.5", name + "=1000",
			name + "=1001",
			name + "=2147483647", name + "=2147483648", name + "=99999999999999999999", name + "=1&" + name + "=2"}
	}
	nothing := [][]string{{"", "x=1"}}
	flags := func(name string) []string {
		return []string{name + "=true", name + "=false", name + "=yes", name + "="}
	}
	words := func(name string) []string {
		return []string{name + "=x", name + "=", name + "=%00", name + "=%ff", name + "=" + strings.Repeat("x", 5000)}
	}
	for _, c := range []struct {
		path    string
		queries [][]string
	}{
		{"/v1/updates", [][]string{numbers("limit"), numbers("after"), numbers("before"), flags("newest"), words("state"),
			words("client"), words("ops"), {"state=live", "limt=1", "limit=1;2", "%zz"}}},
		{"/v1/records", [][]string{numbers("limit"), numbers("after"), flags("enabled"), words("filter")}},
		{"/v1/clients", [][]string{numbers("limit"), words("after"), words("after-ops"), {"after-ops=x&after=y"}}},
		{"/v1/results", [][]string{numbers("limit"), numbers("after"), numbers("before"), flags("newest"), words("state"),
			words("name")}},
		{"/v1/compare", [][]string{words("buffers"), {"buffers=256,dynamic", "buffers=0", "buffers=1,x",
			"buffers=" + strings.Repeat("1,", 15) + "1", "buffers=" + strings.Repeat("1,", 16) + "1"}}},
		{"/v1/trace", [][]string{words("format"), {"", "client=x", "client=x&format=text", "client=%00"}}},
		{"/v1/events", [][]string{{"after=x", "after=-1", "kind=x", "kind=update&kind=x", "renew=true", "renew=x", "x=1"}}},
		{"/v1/updates/1", [][]string{flags("wait"), {"x=1"}}}, {"/v1/results/1", [][]string{flags("wait"), {"x=1"}}},
		{"/debug/pprof/goroutine", [][]string{{"debug=x", "debug=3", "seconds=0", "seconds=x"}}},
		{"/v1/cpus", nothing}, {"/v1/clients/x", nothing}, {"/v1/records/none/wants", nothing},
		{"/v1/clients/x/ops/tracer", nothing}, {"/v1/updates/0", nothing}, {"/v1/updates/x", nothing}, {"/v1/updates/01",
			nothing},
		{"/v1/updates/-1", nothing}, {"/v1/results/0", nothing}, {"/v1/results/1/files/x", nothing}, {"/v1/cpus/0", nothing},
		{"/v1/nothing", nothing}, {"/v1/", nothing}, {"//v1/updates", nothing}, {"/v1/updates/../updates", nothing},
		{"/debug/pprof/none", nothing},
	} {
		for _, list := range c.queries {
			for _, query := range list {
				ask("GET", c.path, query, "")
			}
		}
	}
	for _, c := range [][3]string{
		{"PUT", "/v1/updates", ""}, {"DELETE", "/v1/updates/1", ""}, {"DELETE", "/v1/updates/1", "{}"}, {"GET", "/v1/stats",
			"{}"},
		{"PUT", "/v1/cpus/0", ""}, {"PUT", "/v1/cpus/0", "{}"}, {"PUT", "/v1/cpus/7", `{"online":true}`},
		{"PUT", "/v1/cpus/x", `{"online":true}`}, {"PUT", "/v1/cpus/0", `{"online":1}`}, {"PUT", "/v1/cpus/0",
			`{"onlin":true}`},
		{"PUT", "/v1/cpus/0", `{"online":true,"online":true}`}, {"PUT", "/v1/cpus/0", `{"online":true}{}`},
		{"PUT", "/v1/cpus/0", `{"online":`}, {"PUT", "/v1/cpus/0", `[]`}, {"PUT", "/v1/cpus/0", `{"ONLINE":true}`},
		{"PUT", "/v1/cpus/0", `{"online":true]`}, {"PUT", "/v1/cpus/0", "{\"online\":\"\xff\"}"},
		{"POST", "/v1/updates", `{}`}, {"POST", "/v1/updates", `{"client":"c"}`}, {"POST", "/v1/updates",
			`{"client":"c","enable":true}`},
		{"POST", "/v1/updates", `{"client":"","enable":true,"filter":["*"]}`},
		{"POST", "/v1/updates", `{"client":"c\u0001","enable":true,"filter":["*"]}`},
		{"POST", "/v1/updates", `{"client":"` + strings.Repeat("c", 300) + `","enable":true,"filter":["*"]}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["*"],"records":["x"]}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["none_of_these"]}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"records":["none_of_these"]}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"records":[1]}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["["]}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["*"],"deadline":"soon"}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["*"],"deadline":5}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["*"],"key":"` + strings.Repeat("k", 300) + `"}`},
		{"POST", "/v1/updates", `{"client":"c","enable":true,"filter":["*"],"ops":"` + strings.Repeat("o", 300) + `"}`},
		{"POST", "/v1/updates", `null`}, {"POST", "/v1/updates", ``}, {"POST", "/v1/updates", `{"client":{}}`},
		{"POST", "/v1/clients/none/renew", ""}, {"POST", "/v1/clients/none/renew", "{}"},
		{"PUT", "/v1/clients/c/ops/o", `{}`}, {"PUT", "/v1/clients/c/ops/o", `{"records":["none_of_these"]}`},
		{"PUT", "/v1/clients/c/ops/o", `{"filter":["["]}`}, {"PUT", "/v1/clients/c%00/ops/o", `{"records":[]}`},
		{"POST", "/v1/experiments", `{}`}, {"POST", "/v1/experiments", `{"name":"none"}`},
		{"POST", "/v1/experiments", `{"name":"endless","config":{"x":["1"]}}`},
		{"POST", "/v1/experiments", `{"name":"endless","config":{"x":1}}`}, {"DELETE", "/v1/results/9", ""},
		{"PATCH", "/v1/updates", ""}, {"BREW", "/v1/updates", ""}, {"POST", "/", ""}, {"HEAD", "/v1/stats", ""},
	} {
		ask(c[0], c[1], "", c[2])
	}
	golden.Check(t, filepath.Join("testdata", "refusals.txt"), out.Bytes())
}

// TestProblemOf: the whole problem that each error becomes, and how long a client is to wait.
func TestProblemOf(t *testing.T) {
	var out bytes.Buffer
	show := func(what string, err error) {
		rec := httptest.NewRecorder()
		p := problemOf(err)
		p.write(rec)
		fmt.Fprintf(&out, "%s: %d %v %q %s", what, rec.Code, rec.Header(), p.Error(), rec.Body)
	}
	for _, a := range answers {
		show(a.err.Error(), a.err)
		show("wrapped", fmt.Errorf("why: %w", a.err))
	}
	show("own", problem(http.StatusTeapot, "field", "%d cups", 3))
	show("own, wrapped", fmt.Errorf("why: %w", problem(http.StatusTeapot, "", "%d cups", 3)))
	show("without words", &Problem{Title: "T", Status: 400})
	show("field", &service.FieldError{Field: "f", Reason: "r %d"})
	show("size", &http.MaxBytesError{Limit: 7})
	for _, after := range []time.Duration{time.Nanosecond, time.Second, time.Second + 1} {
		show("rate", &rateError{after: after})
	}
	show("damaged", &journal.DamagedError{File: "/secret", Why: "bits"})
	show("other", errors.New("inside"))
	show("passing", &journal.TroubleError{Kind: journal.ErrFull})
	show("deadline", context.DeadlineExceeded)
	for _, p := range []*Problem{{Title: "T"}, {Title: "T", Detail: "d"}, {Title: "T", Detail: "d", Field: "f"},
		{Title: "T", Field: "f"}} {
		fmt.Fprintln(&out, p)
	}
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get", "BREW", ""} {
		fmt.Fprintln(&out, m, methodName(m))
	}
	golden.Check(t, filepath.Join("testdata", "problems.txt"), out.Bytes())
}
