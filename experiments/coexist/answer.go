// SPDX-License-Identifier: Apache-2.0

package coexist

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/tracers"
)

// answer is what the pairs say that were tried.
type answer struct {
	*experiments.Study[Config, *row]
}

// Arches are the instruction sets that rows are of, in order.
func (a answer) Arches() []string {
	return experiments.Distinct(a.Rows, func(r *row) string { return r.Arch })
}

// at is the row of a pair; nil where it was not tried.
func (a answer) at(arch, first, second string) *row {
	return experiments.First(a.Rows, func(r *row) bool { return r.Arch == arch && r.First == first && r.Second == second })
}

// Refusals counts the pairs that are refused.
func (a answer) Refusals() int {
	return len(experiments.Where(a.Rows, func(r *row) bool { return r.Result == refused }))
}

// Held are the documented cases.
func (a answer) Held() []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Documented != nil })
}

// Agreeing counts those that come out as documented.
func (a answer) Agreeing() int { return len(experiments.Where(a.Held(), (*row).agrees)) }

// wrong is the documented cases that came out otherwise; nil if there are none.
func (a answer) wrong() error {
	var out []string
	for _, r := range a.Held() {
		if !r.agrees() {
			out = append(out, fmt.Sprintf("%s, %s then %s: %s, documented %s", r.Arch, r.First, r.Second, r.Errno.String(),
				r.Documented.Errno.String()))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("cases are documented otherwise: %s", strings.Join(out, "; "))
}

// Cell is a row in a word.
func (r *row) Cell() string {
	switch r.Result {
	case shared:
		return "ok"
	case refused, unsupported:
		return r.Errno.String()
	}
	return string(r.Result)
}

// Matrix is the answers of an instruction set: who is there down, who comes across.
func (a answer) Matrix(arch string) form.Table {
	rows := experiments.Where(a.Rows, func(r *row) bool { return r.Arch == arch })
	return experiments.Pivot(rows, []string{"first"}, func(r *row) []string { return []string{r.First} },
		func(r *row) string { return r.Second }, (*row).Cell)
}

// rule is why a pair is refused.
type rule struct {
	errno     tracers.Errno
	why, rule string
}

// Rules is every refusal by its rule.
func (a answer) Rules() (out [][]*row) {
	of := func(r *row) rule { return rule{r.Errno, r.Why, r.Rule} }
	refusals := experiments.Where(a.Rows, func(r *row) bool { return r.Errno != 0 })
	for _, k := range experiments.Distinct(refusals, of) {
		out = append(out, experiments.Where(refusals, func(r *row) bool { return of(r) == k }))
	}
	return out
}

// Back is the same pair in the other order; nil where it was not tried.
func (a answer) Back(r *row) *row { return a.at(r.Arch, r.Second, r.First) }

// OrderMatters is the pairs where it matters who was first, each once.
func (a answer) OrderMatters() []*row {
	return experiments.Where(a.Rows, func(r *row) bool {
		back := a.Back(r)
		return back != nil && r.First < r.Second && r.Cell() != back.Cell() && r.Result != unsupported &&
			back.Result != unsupported
	})
}
