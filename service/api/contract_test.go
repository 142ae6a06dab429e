// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/textpoke/textpoke/service"
)

// contract is a client's transport that holds every answer against openapi.json:
// the path, the method, the status, the media type and the body's schema. It knows
// the document and HTTP, and nothing of the handlers.
type contract struct {
	t    testing.TB
	next http.RoundTripper
}

// operation is what the document says of a method of a path.
type operation struct {
	Parameters []struct {
		Name, In string
	}
	RequestBody *struct {
		Content map[string]json.RawMessage
	}
	Responses map[string]json.RawMessage
}

var readDocument = sync.OnceValue(func() map[string]map[string]operation {
	var doc struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		panic(err)
	}
	return doc.Paths
})

// pathOf finds the template of a path.
func pathOf(path string) string {
	for template := range readDocument() {
		a, b := strings.Split(template, "/"), strings.Split(path, "/")
		if slices.EqualFunc(a, b, func(part, value string) bool { return part == value || strings.HasPrefix(part, "{") }) {
			return template
		}
	}
	return ""
}

var schemas = struct {
	sync.Mutex
	compiler *jsonschema.Compiler
	known    map[string]*jsonschema.Schema
}{known: map[string]*jsonschema.Schema{}}

// schemaAt compiles what a JSON pointer into the document names.
func schemaAt(pointer string) (*jsonschema.Schema, error) {
	schemas.Lock()
	defer schemas.Unlock()
	if s := schemas.known[pointer]; s != nil {
		return s, nil
	}
	if schemas.compiler == nil {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return nil, err
		}
		schemas.compiler = jsonschema.NewCompiler()
		schemas.compiler.AssertFormat()
		if err := schemas.compiler.AddResource("openapi.json", doc); err != nil {
			return nil, err
		}
	}
	s, err := schemas.compiler.Compile("openapi.json#" + pointer)
	schemas.known[pointer] = s
	return s, err
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// valid holds a JSON text against a schema.
func valid(pointer string, body []byte) error {
	s, err := schemaAt(pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func (c *contract) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := c.check(req, resp); err != nil {
		c.t.Errorf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	return resp, nil
}

// CloseIdleConnections is for http.Client's.
func (c *contract) CloseIdleConnections() {
	if t, ok := c.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// check holds one answer against the document. A path or method that it does not
// know must be answered with a problem.
func (c *contract) check(req *http.Request, resp *http.Response) error {
	if resp.Header.Get(requestIDHeader) == "" {
		return fmt.Errorf("no request id")
	}
	template := pathOf(req.URL.Path)
	method := strings.ToLower(req.Method)
	if method == "head" { // GET without what it would say
		method = "get"
	}
	op, known := readDocument()[template][method]
	at, content := "/components/responses/Problem", json.RawMessage(nil)
	if known {
		status := fmt.Sprint(resp.StatusCode)
		if content = op.Responses[status]; content == nil {
			return fmt.Errorf("status %s is not declared", status)
		}
		if !bytes.Contains(content, []byte("components/responses/Problem")) {
			at = "/paths/" + escape.Replace(template) + "/" + method + "/responses/" + status
		}
	} else if resp.StatusCode < 400 {
		return fmt.Errorf("is not in the document and answered with %d", resp.StatusCode)
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type: %w", err)
	}
	switch {
	case at == "/components/responses/Problem" && kind != "application/problem+json":
		return fmt.Errorf("a problem of type %s", kind)
	case req.Method == http.MethodHead:
		return nil
	case at == "/components/responses/Problem":
	case kind != "application/json" || strings.HasSuffix(template, "/files/{name}"):
		if len(content) > 0 && !bytes.Contains(content, []byte(`"`+kind+`"`)) && !bytes.Contains(content, []byte(`"*/*"`)) {
			return fmt.Errorf("media type %s is not in the document", kind)
		}
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return valid(at+"/content/"+escape.Replace(kind)+"/schema", body)
}

// TestRoutesAreTheDocuments: neither has one that the other has not.
func TestRoutesAreTheDocuments(t *testing.T) {
	want := map[string]bool{}
	for path, ops := range readDocument() {
		for method := range ops {
			want[strings.ToUpper(method)+" "+path] = true
		}
	}
	for _, r := range routes() {
		if !want[r.method+" "+r.path] {
			t.Errorf("%s %s is not in the document", r.method, r.path)
		}
		delete(want, r.method+" "+r.path)
	}
	for r := range want {
		t.Errorf("%s is in the document alone", r)
	}
}

// TestAccessIsTheDocuments: what needs a token, and which.
func TestAccessIsTheDocuments(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct{ Security []map[string][]string }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	names := map[Access]string{Read: "read", Own: "own", Full: "full"}
	for _, r := range routes() {
		security := doc.Paths[r.path][strings.ToLower(r.method)].Security
		switch {
		case r.access == Open && len(security) != 0:
			t.Errorf("%s %s: anybody may ask, and the document says %v", r.method, r.path, security)
		case r.access != Open && (len(security) != 1 || !slices.Equal(security[0]["token"], []string{names[r.access]})):
			t.Errorf("%s %s: %s is needed, and the document says %v", r.method, r.path, names[r.access], security)
		}
	}
}

// TestContractNotices: a check that lets everything through is none.
func TestContractNotices(t *testing.T) {
	const update = "/components/schemas/Update"
	good := `{"id":1,"client":"a","ops":"o","enable":true,"records":1,"state":"live","submitted":"2026-01-02T03:04:05Z"}`
	if err := valid(update, []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		strings.Replace(good, `"live"`, `"alive"`, 1),
		strings.Replace(good, `"id":1`, `"id":0`, 1),
		strings.Replace(good, `"id":1`, `"ID":1`, 1),
		strings.Replace(good, `2026-01-02T`, `yesterday `, 1),
		strings.Replace(good, `"ops":"o",`, ``, 1),
	} {
		if valid(update, []byte(bad)) == nil {
			t.Errorf("%s is let through", bad)
		}
	}
}

// TestParametersAreTheDocuments: what the document offers is known, and whatever
// else is asked is not.
func TestParametersAreTheDocuments(t *testing.T) {
	w := ready(t)
	tried := 0
	for path, ops := range readDocument() {
		if path == "/v1/events" {
			continue // streams; its parameters are in the tests of events
		}
		at := strings.NewReplacer("{id}", "1", "{name}", "x").Replace(path)
		for _, p := range ops["get"].Parameters {
			if p.In != "query" {
				continue
			}
			tried++
			if r := w.do("GET", at+"?"+p.Name+"=%00", nil); strings.Contains(r.body, "no such parameter") {
				t.Errorf("%s does not know %s", path, p.Name)
			}
			is[Problem](w.do("GET", at+"?x"+p.Name+"=1", nil), 400)
		}
	}
	if tried < 10 {
		t.Errorf("only %d parameters were tried", tried)
	}
}

// TestPathsFields: who gets a part of a path wrong is told its name, as the path has it.
func TestPathsFields(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) {
		c.Tokens = tokens(t, "full "+fullToken+"\nown "+ownToken+" a\n")
	})
	body := map[string]string{"/v1/cpus/{id}": `{"online":false}`, "/v1/clients/{name}/ops/{ops}": `{"records":["fn1"]}`}
	wrong := map[string][]string{"id": {"x", "-1", "99999999999999999999"}, "name": {"a%01", strings.Repeat("a", maxText+1)}}
	wrong["ops"] = wrong["name"]
	tried := 0
	for path, ops := range readDocument() {
		for method, op := range ops {
			for _, p := range op.Parameters {
				if p.In != "path" {
					continue
				}
				w.token = fullToken
				for _, value := range wrong[p.Name] {
					at := strings.Replace(path, "{"+p.Name+"}", value, 1)
					at = strings.NewReplacer("{id}", "1", "{name}", "a", "{ops}", "function").Replace(at)
					var in any
					if text := body[path]; text != "" && method == "put" {
						in = text
					}
					r := w.do(strings.ToUpper(method), at, in)
					var got Problem
					if err := json.Unmarshal([]byte(r.body), &got); err != nil || got.Field != p.Name {
						t.Errorf("%s %s with %.20q: %d, field %q, want %q", method, path, value, r.status, got.Field, p.Name)
					}
					tried++
				}
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d were tried", tried)
	}
	w.token = ownToken
	for method, path := range map[string]string{"POST": "/v1/clients/b/renew", "PUT": "/v1/clients/b/ops/function"} {
		in := map[string]any{"PUT": body["/v1/clients/{name}/ops/{ops}"]}[method]
		if p := is[Problem](w.do(method, path, in), 403); p.Field != "name" {
			t.Errorf("%s %s: field %q", method, path, p.Field)
		}
	}
}

// TestUnknownParameters: each route below /v1 names a parameter that it does not know.
func TestUnknownParameters(t *testing.T) {
	w := ready(t)
	for path, ops := range readDocument() {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		at := strings.NewReplacer("{id}", "1", "{name}", "a", "{ops}", "function").Replace(path) + "?nonsense=1"
		if path == "/v1/trace" { // which cannot do without
			at += "&client=a"
		}
		for method := range ops {
			var in any
			if method == "post" || method == "put" {
				in = "{}"
			}
			if p := is[Problem](w.do(strings.ToUpper(method), at, in), 400); p.Field != "nonsense" {
				t.Errorf("%s %s: field %q: %s", method, path, p.Field, p.Detail)
			}
		}
	}
}
