// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
)

// wroteJSON are command lines that write every table that commands have, but for those of
// notTried. URL is a server's, DATA its directory.
var wroteJSON = []string{
	"plan --records gen:n=300", "plan --arch x86_64 --scenario function-tracer --cpus 4", "plan --filter vfs_read --steps",
	"plan --kernel x86_64-6.12 --of PROBES",
	"run --engine timed --records gen:n=300 --calibration e5-2699 --arch x86_64",
	"run --records gen:n=100 --arch arm64 --cpus busy=1,isolated=1",
	"check --arch x86_64 --sites 1", "check --arch x86_64 --sites 1 --mutate drop-sync-1", "check --list",
	"check --litmus 2SM.B+cachesync-isb", "prove --arch arm64 --solver none",
	"kernel conform ../../kernels/record/testdata/riscv64-7.2-vfs.recording.gz",
	"experiment list", "experiment refcount",
	"calibrate list", "calibrate show m1", "records list", "records list --filter vfs_read", "records show gen:n=30",
	"interrupts diff MAIL MAIL", "interrupts sample -- true", "kernel predict --action list",
	"kernel measure --action list", "kernel watch BEFORE AFTER", "version",
	"ctl --server URL enable --client a", "ctl --server URL wants --client a", "ctl --server URL renew --client a",
	"ctl --server URL plan", "ctl --server URL status", "ctl --server URL watch 1", "ctl --server URL cpus",
	"ctl --server URL disable --client a", "serve --verify DATA",
}

// notTried are commands that want what a test does not have, and why.
var notTried = map[string]string{
	"experiment all": "minutes", "merge": "the tables of shards", "kernel inspect": "a kernel's image",
	"kernel predict": "a kernel's image", "kernel measure": "a kernel's image", "kernel audit": "a kernel's image",
	"kernel force": "a kernel's image", "kernel build": "a kernel's source", "ctl cancel": "an update that waits",
	"ctl count": "a kernel", "kernel watch with --causes": "root, and tracefs", "calibrate": "seconds, and the table of calibrate show",
}

// TestSchemas holds what commands write as JSON against the schema that they state, as
// another program reads both.
func TestSchemas(t *testing.T) {
	data := t.TempDir()
	server := serve(t, "--records", "gen:n=30", "--cpus", "2", "--data", data)
	c := newCommon(streams{strings.NewReader(""), io.Discard, io.Discard})
	schemas := map[string][]*jsonschema.Schema{}
	seen := map[*jsonschema.Schema]bool{}
	everyCommand(c, func(cmd *cobra.Command, words []string) {
		for _, s := range c.schemas(cmd) {
			schemas[strings.Join(words, " ")] = append(schemas[strings.Join(words, " ")], compile(t, s))
		}
	})
	readings := t.TempDir()
	for name, count := range map[string]string{"before": "10", "after": "20"} {
		text := "           CPU0       CPU1\nCAL:         10         " + count + "   Function call interrupts\n"
		if err := os.WriteFile(filepath.Join(readings, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(readings+"/probes.bt", []byte("tracepoint:sched:sched_switch {}"), 0o666); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("URL", server.url, "DATA", data, "PROBES", readings+"/probes.bt", "BEFORE", readings+"/before",
		"AFTER", readings+"/after", "MAIL", "../../results/interrupts/testdata/mail-2019.txt")
	for _, line := range wroteJSON {
		words := strings.Fields(fill.Replace(line))
		if words[0] == "serve" {
			server.stop()
		}
		name := strings.Join(words[:min(2, len(words))], " ")
		if words[0] == "ctl" {
			name = "ctl " + words[3]
		} else if schemas[name] == nil {
			name = words[0]
		}
		r := textpoke(t, append([]string{"--format=json"}, words...)...)
		if r.code > exitNo {
			t.Errorf("%s: %s", line, r.err)
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(r.out))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var refused error
		for _, s := range schemas[name] {
			if err := s.Validate(doc); err != nil {
				refused = err
				continue
			}
			seen[s], refused = true, nil
			break
		}
		if refused != nil || len(doc.([]any)) == 0 {
			t.Errorf("%s: %v of\n%s", line, refused, r.out)
		}
		if wrong := spoilt(doc); schemas[name][0].Validate(wrong) == nil {
			t.Errorf("%s: accepted with a member too many", line)
		}
	}
	for name, all := range schemas {
		for _, s := range all {
			_, not := notTried[name]
			if _, table := notTried[strings.TrimPrefix(s.Title, "textpoke ")]; !seen[s] && !not && !table && !strings.HasPrefix(name, "experiment ") {
				t.Errorf("%s: no output of %s was seen", name, s.Title)
			}
		}
	}
}

// compile reads a schema as another program does.
func compile(t *testing.T, s any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(file)
}

// spoilt is a document whose first row has a member more.
func spoilt(doc any) any {
	row := map[string]any{"nobody": 1}
	for name, value := range doc.([]any)[0].(map[string]any) {
		row[name] = value
	}
	return []any{row}
}
