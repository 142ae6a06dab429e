// SPDX-License-Identifier: Apache-2.0

// Package trial runs experiments in tests.
package trial

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/results"
)

var look = flag.String("look", "", "also write the experiments' files into this `directory`, to be looked at")

// Result is what an experiment came to.
type Result struct {
	*experiments.Answer
	Table results.Table // as the rows were handed over
	Err   error
}

// Run runs an experiment with flags.
func Run(t *testing.T, of func() *experiments.Experiment, args ...string) *Result {
	t.Helper()
	return RunWith(t.Context(), t, of, args...)
}

// RunWith is Run with another context.
func RunWith(ctx context.Context, t *testing.T, of func() *experiments.Experiment, args ...string) *Result {
	t.Helper()
	e := of()
	set := pflag.NewFlagSet(e.Name, pflag.ContinueOnError)
	request := e.New()
	flags.Bind(set, request.Fields...)
	r := &Result{Table: e.Table()}
	if r.Err = set.Parse(args); r.Err != nil {
		return r
	}
	r.Answer, r.Err = request.Run(ctx, experiments.Lab{Seed: 1, Revision: "test", Log: zap.NewNop(), Add: r.Table.Add})
	return r
}

// Must is Run, and fails the test if it fails. With -look its documents are written there.
func Must(t *testing.T, of func() *experiments.Experiment, args ...string) *Result {
	t.Helper()
	r, e := Run(t, of, args...), of()
	if r.Err != nil {
		t.Fatalf("%s %s: %v", e.Name, strings.Join(args, " "), r.Err)
	}
	if r.No != nil {
		t.Fatalf("%s %s: %v", e.Name, strings.Join(args, " "), r.No)
	}
	if *look != "" {
		for _, d := range r.Documents {
			if err := os.WriteFile(filepath.Join(*look, e.Name+"-"+d.Name), r.Document(t, d.Name), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// Document is the contents of one of the documents.
func (r *Result) Document(t *testing.T, name string) []byte {
	t.Helper()
	for _, d := range r.Documents {
		if d.Name == name {
			var b bytes.Buffer
			if err := d.Write(&b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	t.Fatalf("no document %s", name)
	return nil
}

// CutShort runs an experiment that is cut short at once, and tells whether all its
// documents can be written and the report says that something is missing.
func CutShort(t *testing.T, of func() *experiments.Experiment, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := RunWith(ctx, t, of, args...)
	if !errors.Is(r.Err, context.Canceled) || r.Answer == nil {
		t.Fatalf("%v, %v", r.Answer, r.Err)
	}
	for _, d := range r.Documents {
		if len(r.Document(t, d.Name)) == 0 {
			t.Errorf("%s is empty", d.Name)
		}
	}
	if report := string(r.Document(t, "report.md")); !strings.Contains(report, "**Cut short:** 0 of ") {
		t.Errorf("the report does not say that it was cut short:\n%s", report)
	}
}

// Cell is a cell of a row, as CSV has it.
func (r *Result) Cell(t *testing.T, row int, column string) string {
	t.Helper()
	for i, c := range r.Table.Columns {
		if c.Name == column {
			return r.Table.Rows[row][i].String()
		}
	}
	t.Fatalf("no column %s", column)
	return ""
}

// Number is a cell of a row that holds a number.
func (r *Result) Number(t *testing.T, row int, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r.Cell(t, row, column), 64)
	if err != nil {
		t.Fatalf("row %d: %s: %v", row, column, err)
	}
	return v
}

// Count is a cell of a row that holds a whole number.
func (r *Result) Count(t *testing.T, row int, column string) int {
	t.Helper()
	n, err := strconv.Atoi(r.Cell(t, row, column))
	if err != nil {
		t.Fatalf("row %d: %s: %v", row, column, err)
	}
	return n
}

// Figure compares the experiment's picture with the one that docs show.
func (r *Result) Figure(t *testing.T) {
	t.Helper()
	name := r.Table.Name + ".svg"
	golden.Check(t, filepath.Join("..", "..", "docs", "figures", name), r.Document(t, name))
}

// Golden compares with testdata/NAME.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name), got)
}

// Pairs holds every published figure against the range of the model: it lies inside, or
// it is listed by name with the mechanism that is missing, and not both. Figures whose
// names begin with own are all those of the experiment that are listed.
func Pairs(t *testing.T, own string, all []experiments.Comparison) {
	t.Helper()
	met, ranged := map[string]bool{}, 0
	for _, c := range all {
		if !c.Ranged() {
			continue
		}
		ranged++
		met[c.What] = true
		switch listed := c.Missing() != ""; {
		case c.Inside() && listed:
			t.Errorf("%s: %g lies within %g to %g, and is listed as outside", c.What, c.Published, c.Low, c.High)
		case !c.Inside() && !listed:
			t.Errorf("%s: %g lies outside of %g to %g, and no missing mechanism is named", c.What, c.Published, c.Low, c.High)
		}
	}
	if ranged == 0 {
		t.Error("no figure has a range")
	}
	for _, what := range experiments.Listed() {
		if strings.HasPrefix(what, own) && !met[what] {
			t.Errorf("%s is listed, and no figure of that name was held against anything", what)
		}
	}
}
