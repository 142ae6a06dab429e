// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// answer is what the rows come to, in a line, for people: whether they keep to the budget,
// and what stands in them.
func (s *sweep) answer() string {
	var parts []string
	if s.cut {
		parts = append(parts, "INCOMPLETE")
	}
	switch {
	case len(s.over) > 0 && s.held == 1:
		parts = append(parts, "NO: over the budget")
	case len(s.over) > 0:
		parts = append(parts, fmt.Sprintf("NO: over the budget in %d of %d rows", len(s.over), s.held))
	case s.flags.limits != nil && s.unknown == nil && !s.cut:
		parts = append(parts, "YES: within the budget")
	}
	if s.headline != nil && s.out.rows > 0 {
		parts = append(parts, s.headline())
	}
	return s.painted(strings.Join(parts, "; "))
}

// soFar is how much the answer rests on, where rows are missing.
func (s *sweep) soFar() string {
	if !s.cut {
		return ""
	}
	return fmt.Sprintf(" so far (%d of %d rows)", s.out.rows, len(s.mine)*s.perPoint)
}

// costs is what the rows cost a CPU.
func (s *sweep) costs() string {
	cost := fmt.Sprintf("COST%s: %s interrupts of each CPU", s.soFar(), &s.cost)
	if s.isolated.known {
		cost += ", " + s.isolated.String() + " of an isolated one"
	}
	return cost
}

// outcome is what went wrong while rows were made.
func (s *sweep) outcome() string {
	if s.violations.sum+s.lost.sum > 0 {
		line := fmt.Sprintf("VIOLATIONS%s: %v", s.soFar(), s.violations.sum)
		if len(s.broken) > 0 {
			line += ", " + strings.Join(slices.Sorted(maps.Keys(s.broken)), ", ")
		}
		if s.lost.sum > 0 {
			line += fmt.Sprintf(", %v lost calls", s.lost.sum)
		}
		return line
	}
	rows := "1 row"
	if s.out.rows != 1 {
		rows = fmt.Sprintf("%d rows", s.out.rows)
	}
	if s.cut {
		return fmt.Sprintf("OK%s: 0 violations, 0 lost calls", s.soFar())
	}
	return "OK: 0 violations, 0 lost calls in " + rows
}
