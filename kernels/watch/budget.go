// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Limit is the most of something that a row may have.
type Limit struct {
	Name string
	Max  int64
	of   func(*Row) int64
}

// limits are what can be limited.
var limits = []Limit{
	{Name: "rounds", of: func(r *Row) int64 { return r.Rounds }},
	{Name: "burst", of: func(r *Row) int64 { return r.Burst }},
	{Name: "isolated", of: func(r *Row) int64 { return r.Isolated }},
}

// BudgetHelp says what can be limited.
const BudgetHelp = "rounds (of an interval), burst (interrupts that a CPU takes in an interval), " +
	"isolated (the same of isolated CPUs)"

// ParseBudget reads limits such as isolated=0 and burst=100.
func ParseBudget(items []string) (budget []Limit, err error) {
	for _, item := range items {
		name, value, _ := strings.Cut(item, "=")
		var names []string
		found := false
		for _, l := range limits {
			names = append(names, l.Name)
			if l.Name != name {
				continue
			}
			found = true
			if l.Max, err = strconv.ParseInt(value, 10, 64); err != nil || l.Max < 0 {
				return nil, fmt.Errorf("budget %q: want a whole number from 0, such as %s=5", item, name)
			}
			budget = append(budget, l)
		}
		if !found {
			return nil, fmt.Errorf("budget %q: %w", item, spelling.NotOneOf(name, names))
		}
	}
	return budget, nil
}

// Exceeded says what a row has too much of; "" if nothing.
func Exceeded(budget []Limit, r *Row) string {
	var over []string
	for _, l := range budget {
		if got := l.of(r); got > l.Max {
			over = append(over, fmt.Sprintf("%s %d, %d over the budget of %d", l.Name, got, got-l.Max, l.Max))
		}
	}
	return strings.Join(over, "; ")
}
