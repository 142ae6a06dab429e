// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
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
		var want []string
		if r.access != Open {
			want = append(want, "401", "403")
		}
		if r.access != Open && r.path != "/metrics" {
			want = append(want, "503")
		}
		if r.method == "POST" {
			want = append(want, "400", "413", "415", "429", "507")
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

// TestHistograms: what operators look at is there, and counts.
func TestHistograms(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"],"wait":true`)), 200)
	text := w.do("GET", "/metrics", nil).body
	for _, line := range []string{
		"textpoke_accept_seconds_count 1", "textpoke_wait_seconds_count 1", "textpoke_live_seconds_count 1",
		"textpoke_batch_requests_sum 1", "textpoke_journal_commit_seconds_count 2",
		`textpoke_build_info{goversion="go",revision="abc",version="0"} 1`, "textpoke_journal_bytes ",
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("there is no %q", line)
		}
	}
}
