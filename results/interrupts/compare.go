// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Options chooses which rows are compared, and how they are explained.
type Options struct {
	// Rows are the names of the rows to compare and to explain. Without any, all
	// rows that changed are compared. Explained are the rows of function calls, the
	// interrupts of rounds (CAL on x86, IPI1 on arm64 and riscv64), and a row that is
	// the only one.
	Rows []string
	// All keeps rows that did not change, which are left out otherwise unless they
	// are explained.
	All bool
	// Slots, unless 0, asks for the interval of patches, with PerBatch rounds a batch: see
	// [Patches].
	Slots    int
	PerBatch int64
	// Other is how many of the rounds are known not to be those of patches.
	Other Range
	// Exact asks only for rounds that leave nothing over. Near explanations are left out, and two
	// CPUs get their rounds, though any pair of counts fits.
	Exact bool
	// Background, unless nil, is an earlier reading: as long before each pair as the pair is
	// apart, with nothing switched in between. Its growth is taken off.
	Background *Snapshot
}

// Comparison is an interrupt row of a pair of readings, with the rounds that explain it.
type Comparison struct {
	RowDelta
	Explained bool // whether rounds were looked for
	Explanation
	Near    *Nearest  // nil where nothing is near, or it was not asked for
	Simpler *Nearest  // fewer senders than those that fit exactly, with a few interrupts left over; nil without such
	Patches *Interval // nil where it was not asked for, or does not follow
}

// About is the rounds that explain the counts, or that these are nearest to; false where nothing follows.
func (r *Comparison) About() (rounds int64, follows bool) {
	if !r.Known && r.Near != nil {
		return r.Near.Rounds, true
	}
	return r.Rounds, r.Known
}

// SentBy names the CPUs that sent the rounds, those with the most first; "" where nothing follows.
func (r *Comparison) SentBy() string {
	switch {
	case r.Known && r.Rounds > 0:
		return senders(r.Sent, r.Rounds, r.CPUs)
	case !r.Known && r.Near != nil:
		return senders(r.Near.Sent, r.Near.Rounds, r.CPUs)
	}
	return ""
}

// LeftOver is the interrupts that no round explains, and where.
func (r *Comparison) LeftOver() string {
	if r.Known || r.Near == nil {
		return ""
	}
	return leftOver(r.Near.Left, r.CPUs)
}

// Interrupts is the sum of a row's growth.
func (r *Comparison) Interrupts() int64 { return spelling.Sum(r.Delta) }

// Sentence is the result of a row, for people.
func (r *Comparison) Sentence() string {
	switch {
	case r.Known && r.Rounds == 0:
		return r.Name + ": no rounds"
	case r.Known && r.Simpler != nil:
		return fmt.Sprintf("%s: %s, sent by %s; or %s", r.Name, spelling.Several(int(r.Rounds), "round"), r.SentBy(),
			r.Simpler.said(r.CPUs))
	case r.Known:
		return fmt.Sprintf("%s: %s, sent by %s", r.Name, spelling.Several(int(r.Rounds), "round"), r.SentBy())
	case r.Near == nil:
		return r.Name + ": " + r.Reason
	case r.Near.Rounds == 0:
		return fmt.Sprintf("%s: no rounds; left over: %s", r.Name, r.LeftOver())
	}
	return r.Name + ": about " + r.Near.said(r.CPUs)
}

// Compare says what grew between two readings, row by row.
func Compare(p Pair, o Options) (shown []Comparison, err error) {
	deltas, err := Diff(p.Before, p.After)
	if err != nil {
		return nil, err
	}
	for _, name := range o.Rows {
		if !slices.ContainsFunc(deltas, func(d RowDelta) bool { return d.Name == name }) {
			return nil, wrong(p.Before.Name, 0, name, "there is no such row")
		}
	}
	if o.Background != nil {
		idle, err := Diff(*o.Background, p.Before)
		if err != nil {
			return nil, err
		}
		deltas = Subtract(deltas, idle)
	}
	for _, d := range deltas {
		row := Comparison{RowDelta: d}
		switch {
		case o.explains(d, len(deltas)):
			err = row.explain(o)
		case len(o.Rows) > 0 || !o.All && !d.Changed():
			continue
		case d.Missing() != "":
			row.Reason = "the row is missing " + d.Missing()
		}
		if err != nil {
			return nil, err
		}
		shown = append(shown, row)
	}
	return shown, nil
}

// explain explains the row, by patches too where the slots are known.
func (f *Comparison) explain(o Options) error {
	d := f.RowDelta
	f.Explained, f.Explanation = true, d.Explain()
	if !o.Exact && len(d.CPUs) == 2 && f.Known && f.Rounds > 0 {
		// Consistent, whatever it is.
		f.Explanation = Explanation{Consistent: true, Reason: "nothing follows: with two CPUs any two counts fit"}
	}
	if near, ok := Near(d.Delta); ok && !o.Exact && d.CPUs != nil {
		switch {
		case !f.Known:
			f.Near = &near
		case near.senders() < f.Senders && near.strays() < int64(len(d.CPUs)):
			f.Simpler = &near
			f.Reason = "simpler: " + near.said(d.CPUs)
		}
	}
	if !f.Known || o.Slots == 0 {
		return nil
	}
	patches, err := Patches(f.Rounds, o.PerBatch, o.Slots, o.Other)
	if o.Other.Lo > f.Rounds { // the known rounds do not fit the counts
		f.Consistent = false
	}
	reasons := slices.DeleteFunc([]string{f.Reason, patches.Reason}, func(s string) bool { return s == "" })
	f.Reason, f.Patches = strings.Join(reasons, "; "), &patches
	return err
}

// explains tells whether the row is one that rounds should account for. Timers,
// devices and rescheduling are not made of broadcasts.
func (o Options) explains(d RowDelta, rows int) bool {
	if len(o.Rows) > 0 {
		return slices.Contains(o.Rows, d.Name)
	}
	if d.Description == "" {
		return rows == 1 || d.Name == "CAL" || d.Name == "IPI1"
	}
	calls := strings.ToLower(d.Description)
	return rows == 1 || strings.Contains(calls, "function call interrupts") && !strings.HasPrefix(calls, "single")
}
