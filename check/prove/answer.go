// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"strings"
)

// Answers is what proofs come to in a line, for people.
func Answers(rows []*Row) string {
	if len(rows) == 1 {
		return rows[0].answer()
	}
	count := map[Verdict]int{}
	for _, r := range rows {
		count[r.Verdict]++
	}
	var parts []string
	for _, v := range []Verdict{Refuted, Unproved, Incomplete, Proved} {
		if n := count[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToUpper(string(v))))
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(" of %d questions", len(rows))
}

func (r *Row) answer() string {
	switch {
	case r.Verdict == Proved:
		return fmt.Sprintf("PROVED for any number of CPUs, sites and updates (%d views)", r.Views())
	case r.Found != nil:
		return fmt.Sprintf("REFUTED: %s in %d steps", r.Found.Violation.Property, r.Found.Depth)
	}
	return strings.ToUpper(string(r.Verdict)) + ": " + r.Condition
}

// Assumes is what a proof takes for granted, in one line.
func (r *Row) Assumes() string {
	online := "every CPU online throughout"
	if r.Model.Code.Path.ComesUp() {
		online = "CPUs come online at any time, and stay"
	}
	line := fmt.Sprintf("fetch %s; one patcher; %s; tasks are not preempted inside of a call; ", r.Fetch, online)
	if at := r.Model.Code.Sites[0]; r.Question.Offset != 0 || r.Model.FinerElsewhere() {
		line += fmt.Sprintf("sites at %d mod 8; ", at%8)
	}
	if on := r.Model.RestsOn(); on != "" {
		line += on + "; "
	}
	line += "not modelled: cache maintenance, alias mappings, "
	if !r.Model.Code.Path.NMIs() {
		line += "non-maskable interrupts, "
	}
	line += "nested traps"
	if r.Verdict == Proved && r.Stuck == "" {
		return line
	}
	return line + "; not proved: that updates end"
}
