// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/internal/spelling"
)

// sameCounts compares snapshots by what they say, not by where it was read.
var sameCounts = cmp.Options{
	cmpopts.IgnoreFields(Snapshot{}, "Name"),
	cmpopts.IgnoreFields(Row{}, "Line"),
	cmpopts.EquateEmpty(),
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t *testing.T, text string) Snapshot {
	t.Helper()
	s, err := Parse("test", strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return s
}

// calls is the snapshot that most tests spell in different ways.
func calls() Snapshot {
	return Snapshot{CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}, Rows: []Row{{
		Name:        "CAL",
		Counts:      []int64{66070, 46620, 59955, 59236, 68707, 63397, 61644, 62742},
		Description: "Function call interrupts",
	}}}
}

func TestParseSpellings(t *testing.T) {
	for name, text := range map[string]string{
		"bare": "CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts",
		"CRLF": "CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\r\n",
		"tabs": "\tCAL:\t66070\t46620\t59955\t59236\t68707\t63397\t61644\t62742\tFunction call interrupts\n",
		"header": "   CPU0 CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7\nCAL: 66070 46620 59955 59236 68707 63397 " +
			"61644 62742 Function call interrupts\n",
		"quoted":      "> CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\n",
		"quoted more": ">> | CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\n",
		"one side of a diff": "12c12\n< CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call " +
			"interrupts\n---\n",
		"other side":    "+CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\n",
		"wrapped":       "CAL: 66070 46620 59955 59236 68707\n     63397 61644 62742 Function call interrupts\n",
		"wrapped twice": "> CAL: 66070 46620 59955\n> 59236 68707 63397\n> 61644 62742 Function call interrupts\n",
		"wrapped and quoted": "> CAL:      66070      46620      59955      59236      68707\n63397 61644      62742   " +
			"Function call interrupts\n",
		"wrapped description": "CAL: 66070 46620 59955 59236 68707 63397 61644 62742   Function call\ninterrupts\n",
		"description below":   "CAL: 66070 46620 59955 59236 68707 63397 61644 62742\nFunction call interrupts\n\nprose\n",
		"wrapped header": "CPU0 CPU1 CPU2 CPU3 CPU4\n   CPU5 CPU6 CPU7\nCAL:      66070      46620      59955      " +
			"59236\n68707 63397 61644 62742\nFunction call interrupts\n",
		"among prose": "Date: Fri Oct 04 2019 - 04:10:57 EST\nOn 04/10/2019 00:10, Steven wrote:\n10:30 it was.\n\n- a " +
			"list\n-- \n" +
			"CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\n\n(Just showing the calls)\n120 " +
			"were sent. NOTE: 2nd try\n",
		"numbers follow": "CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\n120 115 657\n",
		"prose follows":  "CAL: 66070 46620 59955 59236 68707 63397 61644 62742 Function call interrupts\nThat is the row.\n",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(calls(), parse(t, text), sameCounts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseWholeFile(t *testing.T) {
	s := parse(t, testdata(t, "x86-8cpus-1offline.txt"))
	if diff := cmp.Diff([]int{0, 1, 2, 3, 5, 6, 7}, s.CPUs); diff != "" {
		t.Errorf("CPUs (-want +got):\n%s", diff)
	}
	if len(s.Rows) != 11 {
		t.Errorf("%d rows, want 11", len(s.Rows))
	}
	want := Row{"24", []int64{812, 0, 0, 10411, 0, 0, 0}, "PCI-MSI 512000-edge      ahci[0000:00:1f.2]", 4}
	if got, ok := s.Row("24"); !ok || !cmp.Equal(want, got) {
		t.Errorf("row 24: %v", cmp.Diff(want, got))
	}
	for name, global := range map[string]bool{"ERR": true, "MIS": true, "CAL": false, "0": false} {
		if r, ok := s.Row(name); !ok || s.Global(r) != global {
			t.Errorf("row %s: found %v, counts for the machine %v", name, ok, s.Global(r))
		}
	}
	if _, ok := s.Row("IPI1"); ok {
		t.Error("found a row that is not there")
	}
}

func TestParseErrors(t *testing.T) {
	header := "  CPU0 CPU1 CPU2\n"
	for _, c := range []struct{ text, want string }{
		{"", "f: the text is empty"},
		{"\n\n", "f: there are no interrupt rows"},
		{"just prose\n", "f: there are no interrupt rows"},
		{header, "f: there are no interrupt rows"},
		{"CAL: 1 -5 3\n", `f:1: "-5": row CAL: a count cannot be negative`},
		{"CAL: -0 3\n", `f:1: "-0": row CAL: a count cannot be negative`},
		{header + "CAL: 1 9223372036854775808 3\n", `f:2: "9223372036854775808": row CAL: a count cannot be larger`},
		{"CAL: 1 2x 3\n", `f:1: "2x": row CAL: this is not a count`},
		{"CAL: 1x 2 3\n", `f:1: "1x": row CAL: this is not a count`},
		{"CAL: 1 2\n3x 4 5\n", `f:2: "3x": row CAL: this is not a count`},
		{header + "CAL: 1 2 Function call interrupts\n", `f:2: "CAL": the row has 2 counts, the header 3 CPUs`},
		{header + "CAL: 1 2\n\n3\n", `f:2: "CAL": the row has 2 counts, the header 3 CPUs`},
		{header + "CAL: 1 Function call interrupts\n", `f:2: "CAL": the row has 1 count, the header 3 CPUs`},
		{header + "CAL: 1 2 3 4 Function call interrupts\n", `f:2: "4": row CAL has more counts`},
		{header + "CAL: 1 2\n", `f:2: "CAL": the row has 2 counts`},
		{header + "LOC: 1 2 3 x\nCAL: 1", `f:3: "CAL": the text ends in the middle`},
		{"CAL: 1 2 3 x\nLOC: 1 2 y\n", `f:2: "LOC": the row has 2 counts, others have 3`},
		{"CAL: 1 2\nCAL: 1 2\n", `f:2: "CAL": the row stands there twice, first in line 1`},
		{"CAL: 1 2\n" + header + "LOC: 1 2 3\n", `f:3: "LOC": the rows above it are under another header`},
		{"CPU1 CPU0\nCAL: 1 2\n", `f:1: "CPU0": the CPUs of a header ascend`},
		{"CPU99999999999\nCAL: 1\n", `f:1: "CPU99999999999": there is no such CPU`},
		{"CAL: 1 2\n\x00\x01", `f:2: "\x00": a control character`},
		{"\x7fELF\x02", `f:1: "\x7f": a control character`},
		{"CAL: 1 2 \xff\xfe\n", `f:1: "\xff\xfe": row CAL: the description is not UTF-8`},
		{strings.Repeat("x", maxLine+1), `f:1: "` + strings.Repeat("x", 48) + `...": the line is longer`},
		{"< CAL: 1 2\n> CAL: 2 3\n", `f:2: "CAL": the text holds both sides of a diff`},
	} {
		_, err := Parse("f", strings.NewReader(c.text))
		checkParseError(t, err, c.want)
	}
}

// checkParseError wants a ParseError whose one line begins as given.
func checkParseError(t *testing.T, err error, want string) {
	t.Helper()
	var p *ParseError
	switch {
	case !errors.As(err, &p):
		t.Errorf("got %v, want a ParseError: %s", err, want)
	case !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n"):
		t.Errorf("got %q, want one line that begins %q", err, want)
	}
}

func TestParseTooMuchText(t *testing.T) {
	_, err := Parse("f", repeated{strings.Repeat("x", 4000) + "\n"})
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
}

type repeated struct{ line string }

func (r repeated) Read(b []byte) (int, error) { return copy(b, r.line), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestParseReadError(t *testing.T) {
	if _, err := Parse("f", broken{}); err == nil || err.Error() != "read f: disk on fire" {
		t.Errorf("got %v", err)
	}
}

// Cut a file anywhere: what comes back is an error, or rows that the whole file
// has, too. Only the last of them may be short of its description.
func TestTruncatedFileNeverLies(t *testing.T) {
	text := testdata(t, "x86-8cpus-1offline.txt")
	whole := parse(t, text)
	for cut := range len(text) {
		s, err := Parse("f", strings.NewReader(text[:cut]))
		if err != nil {
			continue
		}
		for i, r := range s.Rows {
			w := whole.Rows[i]
			last := i == len(s.Rows)-1
			same := cmp.Equal(w.Counts, r.Counts)
			if last && !same {
				// The last number of a row can be cut: nothing tells 62742 from 627.
				n := len(r.Counts) - 1
				same = len(w.Counts) == n+1 && cmp.Equal(w.Counts[:n], r.Counts[:n]) && r.Description == ""
			}
			if !same || r.Name != w.Name || !strings.HasPrefix(w.Description, r.Description) || !last &&
				r.Description != w.Description {
				t.Fatalf("cut at %d, row %v became %v", cut, w, r)
			}
		}
	}
}

func TestWriteLaysOutLikeLinux(t *testing.T) {
	for _, name := range []string{"x86-8cpus-1offline", "arm64-4cpus"} {
		text := testdata(t, name+".txt")
		var b bytes.Buffer
		if err := Write(&b, parse(t, text)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var b bytes.Buffer
	if err := Write(&b, calls()); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/one-row.golden", b.Bytes())
}

// drawSnapshot makes any snapshot that valid accepts.
func drawSnapshot(t *rapid.T) Snapshot {
	s := Snapshot{CPUs: []int{}}
	for c := range 40 {
		if rapid.IntRange(0, 9).Draw(t, "online") < 2 {
			s.CPUs = append(s.CPUs, c*c)
		}
	}
	if len(s.CPUs) == 0 {
		s.CPUs = append(s.CPUs, 3)
	}
	names := rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,5}`),
		rapid.SampledFrom([]string{"CAL", "LOC", "IPI0", "IPI10", "FW_FENCE_I_RECVD", "Err", "I/O"}),
	)
	words := rapid.OneOf(
		rapid.SampledFrom([]string{"", "Function call interrupts", "IO-APIC   2-edge      timer", "CPU1", "diff a", "> x",
			"- CAL: 5"}),
		rapid.String(),
	)
	count := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, 1<<62))
	for _, name := range rapid.SliceOfNDistinct(names, 1, 6, rapid.ID).Draw(t, "names") {
		r := Row{Name: name, Description: strings.TrimSpace(words.Draw(t, "description"))}
		if !validDescription(r.Description) {
			r.Description = ""
		}
		n := len(s.CPUs)
		if r.Description == "" && rapid.Bool().Draw(t, "global") {
			n = 1
		}
		r.Counts = rapid.SliceOfN(count, n, n).Draw(t, "counts")
		s.Rows = append(s.Rows, r)
	}
	return s
}

func TestParseReadsWhatWriteWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSnapshot(t)
		var b bytes.Buffer
		if err := valid(want); err != nil {
			t.Fatal(err)
		}
		if err := Write(&b, want); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if rapid.Bool().Draw(t, "quoted") {
			text = "> " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n> ") + "\n"
		}
		got, err := Parse("x", strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, sameCounts); diff != "" {
			t.Fatalf("(-want +got):\n%s\nin:\n%s", diff, text)
		}
	})
}

// valid tells whether a snapshot could have been read: CPUs ascend, names are
// names of rows and unique, counts are not negative and one a CPU (or one for
// all, without a description), descriptions do not begin with one more count.
func valid(s Snapshot) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("interrupts snapshot: "+format, args...)
	}
	if len(s.CPUs) == 0 || len(s.Rows) == 0 {
		return fail("%d CPUs and %d rows", len(s.CPUs), len(s.Rows))
	}
	for i, c := range s.CPUs {
		if c < 0 || i > 0 && c <= s.CPUs[i-1] {
			return fail("CPU %d is out of order", c)
		}
	}
	seen := make(map[string]bool, len(s.Rows))
	for _, r := range s.Rows {
		if m := rowName.FindStringSubmatch(r.Name + ":"); m == nil || m[1] != r.Name {
			return fail("%q is no name of a row", r.Name)
		}
		if seen[r.Name] {
			return fail("row %s stands there twice", r.Name)
		}
		seen[r.Name] = true
		if len(r.Counts) != len(s.CPUs) && !(len(r.Counts) == 1 && r.Description == "") {
			return fail("row %s has %s for %s", r.Name, spelling.Several(len(r.Counts), "count"), spelling.Several(len(s.CPUs), "CPU"))
		}
		if slices.Min(r.Counts) < 0 {
			return fail("row %s has a negative count", r.Name)
		}
		if !validDescription(r.Description) {
			return fail("row %s cannot have the description %q", r.Name, r.Description)
		}
	}
	return nil
}

func validDescription(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	first, _ := cutField(s)
	return s == strings.TrimSpace(s) && utf8.ValidString(s) && !strings.ContainsFunc(s, control) &&
		!number.MatchString(first)
}

// TestNarrow: parts are lines that fit, and hold every count once, in order.
func TestNarrow(t *testing.T) {
	s := Snapshot{CPUs: []int{0, 1, 3, 4, 5}, Rows: []Row{
		{Name: "CAL", Counts: []int64{1, 2, 3, 4, 5}, Description: "Function call interrupts"},
		{Name: "ERR", Counts: []int64{7}}, {Name: "TLB", Counts: []int64{6, 7, 8, 9, 10}},
	}}
	for width, want := range map[int]int{0: 1, 200: 1, 60: 3, 50: 5, 1: 5} {
		parts := Narrow(s, width)
		var cpus []int
		counts := map[string][]int64{}
		for _, p := range parts {
			var b strings.Builder
			if err := Write(&b, p); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := len(strings.TrimRight(line, " \n")); width >= 50 && n > width {
					t.Errorf("%d characters on a screen of %d: %s", n, width, line)
				}
			}
			cpus = append(cpus, p.CPUs...)
			for _, r := range p.Rows {
				counts[r.Name] = append(counts[r.Name], r.Counts...)
			}
		}
		if len(parts) != want || !slices.Equal(cpus, s.CPUs) {
			t.Errorf("width %d: %d parts with CPUs %v", width, len(parts), cpus)
		}
		for _, r := range s.Rows {
			if !slices.Equal(counts[r.Name], r.Counts) {
				t.Errorf("width %d: %s has %v", width, r.Name, counts[r.Name])
			}
		}
	}
}
