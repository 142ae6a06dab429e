// SPDX-License-Identifier: Apache-2.0

// Package spelling helps people who mistyped a name: it says which names there
// are, and which of them was probably meant. It also makes one thing of a whole list.
package spelling

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest is the valid name that was probably meant, "" if none is near: one
// that begins with name, else the one with the fewest letters to change
// (Levenshtein's distance), if no more than half of them and one.
func Nearest(name string, valid []string) string {
	if name == "" {
		return ""
	}
	best, distance := "", len(name)/2+2
	for _, v := range valid {
		d := distanceOf(name, v)
		if strings.HasPrefix(v, name) {
			d = 0
		}
		if d < distance {
			best, distance = v, d
		}
	}
	return best
}

// distanceOf is how many letters have to be changed, added or dropped (Levenshtein), row
// by row of the table of all beginnings.
func distanceOf(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0] // of the row above
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Hint proposes the nearest name at the end of a sentence, as "; did you mean X?",
// or says nothing.
func Hint(name string, valid []string) string {
	if best := Nearest(name, valid); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return ""
}

// enough is how many characters of names an error lists: it is about a slip.
const enough = 100

// NotOneOf says that a name is none of the valid ones, and which was meant. Of many names,
// only that one is named, if one is near.
func NotOneOf(name string, valid []string) error {
	all, meant := strings.Join(valid, ", "), Nearest(name, valid)
	if len(all) > enough && meant != "" {
		return fmt.Errorf("not one of %d names; did you mean %s?", len(valid), meant)
	}
	return fmt.Errorf("not one of %s%s", all, Hint(name, valid))
}

// Each is what each of a list is spelled like, or what else is made of it, in its order.
func Each[T, U any](all []T, spell func(T) U) (out []U) {
	out = slices.Grow(out, len(all))
	for _, one := range all {
		out = append(out, spell(one))
	}
	return out
}

// First is the first of a list that something holds of, or the zero value.
func First[T any](all []T, holds func(T) bool) (one T) {
	if i := slices.IndexFunc(all, holds); i >= 0 {
		one = all[i]
	}
	return one
}

// Where are those of a list that all conditions hold of.
func Where[T any](all []T, conditions ...func(T) bool) (out []T) {
	for _, one := range all {
		if !slices.ContainsFunc(conditions, func(holds func(T) bool) bool { return !holds(one) }) {
			out = append(out, one)
		}
	}
	return out
}

// Distinct is some part of each of a list, each once, in the order in which they come.
func Distinct[T any, K comparable](all []T, part func(T) K) (out []K) {
	for _, one := range all {
		if k := part(one); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// Numbers are those from 0 to below n.
func Numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Count is of how many of a list something holds.
func Count[T any](all []T, holds func(T) bool) (n int) {
	for _, one := range all {
		if holds(one) {
			n++
		}
	}
	return n
}

// Sum adds numbers up.
func Sum[N int | uint64 | float64 | ~int64](all []N) (sum N) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// ReadEach reads each of a list, in its order, up to the first error.
func ReadEach[T, U any](all []T, read func(T) (U, error)) (out []U, err error) {
	out = slices.Grow(out, len(all))
	for _, one := range all {
		v, err := read(one)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Several is a number of things.
func Several(n int, what string) string {
	if n != 1 && strings.HasSuffix(what, "ch") {
		what += "es"
	} else if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Number is the number of a name among the valid ones. An error calls the name a what.
func Number[T ~uint8](what, name string, valid []string) (T, error) {
	i := slices.Index(valid, name)
	if i < 0 {
		return 0, fmt.Errorf("%s %q: %w", what, name, NotOneOf(name, valid))
	}
	return T(i), nil
}

// Find is the first of a list that is spelled like that. An error calls it a what.
func Find[T any](what, name string, all []T, spell func(T) string) (one T, err error) {
	names := Each(all, spell)
	i := slices.Index(names, name)
	if i < 0 {
		return one, fmt.Errorf("%s %q: %w", what, name, NotOneOf(name, names))
	}
	return all[i], nil
}
