// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// coq has coqc check proofs, in a folder in which what is the same of all is checked once.
type coq struct{ dir, had string }

// checks tells whether coqc takes a proof, with this table, for proved with no axiom, and what it says.
func (c *coq) checks(t *testing.T, texts map[string]string, table string) (ok bool, said string) {
	t.Helper()
	for _, name := range []string{"Machine.v", "Safe.v", "Table.v", "Proof.v"} {
		text := texts[name]
		switch name {
		case "Table.v":
			text = table
		case "Machine.v", "Safe.v":
			if c.had == texts["Machine.v"]+texts["Safe.v"] {
				continue
			}
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "coqc", name)
		cmd.Dir = c.dir
		out, err := cmd.CombinedOutput()
		if said = name + ": " + string(out); err != nil {
			return false, said
		}
	}
	c.had = texts["Machine.v"] + texts["Safe.v"]
	return strings.Contains(said, "Closed under the global context"), said
}

// TestCoq: Coq accepts the proof of each architecture's own protocol, with -long every proof of a shipped one but the
// two of 20,000 views, which take it ten minutes and more. It accepts none in which a view is missing, nor, with -long,
// one in which it is another one, or whose protocol breaks something.
func TestCoq(t *testing.T) {
	if !*both && !*long {
		t.Skip("Coq is asked with -both and -long")
	}
	if _, err := exec.LookPath("coqc"); err != nil {
		t.Skip("coqc is not installed (Debian has it as package coq): Coq checks no proof")
	}
	c := coq{dir: t.TempDir()}
	protocols, want, proved := []string{"native"}, 3, 0
	if *long {
		protocols, want = poke.Names(), 19
	}
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range protocols {
			p := closed(t, setup(t, arch, protocol, ""))
			if properties(p) != "" || p.Views() > 10_000 {
				continue
			}
			proved++
			texts := p.Coq()
			if ok, said := c.checks(t, texts, texts["Table.v"]); !ok {
				t.Errorf("%s %s: %s", arch, protocol, said)
			}
		}
	}
	if proved != want {
		t.Errorf("%d proofs: want %d", proved, want)
	}
	tasks := setup(t, "arm64", "native", "") // whose table asks for tasks that are preempted at a site
	tasks.Preempt = true
	texts := closed(t, tasks).Coq()
	if ok, said := c.checks(t, texts, texts["Table.v"]); !ok {
		t.Errorf("arm64 native, tasks are preempted: %s", said)
	}
	proof := closed(t, setup(t, "arm64", "native", ""))
	texts = proof.Coq()
	broken := closed(t, setup(t, "x86_64", "native", "drop-sync-1")).Coq()
	last := proof.closure.views[proof.Views()-1]
	other := last
	other[enabled] = 1 - other[enabled]
	first := proof.closure.first
	for what, table := range map[string]string{
		"no last view":      strings.Replace(texts["Table.v"], ";\n"+last.coq()+"].", "].", 1),
		"another last view": strings.Replace(texts["Table.v"], ";\n"+last.coq()+"].", ";\n"+other.coq()+"].", 1),
		"no first view":     strings.Replace(texts["Table.v"], first.coq()+";\n", "", 1),
		"drop-sync-1":       broken["Table.v"],
	} {
		if table == texts["Table.v"] {
			t.Fatalf("%s: nothing was changed", what)
		}
		if what != "no last view" && !*long {
			continue
		}
		if ok, said := c.checks(t, texts, table); ok || !strings.Contains(said, `"check protocol = true"`) {
			t.Errorf("%s: accepted %t: %s", what, ok, said)
		}
	}
}
