// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mend is a place of testdata/mends.txt: a class of faults, a file, what the mend does, and what stands there with it and
// without.
type mend struct {
	class, file, what string
	with, without     []string
}

func readMends(t *testing.T) (list []mend) {
	t.Helper()
	text, err := os.ReadFile("testdata/mends.txt")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n\n") {
		head, hunks, _ := strings.Cut(part, "\n")
		found := regexp.MustCompile(`^([B-F]) (\w+\.go): (.+)$`).FindStringSubmatch(head)
		if found == nil {
			continue // it says what follows
		}
		m, was := mend{class: found[1], file: found[2], what: found[3]}, byte('+')
		for line := range strings.Lines(hunks + "\n") {
			if line[0] == '-' && was == '+' {
				m.with, m.without = append(m.with, ""), append(m.without, "")
			}
			switch was = line[0]; was {
			case '-':
				m.with[len(m.with)-1] += line[1:]
			case '+':
				m.without[len(m.without)-1] += line[1:]
			}
		}
		list = append(list, m)
	}
	return list
}

// TestMends takes out, with -long, one mend after the other: the histories of .ci/run or a test of this package find each.
// Without, it only looks whether each is where the list says.
func TestMends(t *testing.T) {
	if testing.Short() {
		t.Skip(".ci/mutate puts faults into these files")
	}
	list := readMends(t)
	if len(list) < 30 {
		t.Fatalf("%d mends", len(list))
	}
	for _, m := range list {
		text, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		without := string(text)
		for i, with := range m.with {
			if n := strings.Count(without, with); n != 1 {
				t.Errorf("%s: %d times in %s:\n%s", m.what, n, m.file, with)
			}
			without = strings.Replace(without, with, m.without[i], 1)
		}
		if *long && !t.Failed() {
			t.Logf("%s %s: %s", m.class, m.what, foundWithout(t, m.file, without))
		}
	}
}

// foundWithout is what fails with a file as it is without a mend.
func foundWithout(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	changed, overlay, program := filepath.Join(dir, file), filepath.Join(dir, "overlay"), filepath.Join(dir, "test")
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{changed: text, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "-c", "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", file, err, out)
	}
	for _, flags := range [][]string{
		{"-test.run=^TestSimulated$", "-histories=10000"}, {"-test.skip=^Test(Simulated|Mends)$", "-test.short", "-test.failfast"},
	} {
		out, err := exec.Command(program, flags...).CombinedOutput()
		found := regexp.MustCompile(`(?m)-seed \d+|^--- FAIL: \w+`).FindAllString(string(out), -1)
		if err != nil && len(found) > 0 {
			return strings.Join(found, " ")
		}
	}
	t.Errorf("nothing finds it")
	return "nothing"
}
