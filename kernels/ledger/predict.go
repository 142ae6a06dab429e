// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	_ "embed"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/budget"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Total is what entries send a receiver in one row of /proc/interrupts.
type Total struct {
	Row     Row
	Entries int   // that are counted there
	Rounds  int   // interrupts
	Within  Range // in which the rounds lie
}

// Totals sums n entries up, in each row of the kernel.
func (k *Kernel) Totals(n int, entry func(i int) *Entry) []Total {
	totals := make([]Total, len(k.Rows()))
	for at, row := range k.Rows() {
		t := &totals[at]
		t.Row = row
		for i := range n {
			e := entry(i)
			if e.Row != row.Name {
				continue
			}
			t.Entries++
			t.Rounds += e.Rounds()
			t.Within.Add(e)
		}
	}
	return totals
}

// Step switches an action on, or off.
type Step struct {
	Action string
	On     bool
}

// Course is what a program switches, in order: when it begins, and when it ends.
type Course struct {
	Name       string
	Begin, End []Step
	Unknown    []string // what of it no rule covers: it may send more
}

// Once is the course of one action: on, and off again.
func Once(action string) Course {
	return Course{Name: action, Begin: []Step{{action, true}}, End: []Step{{action, false}}}
}

// Predicted is one line of a prediction: a cause, or what a CPU of a role takes in all.
type Predicted struct {
	kernel            *Kernel
	action, direction string
	line              *Line // nil for a total
	row, role         string
	interrupts        int
	within            Range // in which they lie
}

// PredictColumns are the columns of predictions.
var PredictColumns = results.Declare(declared, "predict", map[string]func(Predicted) any{
	"part": func(p Predicted) any { return p.ofCause(func(l *Line) any { return l.Part }, "total") },
	"cause": func(p Predicted) any {
		return p.ofCause(func(l *Line) any { return l.Cause.String() }, results.Empty)
	},
	"pokes": func(p Predicted) any { return p.ofCause(func(l *Line) any { return l.Pokes }, results.Empty) },
	"most":  func(p Predicted) any { return results.If(!p.within.OrMore, p.within.Most) },
	"basis": func(p Predicted) any {
		return p.ofCause(func(l *Line) any { return string(l.Basis) }, results.OrEmpty(p.bound()))
	},
	"source": func(p Predicted) any {
		return p.ofCause(func(l *Line) any { return results.OrEmpty(l.Source) }, results.Empty)
	},
})

// bound says that a number is a lower bound.
func (p Predicted) bound() string {
	if p.within.OrMore {
		return "or more"
	}
	return ""
}

// ofCause is a cell of a line, or the one of a total.
func (p Predicted) ofCause(of func(*Line) any, total any) any {
	if p.line == nil {
		return total
	}
	return of(p.line)
}

// Predict is what CPUs of these roles take when a course begins, and when it ends: cause by cause, and in all. Waits for
// grace periods are lines without interrupts.
func (k *Kernel) Predict(t *records.Table, c Course, roles []cpus.Role) (out []Predicted, err error) {
	r, err := k.NewReplay(t)
	if err != nil {
		return nil, err
	}
	for i, direction := range []string{"enable", "disable"} {
		var lines []Line
		of := Predicted{kernel: k, action: c.Name, direction: direction}
		for _, step := range [][]Step{c.Begin, c.End}[i] {
			sent, err := r.Switch(step.Action, step.On)
			if err != nil {
				return nil, err
			}
			lines = append(lines, sent...)
			for j := range sent {
				if l := &sent[j]; l.Rounds() > 0 || l.Waits() {
					one := of
					one.action, one.line, one.row, one.role, one.interrupts = step.Action, l, l.Row, "receiver", l.Rounds()
					one.within.Add(&l.Entry)
					out = append(out, one)
				}
			}
		}
		for _, total := range k.Totals(len(lines), func(i int) *Entry { return &lines[i].Entry }) {
			if total.Rounds > 0 || total.Row.Modelled { // elsewhere others count, too: nothing is not said of it
				total.Within.OrMore = total.Within.OrMore || len(c.Unknown) > 0
				out = append(out, of.each(total, roles)...)
			}
		}
	}
	return out, nil
}

// each is what a CPU of each role takes of a total, and the patcher's own share.
func (p Predicted) each(total Total, roles []cpus.Role) (out []Predicted) {
	patcher, seen := cpus.Housekeeper(roles), map[cpus.Role]bool{cpus.Offline: true}
	for i, role := range roles {
		p.row, p.role, p.interrupts, p.within = total.Row.Name, role.String(), total.Rounds, total.Within
		switch {
		case i == patcher:
			p.role = "patcher"
			if !total.Row.SenderToo {
				p.interrupts, p.within = 0, Range{}
			}
		case seen[role]:
			continue
		default:
			seen[role] = true
		}
		out = append(out, p)
	}
	return out
}

// PredictLimits are what a switch may cost a CPU: any, or one of a role.
func PredictLimits() (all budget.Quantities) {
	all = budget.Quantities{{Name: "ipis", Columns: []string{"interrupts"}, Doc: "interrupts that a CPU takes for one switch"}}
	for _, role := range []string{cpus.Busy.String(), cpus.Idle.String(), cpus.Isolated.String(), cpus.IrqsOff.String(), "patcher"} {
		all = append(all, budget.Quantity{Name: role, Columns: all[0].Columns, Doc: "the same of such a CPU"})
	}
	return all
}

// Total tells whether the line is what a CPU takes in all.
func (p Predicted) Total() bool { return p.line == nil }

// Over is what a total has too much of.
func (p Predicted) Over(limits []budget.Limit) (over []budget.Excess) {
	for _, l := range limits {
		if p.Total() && (l.Name == "ipis" || l.Name == p.role) && float64(p.interrupts) > l.Max {
			over = append(over, budget.Excess{Limit: l, Got: float64(p.interrupts)})
		}
	}
	return over
}

// Name names the line's action, direction and row.
func (p Predicted) Name() string { return fmt.Sprintf("%s, %s, row %s", p.action, p.direction, p.row) }

// Most is what the CPUs take that take most, in words, an item for each direction and row.
func Most(rows []Predicted) (said []string) {
	most, more := map[string]int{}, map[string]string{}
	for _, r := range rows {
		if r.Total() {
			what := fmt.Sprintf("to %s %s (%s)", r.direction, r.action, r.row)
			if _, known := most[what]; !known {
				said = append(said, what)
			}
			most[what] = max(most[what], r.interrupts)
			if r.within.OrMore {
				more[what] = r.bound() + " "
			}
		}
	}
	for i, what := range said {
		said[i] = fmt.Sprintf("%d %s%s", most[what], more[what], what)
	}
	return said
}
