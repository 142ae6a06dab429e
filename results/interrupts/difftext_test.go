// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mailDeltas reads the figures of the mail as they were copied out by hand.
func mailDeltas(t *testing.T) [][]RowDelta {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(testdata(t, "mail-2019.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]RowDelta
	last := ""
	for _, r := range records[1:] {
		if key := r[0] + r[1]; key != last {
			all = append(all, []RowDelta{{Name: "CAL", Description: "Function call interrupts"}})
			last = key
		}
		d := &all[len(all)-1][0]
		var n [4]int64
		for i, s := range r[2:] {
			if n[i], err = strconv.ParseInt(s, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		d.CPUs = append(d.CPUs, int(n[0]))
		d.Before, d.After, d.Delta = append(d.Before, n[1]), append(d.After, n[2]), append(d.Delta, n[3])
	}
	return all
}

func pairDeltas(t *testing.T, text string) [][]RowDelta {
	t.Helper()
	pairs, err := ParseDiff("test", strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var all [][]RowDelta
	for _, p := range pairs {
		d, err := Diff(p.Before, p.After)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// The mail holds four diffs, two before the patch and two after it, quoted once,
// so that the ">" rows begin with ">>". However deep further answers quote it, and
// without the commands between them, it is the same four.
func TestMailHoldsFourDiffs(t *testing.T) {
	mail := testdata(t, "mail-2019.txt")
	want := mailDeltas(t)
	if len(want) != 4 {
		t.Fatalf("the figures are %d toggles, want 4", len(want))
	}
	quoted := ">" + strings.ReplaceAll(mail, "\n", "\n>")
	unquoted := strings.ReplaceAll(strings.ReplaceAll(mail, "\n>>", "\n> >"), "\n> ", "\n")
	var noCommands strings.Builder
	for line := range strings.Lines(mail) {
		if !strings.Contains(line, "# diff") {
			noCommands.WriteString(line)
		}
	}
	for name, text := range map[string]string{
		"as it is":    mail,
		"CRLF":        strings.ReplaceAll(mail, "\n", "\r\n"),
		"deeper":      quoted,
		"deeper, | ":  "| " + strings.ReplaceAll(mail, "\n", "\n| "),
		"unquoted":    unquoted,
		"no commands": noCommands.String(),
		"wrapped":     strings.ReplaceAll(mail, " Function call interrupts", "\n> Function call interrupts"),
		"cut rows":    cutRows(mail),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, pairDeltas(t, text)); diff != "" {
				t.Errorf("(-want +got):\n%s\nin:\n%s", diff, text)
			}
		})
	}
}

// cutRows wraps each row behind its fifth count.
func cutRows(mail string) string {
	var b strings.Builder
	for line := range strings.Lines(mail) {
		if fields := strings.Fields(line); strings.Contains(line, "CAL:") {
			last := strings.Index(line, fields[len(fields)-7])
			b.WriteString(line[:last] + "\n> " + line[last:])
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestParseDiffKinds(t *testing.T) {
	delta := func(name string, before, after, n int64) RowDelta {
		return RowDelta{Name: name, CPUs: []int{0, 1}, Before: []int64{before, 0}, After: []int64{after, 0},
			Delta: []int64{n, 0}}
	}
	two := [][]RowDelta{{delta("CAL", 1, 3, 2), delta("LOC", 5, 9, 4)}}
	for name, c := range map[string]struct {
		text string
		want [][]RowDelta
	}{
		"one hunk":  {"1,2c1,2\n< CAL: 1 0\n< LOC: 5 0\n---\n> CAL: 3 0\n> LOC: 9 0\n", two},
		"two hunks": {"1c1\n< CAL: 1 0\n---\n> CAL: 3 0\n7c7\n< LOC: 5 0\n---\n> LOC: 9 0\n", two},
		"unified":   {"--- a\n+++ b\n@@ -1,2 +1,2 @@\n-CAL: 1 0\n-LOC: 5 0\n+CAL: 3 0\n+LOC: 9 0\n", two},
		"unified, quote": {"> --- a\n> +++ b\n> -CAL: 1 0\n> +CAL: 3 0\n>  LOC: 5 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2), delta("LOC", 5, 5, 0)}}},
		"unified, whole": {" CPU0 CPU1\n-CAL: 1 0\n+CAL: 3 0\n LOC: 5 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2), delta("LOC", 5, 5, 0)}}},
		"prose row": {"LOC: 7 7\n< CAL: 1 0\n---\n> CAL: 3 0\n", [][]RowDelta{{delta("CAL", 1, 3, 2)}}},
		"added first": {"$ diff a b\n1a2\n> 9: 3 0\n2c3\n< CAL: 1 0\n---\n> CAL: 3 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2), {Name: "9", CPUs: []int{0, 1}, After: []int64{3, 0}}}}},
		"removed": {"2c3\n< CAL: 1 0\n< 9: 3 0\n---\n> CAL: 3 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2), {Name: "9", CPUs: []int{0, 1}, Before: []int64{3, 0}}}}},
		"two diffs": {"< CAL: 1 0\n> CAL: 3 0\nand then\n< CAL: 3 0\n---\n> CAL: 9 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2)}, {delta("CAL", 3, 9, 6)}}},
		"header above": {"CPU0 CPU1 CPU2\nLOC: 1 2 3\n# diff a b\n< CAL: 1 0\n---\n> CAL: 3 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2)}}},
		"two commands": {"# diff a b\n< CAL: 1 0\n> CAL: 3 0\n# diff b c\n< LOC: 5 0\n> LOC: 9 0\n",
			[][]RowDelta{{delta("CAL", 1, 3, 2)}, {delta("LOC", 5, 9, 4)}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pairDeltas(t, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseDiffErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "f: the text is empty"},
		{"prose\n", "f: there are no interrupt rows"},
		{"CAL: 1 2\n", "f: there is no diff"},
		{"> CAL: 1 2\n", "f: there is no diff"},
		{"< CAL: 1 2\n", `f:1: "CAL": the diff that begins here has no rows of the side after`},
		{"+CAL: 1 2\n", `f:1: "CAL": the diff that begins here has no rows of the side before`},
		{"< CAL: 1 2\n< CAL: 1 2\n> CAL: 1 2\n", `f:2: "CAL": the row stands there twice`},
		{"< CAL: 1 2 x\n< LOC: 1 2 3 x\n> CAL: 1 2\n", `f:1: "CAL": the row has 2 counts, others have 3`},
		{"< CAL: 1 2\n> CAL: 1 -2\n", `f:2: "-2": row CAL: a count cannot be negative`},
	} {
		_, err := ParseDiff("f", strings.NewReader(c.text))
		checkParseError(t, err, c.want)
	}
}

func TestDiffRefusesOtherCPUs(t *testing.T) {
	parseAs := func(name, text string) Snapshot {
		s := parse(t, text)
		s.Name = name
		return s
	}
	four := parseAs("b", "CPU0 CPU1 CPU2 CPU4\nCAL: 1 2 3 4 calls\n")
	for text, want := range map[string]string{
		"CPU0 CPU1 CPU2 CPU3 CPU4\nCAL: 1 2 3 4 5 calls\n": `a: "CPU3": this CPU is not in b`,
		"CPU0 CPU1 CPU4\nCAL: 1 2 3 calls\n":               `b: "CPU2": this CPU is not in a`,
		"CAL: 1 2 3 4 calls\n":                             `a: "CPU3": this CPU is not in b`,
		"CPU0 CPU1 CPU2 CPU4\nCAL: 1\n":                    `a:2: "CAL": the row has 1 count, before it has 4`,
	} {
		_, err := Diff(four, parseAs("a", text))
		checkParseError(t, err, want)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := put("a", "CAL: 1 2\n"), put("b", "CAL: 1 5\n")
	mail := put("mail", testdata(t, "mail-2019.txt"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(mail, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before, after string
		pairs         int
		err           string
	}{
		{a, b, 1, ""},
		{mail, mail, 4, ""},
		{mail, link, 4, ""},
		{a, a, 0, "there is no diff"},
		{a, mail, 0, "both sides of a diff"},
		{a, filepath.Join(dir, "none"), 0, "no such file"},
		{filepath.Join(dir, "none"), a, 0, "no such file"},
		{dir, a, 0, "is a directory"},
		{dir, dir, 0, "is a directory"},
	} {
		pairs, err := Load(c.before, c.after)
		if len(pairs) != c.pairs || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("Load(%s, %s) = %d pairs, %v; want %d, %q", c.before, c.after, len(pairs), err, c.pairs, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
	}
}

func TestSample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "interrupts")
	write := func(text string) error { return os.WriteFile(path, []byte(text), 0o666) }
	if _, err := Sample(path, func() error { return nil }); err == nil {
		t.Error("sampled a file that does not exist")
	}
	failed := errors.New("exit status 3")
	for _, runErr := range []error{nil, failed} {
		if err := write("CAL: 1 2\n"); err != nil {
			t.Fatal(err)
		}
		p, err := Sample(path, func() error { return errors.Join(write("CAL: 1 5\n"), runErr) })
		if !errors.Is(err, runErr) {
			t.Errorf("got error %v, want %v", err, runErr)
		}
		if d, err := Diff(p.Before, p.After); err != nil || !cmp.Equal([]int64{0, 3}, d[0].Delta) {
			t.Errorf("sampled %v, %v", d, err)
		}
	}
	if _, err := Sample(path, func() error { return os.Remove(path) }); err == nil {
		t.Error("sampled a file that went away")
	}
}

func TestReadThisMachine(t *testing.T) {
	if _, err := os.Stat(ProcFile); err != nil {
		t.Skip("this machine has no /proc/interrupts")
	}
	s, err := Read(ProcFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := valid(s); err != nil {
		t.Error(err)
	}
}
