// SPDX-License-Identifier: Apache-2.0

// Package budget compares rows of tables with limits, such as isolated=0 and burst=5/ms. Each
// quantity that can be limited is declared once, by its columns.
package budget

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// Quantity is something that a budget can limit.
type Quantity struct {
	Name    string
	Columns []string // hold it; the first that a row knows counts
	Per     string   // behind a number: /ms
	Time    bool     // a time in nanoseconds, and not a count
	Doc     string
}

// Quantities are what the rows of a table can be limited in.
type Quantities []Quantity

// Limit is the most that a row may have of something.
type Limit struct {
	Quantity
	Max float64 // a count, or nanoseconds
}

// Excess is a quantity of a row that is over its limit.
type Excess struct {
	Limit
	Got float64
}

// Names are the names of the quantities.
func (all Quantities) Names() []string {
	return spelling.Each(all, func(q Quantity) string { return q.Name })
}

// Help says what can be limited, for help texts.
func (all Quantities) Help() string {
	return strings.Join(spelling.Each(all, func(q Quantity) string { return q.Name + " (" + q.Doc + ")" }), ", ")
}

// Parse reads limits such as isolated=0, burst=5/ms and update=10ms.
func (all Quantities) Parse(items []string) (limits []Limit, err error) {
	for _, item := range items {
		name, value, _ := strings.Cut(item, "=")
		i := slices.IndexFunc(all, func(q Quantity) bool { return q.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("budget %q: %w", item, spelling.NotOneOf(name, all.Names()))
		}
		if slices.ContainsFunc(limits, func(l Limit) bool { return l.Name == name }) {
			return nil, fmt.Errorf("budget %q: %s is limited twice", item, name)
		}
		most, ok := all[i].parse(value)
		if !ok {
			return nil, fmt.Errorf("budget %q: want %s", item, all[i].example())
		}
		limits = append(limits, Limit{all[i], most})
	}
	if len(limits) == 0 {
		return nil, fmt.Errorf("budget: no limit; want some of %s", strings.Join(all.Names(), ", "))
	}
	return limits, nil
}

func (q Quantity) parse(value string) (float64, bool) {
	if q.Time {
		d, err := time.ParseDuration(value)
		return float64(d), err == nil && d >= 0
	}
	number, ok := strings.CutSuffix(value, q.Per)
	n, err := strconv.ParseUint(number, 10, 64)
	return float64(n), ok && err == nil && n <= 1<<53 // the largest number up to which float64 counts
}

func (q Quantity) example() string {
	if q.Time {
		return fmt.Sprintf("a time with its unit, such as %s=2ms", q.Name)
	}
	return fmt.Sprintf("a whole number from 0, such as %s=5%s", q.Name, q.Per)
}

// format writes a value as a budget does.
func (q Quantity) format(v float64) string {
	if q.Time {
		return time.Duration(math.Ceil(v)).String()
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + q.Per
}

// String is the limit as Parse reads it.
func (l Limit) String() string { return l.Name + "=" + l.format(l.Max) }

// String says what it is and by how much it exceeds the limit.
func (e Excess) String() string {
	return fmt.Sprintf("%s %s, %s over the budget of %s", e.Name, e.format(e.Got), e.format(e.Got-e.Max), e.format(e.Max))
}

// Exceeded lists the quantities of a row that are over their limits, and the limits on quantities that the row lacks.
func Exceeded(limits []Limit, columns []results.Column, row []results.Value) (over []Excess, unknown []Limit) {
	for _, l := range limits {
		switch got, ok := l.of(columns, row); {
		case !ok:
			unknown = append(unknown, l)
		case got > l.Max:
			over = append(over, Excess{l, got})
		}
	}
	return over, unknown
}

// Say is excesses in words; "" for none.
func Say(over []Excess) string {
	return strings.Join(spelling.Each(over, Excess.String), "; ")
}

// of finds the measured values of a row.
func (q Quantity) of(columns []results.Column, row []results.Value) (float64, bool) {
	for _, name := range q.Columns {
		i := slices.IndexFunc(columns, func(c results.Column) bool { return c.Name == name })
		if i < 0 {
			continue
		}
		if v, ok := row[i].Number(); ok {
			return v, true
		}
	}
	return 0, false
}
