// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"
	"testing"
)

// TestSignatures: a program goes to many functions only if they agree in what it
// looks at; otherwise none of them has changed.
func TestSignatures(t *testing.T) {
	functions := []Signature{
		{Args: []string{"struct file *", "int"}, Return: "int"},
		{Args: []string{"struct file *", "long"}, Return: "int"},
		{Args: []string{"struct file *"}, Return: "long"},
		{Args: []string{"struct file *", "int"}, Return: "int"},
	}
	for _, tt := range []struct {
		uses Uses
		recs []int
		ok   bool
	}{
		{0, []int{0, 1, 2, 3}, true},
		{UsesArg(0), []int{0, 1, 2, 3}, true},
		{UsesArg(1), []int{0, 3}, true},
		{UsesArg(1), []int{0, 1}, false},
		{UsesArg(1), []int{3, 2}, false}, // it has no such argument
		{UsesReturn, []int{0, 1, 3}, true},
		{UsesReturn, []int{1, 2}, false},
		{UsesArg(0) | UsesReturn, []int{2, 0}, false},
		{UsesArg(1), []int{1}, true}, // alone it is the one that the program was verified for
	} {
		for _, a := range arches(t) {
			c := newCore(t, a, 4, TakeBack)
			c.Signature = func(rec int) Signature { return functions[rec] }
			b := NewBPF(c, images)
			p := Prog{Kind: FEntry, Number: 1, Uses: tt.uses}
			before := slices.Clone(c.text)
			_, multi := b.LinkMulti(tt.recs, p)
			if a.Traits().SingleDirectOps && (errno(multi) == 0) != tt.ok || !tt.ok && a.Traits().SingleDirectOps &&
				errno(multi) != EINVAL {
				t.Errorf("%v of %v: %v", tt.uses, tt.recs, multi)
			}
			if multi != nil && !slices.Equal(before, c.text) {
				t.Errorf("%v of %v: something has changed", tt.uses, tt.recs)
			}
			c = newCore(t, a, 4, TakeBack)
			c.Signature = func(rec int) Signature { return functions[rec] }
			if _, err := NewGlobalTramps(NewBPF(c, images), images+1<<24).Link(2, p,
				tt.recs...); (errno(err) == 0) != tt.ok || !tt.ok && errno(err) != EINVAL {
				t.Errorf("global trampoline, %v of %v: %v", tt.uses, tt.recs, err)
			}
		}
	}
}
