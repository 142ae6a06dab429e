// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/sim/axis"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wholeGrid is what the command asks about by default.
func wholeGrid() axis.Choices {
	return axis.Choices{"protocol": poke.Names(), "fetch": cpus.FetchNames(), "mutate": {check.AllMutations}}
}

func archNamed(name string) isa.Arch {
	a, err := cpus.ParseArch(name)
	if err != nil {
		panic(err)
	}
	return a
}

// search is how the command searches by default.
var search = func() explore.Options {
	all, err := explore.ParseReductions("all")
	if err != nil {
		panic(err)
	}
	return explore.Options{Reduce: all}
}()

// answerOf is an answer with some rows of those that were asked for.
func answerOf(asked int, rows ...check.VerdictRow) *Answer {
	a := &Answer{spec.Study(Config{}, experiments.Lab{})}
	a.Asked = asked
	for _, r := range rows {
		if err := a.Add(r); err != nil {
			panic(err)
		}
	}
	return a
}

// all are all rows.
func (a *Answer) all() (out []*check.VerdictRow) {
	for i := range a.Rows {
		out = append(out, &a.Rows[i])
	}
	return out
}

// table is the rows as the command prints them.
func (a *Answer) table(t *testing.T) results.Table {
	t.Helper()
	table, err := columns.Fill("mutations", a.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// answered are rows by the options and the command that asks for them: several tests ask the same.
var answered sync.Map

// rowOf is the answer to a question.
func rowOf(t *testing.T, q *check.Question, o explore.Options) check.VerdictRow {
	t.Helper()
	command := check.Command(q.Flags())
	key := fmt.Sprintf("%+v %s", o, command)
	if row, ok := answered.Load(key); ok {
		return row.(check.VerdictRow)
	}
	row, err := q.Ask(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	answered.Store(key, row)
	return row
}

// ask answers a grid's questions.
func ask(t *testing.T, g axis.Choices, o explore.Options) *Answer {
	t.Helper()
	questions, err := Questions(g)
	if err != nil {
		t.Fatal(err)
	}
	a := answerOf(len(questions))
	for _, q := range questions {
		if err := a.Add(rowOf(t, q, o)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

var whole struct {
	once sync.Once
	a    *Answer
}

// wholeAnswer is the answer by default, which is the same every time.
func wholeAnswer(t *testing.T) *Answer {
	t.Helper()
	whole.once.Do(func() { whole.a = ask(t, wholeGrid(), search) })
	if whole.a == nil {
		t.Fatal("there is no answer")
	}
	return whole.a
}

// one is a single combination, as "arch protocol mutation fetch", and what differs
// from the default.
func one(t *testing.T, spec string, sites int, preempt bool) *check.VerdictRow {
	t.Helper()
	f := strings.Fields(spec)
	g := wholeGrid()
	g["arch"], g["protocol"], g["fetch"] = f[:1], f[1:2], f[3:4]
	g["sites"], g["preempt"] = []string{fmt.Sprint(sites)}, []string{fmt.Sprint(preempt)}
	questions, err := Questions(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if q.Mutation == strings.Trim(f[2], "-") {
			row := rowOf(t, q, search)
			return &row
		}
	}
	t.Fatalf("%s: no such combination", spec)
	return nil
}

// golden compares with testdata/NAME.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to create it)", err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// known strips what other ways to search may change: how many states there are,
// and how deep they lie where nothing breaks.
func known(a *Answer) *Answer {
	out := answerOf(a.Asked)
	for _, r := range a.Rows {
		result := *r.Result
		result.States, result.Transitions, result.Collision = 0, 0, 0
		result.Coverage.Steps, result.Coverage.Traps = 0, 0
		if r.Verdict != explore.Unsafe {
			result.Depth = 0
		}
		r.Result = &result
		if err := out.Add(r); err != nil {
			panic(err)
		}
	}
	return out
}

func describe(r *check.VerdictRow) string {
	return fmt.Sprintf("%s %s %s %s", archName(r), r.Protocol, cmp.Or(r.Mutation, asMeant), r.Fetch)
}

// asMeant labels the rows of a protocol without any defect.
const asMeant = "(no mutation)"

func archName(r *check.VerdictRow) string { return r.Arch.Traits().Name }

// whyHarmless is the explanation of a safe row that is mutated; nil if there is none.
func whyHarmless(q *check.Question) *harmless {
	return experiments.Find(harmlessOnes, func(h *harmless) bool { return h.Of.holds(q) })
}
