// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// TestBodiesAreExact: what a decoder would mend in silence is refused, so that two
// requests that differ are never taken for one.
func TestBodiesAreExact(t *testing.T) {
	w := ready(t)
	for _, c := range []struct{ name, body, field, says string }{
		{"a key of one byte that is no UTF-8", request("a", true, `,"filter":["*"],"key":"`+"\xff"+`"`), "", "UTF-8"},
		{"another one", request("a", false, `,"filter":["*"],"key":"`+"\xfe"+`"`), "", "UTF-8"},
		{"half a pair", request("a", true, `,"filter":["*"],"key":"\ud800"`), "", `\ud800`},
		{"the other half", request("a", true, `,"filter":["*"],"key":"x\uDC00"`), "", `\uDC00`},
		{"two first halves", request("a", true, `,"filter":["*"],"key":"\ud83d\ud83d\ude00"`), "", `\ud83d`},
		{"a client twice", request("a", true, `,"filter":["*"],"client":"b"`), "client", "twice"},
		{"twice, the second escaped", request("a", true, `,"filter":["*"],"cli\u0065nt":"b"`), "client", "twice"},
		{"capitals", `{"Client":"a","enable":true,"filter":["*"]}`, "Client", `"client"`},
		{"a sharp s that folds", `{"client":"a","enable":true,"filter":["*"],"deadſine":1}`, "deadſine", ""},
		{"twice, inside", `{"name":"answer","config":{"some_numbers":1,"some_numbers":2}}`, "config.some_numbers", "twice"},
	} {
		path := "/v1/updates"
		if strings.Contains(c.body, "config") {
			path = "/v1/experiments"
		}
		p := is[Problem](w.do("POST", path, c.body), 400)
		if p.Field != c.field || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
	for _, good := range []string{`"\ud83d\ude00"`, `"\\ud800"`, `"\u00e9"`, `"😀"`} {
		is[Update](w.do("POST", "/v1/updates", request("a"+good, true, `,"filter":["*"],"wait":true,"key":`+good)), 200)
	}
}

// TestNoCodings: a body that is packed is refused, and not read as something else.
func TestNoCodings(t *testing.T) {
	w := ready(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, request("a", true, `,"filter":["*"]`)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for coding, want := range map[string]int{"gzip": 415, "br": 415, "identity": 202} {
		body := packed.String()
		if want == 202 {
			body = request("a", true, `,"filter":["*"]`)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", w.http.URL+"/v1/updates", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Content-Encoding", coding)
		if r := w.send(req); r.status != want {
			t.Errorf("%s: %d %s, want %d", coding, r.status, r.body, want)
		}
	}
}

// TestLimitsAreTheDocuments: what is written about limits is what holds.
func TestLimitsAreTheDocuments(t *testing.T) {
	text, err := os.ReadFile("../../docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| a request's body | 1 MiB; %d patterns or %d,000 records |", maxPatterns, maxRecords/1000)
	if !strings.Contains(string(text), row) {
		t.Errorf("docs/service.md does not say %s", row)
	}
	for field, most := range map[string]int{"filter": maxPatterns, "records": maxRecords} {
		list := strings.TrimSuffix(strings.Repeat(`"a",`, most+1), ",")
		pointer := "/components/schemas/Request"
		if valid(pointer, []byte(`{"client":"a","enable":true,"`+field+`":[`+list+`]}`)) == nil ||
			valid(pointer, []byte(`{"client":"a","enable":true,"`+field+`":[`+list[:len(list)-4]+`]}`)) != nil {
			t.Errorf("the document's limit of %s is not %d", field, most)
		}
	}
}

// TestFilterIsBounded: a filter costs what its expressions cost, however few texts they
// are sent in.
func TestFilterIsBounded(t *testing.T) {
	w := ready(t)
	for n, want := range map[int]int{maxPatterns: 202, maxPatterns + 1: 400} {
		words := strings.TrimSuffix(strings.Repeat("* ", n), " ")
		if r := w.do("POST", "/v1/updates", request("a", true, `,"filter":["`+words+`"]`)); r.status != want {
			t.Errorf("%d expressions in one text: %d %s, want %d", n, r.status, r.body, want)
		}
		r := w.do("GET", "/v1/records?filter="+strings.ReplaceAll(words, " ", "+"), nil)
		if (r.status == 200) != (want == 202) {
			t.Errorf("%d expressions in one parameter: %d %s", n, r.status, r.body)
		}
	}
}

// TestCrossSite: a page of another site gets nothing done, with any method; a link to
// our page works.
func TestCrossSite(t *testing.T) {
	w := ready(t)
	for _, c := range []struct {
		path, site, mode, origin string
		want                     int
	}{
		{"/v1/records?filter=*", "cross-site", "no-cors", "", 403}, // <img src=...>
		{"/v1/records?filter=*", "same-site", "no-cors", "", 403},  // another port of this machine
		{"/v1/records?filter=*", "cross-site", "navigate", "", 403},
		{"/v1/records?filter=*", "", "", "http://evil.example", 403},
		{"/v1/records?filter=*", "", "", "null", 403},
		{"/v1/records?filter=*", "same-origin", "cors", "", 200},
		{"/v1/records?filter=*", "none", "navigate", "", 200},
		{"/v1/records?filter=*", "", "", w.http.URL, 200},
		{"/v1/records?filter=*", "", "", "", 200},
		{"/", "cross-site", "navigate", "", 200},
		{"/", "cross-site", "no-cors", "", 403},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.http.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Origin": c.origin} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		if r := w.send(req); r.status != c.want {
			t.Errorf("%+v: %d %s", c, r.status, r.body)
		}
	}
}

// TestHalfSentRequests: whoever may do nothing holds no connection with a request whose
// body does not come: it is refused and closed at once.
func TestHalfSentRequests(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) { c.Tokens = tokens(t, "full "+fullToken+"\n") })
	for _, head := range []string{
		"POST /v1/updates HTTP/1.1\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n",
		"POST /v1/updates HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
		"PUT /v1/cpus/1 HTTP/1.1\r\nContent-Length: 1000\r\nAuthorization: Bearer wrong\r\n",
		"GET /healthz HTTP/1.1\r\nContent-Length: 1000\r\n",
		"POST /nothing HTTP/1.1\r\nContent-Length: 1000\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 1000\r\n",
	} {
		c := w.raw(t)
		c.write(head + "Host: localhost\r\n\r\n")
		if err := c.SetReadDeadline(time.Now().Add(readTime / 2)); err != nil { // before the server gives up anyway
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 4") ||
			!strings.Contains(string(answer), "Connection: close") {
			t.Errorf("%q: %v, and it is still open: %s", head, err, answer)
		}
	}
}
