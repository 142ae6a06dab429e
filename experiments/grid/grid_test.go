// SPDX-License-Identifier: Apache-2.0

package grid

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const report = "---\n{{define \"question\"}}Why?{{end}}{{define \"about\"}}It.{{end}}" +
	"{{define \"headline\"}}{{len .Rows}} rows, {{.Set \"buffer\"}}{{end}}\n{{template \"comparisons\" .Comparisons}}\n"

// made is the experiment of a text.
func made(t *testing.T, text string) (*experiments.Experiment, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.experiment")
	if err := os.WriteFile(path, []byte(text+report), 0o666); err != nil {
		t.Fatal(err)
	}
	return Open(path)
}

// table is an experiment's rows as text, a line each.
func table(t *testing.T, text string, args ...string) string {
	t.Helper()
	e, err := made(t, text)
	if err != nil {
		t.Fatal(err)
	}
	r := trial.Must(t, func() *experiments.Experiment { return e }, args...)
	var b strings.Builder
	for _, row := range r.Table.Rows {
		for i, v := range row {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(v.String())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestDocument: the example of the documents gives what the formula does.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/experiment-files.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```experiment\n(.*?)```").FindStringSubmatch(string(b))[1]
	e := Must("doc", text, More{})
	r := trial.Must(t, e, "--records", "gen:n=1000,order=sorted", "--buffer", "170")
	if r.Headline != "gen:n=1000,order=sorted needs 18 rounds with 170 slots" || r.Count(t, 0, "rounds") != 18 {
		t.Error(r.Headline)
	}
	if !strings.Contains(string(r.Document(t, "report.md")), "by the formula | 18 | 18 | 0 |") {
		t.Errorf("%s", r.Document(t, "report.md"))
	}
}

// TestGrid: points, labels, what stays when a flag changes the rest, and combinations that
// stand beside others. With breakpoints n sorted records take 3*ceil(n/slots) rounds; arm64's
// own protocol takes none and has no vector.
func TestGrid(t *testing.T) {
	const text = `name: a
grid: count
  arch: x86_64,arm64
  records: gen:n=10,order=sorted gen:n=20,order=sorted
  buffer: 4 + 8,16
  cpus: 3
beside: one
  buffer = 1
points:
  arch, protocol, who
  x86_64, "breakpoint,breakpoint-global", "a, b"
  arm64, native,
columns:
  arch
  who
  protocol
  n
  buffer if flushes
  rounds
  slow integer = one.rounds
  ipis
`
	const x86 = `x86_64 a, b breakpoint 10 4 9 30 18
x86_64 a, b breakpoint 10 8 6 30 12
x86_64 a, b breakpoint 10 16 3 30 6
x86_64 a, b breakpoint-global 10  3 3 6
x86_64 a, b breakpoint 20 4 15 60 30
x86_64 a, b breakpoint 20 8 9 60 18
x86_64 a, b breakpoint 20 16 6 60 12
x86_64 a, b breakpoint-global 20  3 3 6
`
	const arm = "arm64  native 10  0 0 0\narm64  native 20  0 0 0\n"
	if got := table(t, text); got != x86+arm {
		t.Errorf("%s", got)
	}
	if got := table(t, text, "--arch", "arm64"); got != arm {
		t.Errorf("%s", got)
	}
	if got, want := table(t, text, "--arch=x86_64", "--buffer=5", "--records=gen:n=10,order=sorted", "--cpus=2"),
		"x86_64 a, b breakpoint 10 4 9 30 9\nx86_64 a, b breakpoint 10 5 6 30 6\nx86_64 a, b breakpoint-global 10  3 3 3\n"; got != want {
		t.Errorf("%s", got)
	}
}

// TestTables: each table is counted on its own instruction set, or with what each set
// comes with.
func TestTables(t *testing.T) {
	const columns = "columns:\n  source\n  arch\n  kernel\n  breaks\n"
	if got, want := table(t, "name: a\ngrid: count\n  records: arm64-6.12 gen:n=10,order=descending\n"+columns),
		"arm64-6.12 arm64 true 0\ngen:n=10,order=descending x86_64 false 9\n"; got != want {
		t.Errorf("%s", got)
	}
	if got, want := table(t, "name: a\ngrid: count\n  arch: arm64,riscv64\n  records: own + arm64-6.12 gen:n=10,order=sorted\n"+columns,
		"--records", "arm64-6.12"), "arm64-6.12 arm64 true 0\narm64-6.12 arm64 true 0\n"+table(t,
		"name: a\ngrid: count\n  arch: riscv64\n"+columns); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	n := strings.Count(table(t, "name: a\ngrid: count\n  records: kernels\n"+columns), "true")
	if n < 3 {
		t.Errorf("%d kernels", n)
	}
}

// TestRun: updates are timed on the machines of calibrations, live ones are counted, and
// what takes more interrupts than the limit has no time.
func TestRun(t *testing.T) {
	const text = "name: a\ngrid: run\n  calibration: vm-2@4,jump-label-24\n  records: gen:n=50,order=sorted\n  buffer: 25\n" +
		"  limit-ipis: 100\ncolumns:\n  calibration\n  machine\n  cpus\n  rounds\n  timed boolean = update_ns > 0\n  burst_isolated_max\n"
	if got := table(t, text); !regexp.MustCompile("^vm-2 vm-2@4 busy=3,isolated=1 6 true [1-6]\njump-label-24 jump-label-24 " +
		"busy=18,isolated=6 6  \n$").MatchString(got) {
		t.Errorf("%s", got)
	}
	if got, want := table(t, "name: a\ngrid: run\n  records: gen:n=50,order=sorted\n  buffer: 25\n  cpus: 2\ncolumns:\n  engine\n  rounds\n  violations\n"),
		"live 6 0\n"; got != want {
		t.Errorf("%s", got)
	}
}

// TestPlan: a protocol stands beside the experiment's file.
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"f.experiment": "name: a\ngrid: count\n  arch: arm64\n  plan = once.plan\n  records: gen:n=7,order=sorted\ncolumns:\n  protocol\n  rounds\n" + report,
		"once.plan":    "name: once\nbatching: whole\nevery batch:\n    for each patch\n        Write word\n    end\nonce after:\n    Sync 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open(filepath.Join(dir, "f.experiment"))
	if err != nil {
		t.Fatal(err)
	}
	if r := trial.Must(t, func() *experiments.Experiment { return e }); r.Cell(t, 0, "protocol") != "once" || r.Count(t, 0, "rounds") != 1 {
		t.Errorf("%v", r.Table.Rows)
	}
}

// TestWrong: what no combination can be made of is refused with its line.
func TestWrong(t *testing.T) {
	const columns = "columns:\n  rounds\n"
	for text, want := range map[string]string{
		"name: a\n" + columns:                                         ":1: no grid",
		"name: a\ngrid: count\n  ordre: table\n" + columns:            `:3: "ordre": no such axis; did you mean order?`,
		"name: a\ngrid: count\n  calibration: vm-2\n" + columns:       `:3: "calibration": no such axis`,
		"name: a\ngrid: run\n  calibration: vm-3\n" + columns:         ":3: calibration: ",
		"name: a\ngrid: run\n  limit-ipis: many\n" + columns:          ":3: limit-ipis: ",
		"name: a\ngrid: count\n  plan = no.plan\n" + columns:          ":3: plan: open ",
		"name: a\ngrid: count\n  order: tabel\n" + columns:            ":3: order: not one of table",
		"name: a\ngrid: count\nbeside: x\n  cpus = 0\n" + columns:     ":4: cpus: ",
		"name: a\ngrid: count\npoints:\n  order\n  tabel\n" + columns: ":5: order: not one of table",
		"name: a\ngrid: count\ncolumns:\n  ronuds\n":                  ":4: column ronuds: there is none of that name",
		"name: a\ngrid: count\ncolumns:\n  x = y\n":                   ":4: column x: there is no column y",
		"name: a\ngrid: count\ncolumns:\n  rounds if y\n":             ":4: column rounds: if y: there is no such column",
		"name: a\ngrid: count\ncolumns:\n  x = Rounds\n":              ":4: column x: Rounds: want an expression",
	} {
		_, err := made(t, text)
		if err == nil || !strings.Contains(err.Error(), "f.experiment"+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory is an experiment")
	}
}
