// SPDX-License-Identifier: Apache-2.0

package experiments

import "slices"

// Where are the rows that all conditions hold of.
func Where[R any](rows []R, conditions ...func(R) bool) (out []R) {
	for _, r := range rows {
		if !slices.ContainsFunc(conditions, func(holds func(R) bool) bool { return !holds(r) }) {
			out = append(out, r)
		}
	}
	return out
}

// First is the first row that a condition holds of, or the zero value.
func First[R any](rows []R, holds func(R) bool) (out R) {
	if i := slices.IndexFunc(rows, holds); i >= 0 {
		out = rows[i]
	}
	return out
}

// Find is the first row that a condition holds of; nil if there is none.
func Find[R any](rows []R, holds func(*R) bool) *R {
	for i := range rows {
		if holds(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}

// Distinct is some part of each row, each once, in the order in which they come.
func Distinct[R any, K comparable](rows []R, part func(R) K) (out []K) {
	for _, r := range rows {
		if k := part(r); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
