// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	_ "embed"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Count is what one CPU took in one row in one reading.
type Count struct {
	Arch       string `col:"arch"`
	Release    string `col:"release"`
	Action     string `col:"action"`
	Direction  string `col:"direction,enable|again|disable|idle"`
	Row        string `col:"row"`
	About      string
	CPU        int    `col:"cpu"`
	Role       string `col:"role,patcher|idle|busy|isolated"` // patcher, or what the CPU does
	Repetition int    `col:"repetition"`
	Interrupts int    `col:"interrupts"`
	Beside     string `col:"predicted difference,optional,maybe"` // what a comparison has written; it is not looked at
	Line       int    `col:"#"`                                   // of the file that it was read from
}

// patcher is the role of the CPU that switches.
const patcher = "patcher"

// rowNames are the rows in which anything was ever counted, as they first occur, with
// their descriptions.
func (m *Measurement) rowNames() (rows []Row) {
	for _, r := range m.Readings {
		for _, row := range r.Rows {
			if !slices.ContainsFunc(rows, func(s Row) bool { return s.Name == row.Name }) {
				rows = append(rows, Row{Name: row.Name, About: row.About})
			}
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}

// Counts are all counts, of every row in which any CPU ever took anything.
func (m *Measurement) Counts() (out []Count) {
	rows := m.rowNames()
	for _, r := range m.Readings {
		for _, row := range rows {
			i := slices.IndexFunc(r.Rows, func(s Row) bool { return s.Name == row.Name })
			for cpu, of := range m.CPUs {
				role := of.String()
				if cpu == 0 {
					role = patcher
				}
				c := Count{Arch: m.Arch, Release: m.Release, Action: r.Action, Direction: r.Direction, Row: row.Name,
					About: row.About, CPU: cpu, Role: role, Repetition: r.Repetition}
				if i >= 0 && cpu < len(r.Rows[i].Interrupts) {
					c.Interrupts = r.Rows[i].Interrupts[cpu]
				}
				out = append(out, c)
			}
		}
	}
	return out
}

// Columns are those of counts.
var Columns = results.Declare[*Count](declared, "rows", nil)

// ComparedColumns are what a comparison adds, on the counts of each row's quietest receiver.
var ComparedColumns = results.Declare(declared, "compared", map[string]func(*Compared) any{
	"difference": func(c *Compared) any { return c.Interrupts - c.Of.Predicted.Rounds },
})

// Compared is a count with the summary of its row, where it is of the quietest receiver and
// predicted.
type Compared struct {
	Count
	Of *Summary // nil for any other
}

// WithPredictions adds to each count what is predicted of it.
func WithPredictions(counts []Count, all []Summary) []*Compared {
	out := make([]*Compared, len(counts))
	for i, c := range counts {
		out[i] = &Compared{Count: c}
		for j := range all {
			s := &all[j]
			if s.Compared && s.CPU == c.CPU && s.Row == c.Row && s.Action == c.Action && s.Direction == c.Direction {
				out[i].Of = s
			}
		}
	}
	return out
}

// Summary is one row of one action and direction, over receivers and repetitions.
type Summary struct {
	Arch, Release          string
	Action, Direction, Row string
	About                  string
	Receivers, Repetitions int
	// Quietest is the smallest of the receivers' medians over repetitions: the value
	// that is nearest to being clean of what else happens.
	Quietest float64
	// Isolated is the same of isolated receivers alone; -1 without any.
	Isolated float64
	// Least and Most are of all readings of receivers.
	Least, Most int
	// Patcher is the median of the CPU that switches.
	Patcher float64
	// Idle is the quietest receiver's in the control.
	Idle float64
	// CPU is the quietest receiver, the first of several.
	CPU int
	// Predicted is what a receiver should take, where it is Compared.
	Predicted Prediction
	Compared  bool
}

// Summaries are those of all actions and directions without the control, of rows in which
// some receiver took an interrupt.
func (m *Measurement) Summaries() (out []Summary) {
	type key struct{ action, direction, row string }
	counts, order := map[key][]Count{}, []key(nil)
	for _, c := range m.Counts() {
		k := key{c.Action, c.Direction, c.Row}
		if counts[k] == nil {
			order = append(order, k)
		}
		counts[k] = append(counts[k], c)
	}
	for _, k := range order {
		s := summaryOf(counts[k])
		if k.direction == Control || s.Most == 0 {
			continue
		}
		if idle := counts[key{k.action, Control, k.row}]; idle != nil {
			s.Idle = summaryOf(idle).Quietest
		}
		out = append(out, s)
	}
	return out
}

// summaryOf is the summary of counts that differ in CPU and repetition only.
func summaryOf(counts []Count) Summary {
	first := counts[0]
	s := Summary{Arch: first.Arch, Release: first.Release, Action: first.Action, Direction: first.Direction,
		Row: first.Row, About: first.About, Isolated: -1, Quietest: -1}
	byCPU, role := map[int][]int{}, map[int]string{}
	last := 0
	for _, c := range counts {
		byCPU[c.CPU] = append(byCPU[c.CPU], c.Interrupts)
		role[c.CPU], last = c.Role, max(last, c.CPU)
		if c.Role != patcher {
			if s.Receivers == 0 || c.Interrupts < s.Least {
				s.Least = c.Interrupts
			}
			s.Receivers, s.Most = last, max(s.Most, c.Interrupts)
		}
	}
	for cpu := range last + 1 {
		m := Median(byCPU[cpu])
		s.Repetitions = len(byCPU[cpu])
		switch {
		case role[cpu] == patcher:
			s.Patcher = m
			continue
		case role[cpu] == cpus.Isolated.String() && (s.Isolated < 0 || m < s.Isolated):
			s.Isolated = m
		}
		if s.Quietest < 0 || m < s.Quietest {
			s.Quietest, s.CPU = m, cpu
		}
	}
	return s
}

// Median is the middle of some numbers, or half-way between the two in the middle.
func Median(of []int) float64 {
	sorted := slices.Sorted(slices.Values(of))
	n := len(sorted)
	return float64(sorted[(n-1)/2]+sorted[n/2]) / 2
}

// SummaryColumns are those of summaries.
var SummaryColumns = results.Declare(declared, "summary", map[string]func(Summary) any{
	"isolated": func(s Summary) any { return results.If(s.Isolated >= 0, s.Isolated) },
})

// Stack is a stack of callers, and how often it interrupted others in all repetitions.
type Stack struct {
	Caller
	Times int
}

// Stacks are all stacks of all actions, as they first occurred.
func (m *Measurement) Stacks() (out []Stack) {
	for _, c := range m.Callers {
		i := slices.IndexFunc(out, func(s Stack) bool { return s.Caller == c })
		if i < 0 {
			i, out = len(out), append(out, Stack{Caller: c})
		}
		out[i].Times++
	}
	return out
}

// CallerColumns are those of stacks.
var CallerColumns = results.Declare[Stack](declared, "caller", nil)

// Pair is one row of one action in one direction, on two kernels: before a patch and after it.
type Pair struct {
	Before, After Summary  // each with the prediction of its own image
	Forecast      *Summary // After with the forecast of the first image, nil if there was none
}

// Pairs puts two kernels side by side, in the rows that their predictions have. The forecast is of
// the first kernel with other mechanisms; nil where there is none.
func Pairs(before, after []Summary, forecast Predictions) (pairs []*Pair) {
	for _, b := range before {
		i := slices.IndexFunc(after, func(a Summary) bool {
			return a.Action == b.Action && a.Direction == b.Direction && a.Row == b.Row
		})
		if i < 0 || !b.Compared || !after[i].Compared {
			continue
		}
		p := &Pair{Before: b, After: after[i]}
		if n, known := forecast[Switched{b.Action, b.Direction}][b.Row]; known {
			f := after[i]
			f.Predicted = n
			p.Forecast = &f
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// Judged is what was measured of the pair with a prediction each: of either kernel, and of the
// forecast.
func (p *Pair) Judged() []Summary {
	all := []Summary{p.Before, p.After}
	if p.Forecast != nil {
		all = append(all, *p.Forecast)
	}
	return all
}

// PairColumns are the columns of pairs.
var PairColumns = results.Declare(declared, "pair", map[string]func(*Pair) any{
	"forecast": func(p *Pair) any {
		if p.Forecast == nil {
			return results.Empty
		}
		return p.Forecast.Predicted.Rounds
	},
	"why": func(p *Pair) any { all := p.Judged(); return results.OrEmpty(all[len(all)-1].Why()) },
})
