// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestDocumentIsWhole: every operation has a tag that is explained, bodies have examples
// that fit, and what may go wrong is said: no token, a server that is not ready, a full
// disk, where those can be.
func TestDocumentIsWhole(t *testing.T) {
	var doc struct {
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			Tags        []string
			RequestBody *struct {
				Content map[string]struct{ Example json.RawMessage }
			}
			Responses map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, tag := range doc.Tags {
		if tags = append(tags, tag.Name); tag.Description == "" {
			t.Errorf("tag %s says nothing", tag.Name)
		}
	}
	for _, r := range routes() {
		op := doc.Paths[r.path][strings.ToLower(r.method)]
		if len(op.Tags) != 1 || !slices.Contains(tags, op.Tags[0]) {
			t.Errorf("%s %s: tags %v", r.method, r.path, op.Tags)
		}
		want := []string{"400", "403", "500"}
		if r.access != Open {
			want = append(want, "401")
		}
		if r.access != Open && r.path != "/metrics" {
			want = append(want, "503")
		}
		if r.method == "POST" {
			want = append(want, "413", "415", "429", "507")
		}
		if op.Responses["default"] != nil {
			t.Errorf("%s %s: its errors are not each declared", r.method, r.path)
		}
		for _, status := range want {
			if op.Responses[status] == nil {
				t.Errorf("%s %s: %s is not declared", r.method, r.path, status)
			}
		}
		if op.RequestBody == nil {
			continue
		}
		at := "/paths/" + escape.Replace(r.path) + "/" + strings.ToLower(r.method) + "/requestBody/content/application~1json"
		if example := op.RequestBody.Content["application/json"].Example; valid(at+"/schema", example) != nil {
			t.Errorf("%s %s: the example %s does not fit: %v", r.method, r.path, example, valid(at+"/schema", example))
		}
	}
}

// TestDocumentIsOpenAPI holds the document against OpenAPI's own schema: testdata/openapi-3.1.json,
// https://github.com/OAI/OpenAPI-Specification, branch v3.1-dev, src/schemas/validation/schema.yaml.
func TestDocumentIsOpenAPI(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi-3.1.json", rules); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	fits := func(text []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	if err := fits(document); err != nil {
		t.Errorf("%+v", err)
	}
	for _, wrong := range []struct{ is, becomes string }{
		{`"openapi": "3.1.0"`, `"openapi": "2.0"`}, {`"in": "query"`, `"in": "somewhere"`}, {`"responses": {`, `"answers": {`},
	} {
		broken := bytes.Replace(document, []byte(wrong.is), []byte(wrong.becomes), 1)
		if bytes.Equal(broken, document) || fits(broken) == nil {
			t.Errorf("with %s for %s it is let through", wrong.becomes, wrong.is)
		}
	}
}

// TestExamplesFit: every schema has an example, and is what it says.
func TestExamplesFit(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Examples []json.RawMessage }
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	for name, s := range doc.Components.Schemas {
		if len(s.Examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, example := range s.Examples {
			if err := valid("/components/schemas/"+name, example); err != nil {
				t.Errorf("%s: the example %s does not fit: %v", name, example, err)
			}
		}
	}
}

// TestHistograms: what operators look at is there, and counts.
func TestHistograms(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"],"wait":true`)), 200)
	text := w.do("GET", "/metrics", nil).body
	for _, line := range []string{
		"textpoke_accept_seconds_count 1", "textpoke_wait_seconds_count 1", "textpoke_live_seconds_count 1",
		"textpoke_batch_requests_sum 1", "textpoke_journal_commit_seconds_count 1",
		`textpoke_build_info{goversion="go",revision="abc",version="0"} 1`, "textpoke_journal_bytes ",
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("there is no %q", line)
		}
	}
}
