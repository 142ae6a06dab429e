// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// Change is one thing that the fix has changed.
type Change struct {
	What          string // "Code.Deaf", "path: handler", "plan of patcher 0"
	Where         string // in a plan: behind which step; "" elsewhere
	Broken, Fixed string
}

func (c Change) String() string {
	what := c.What
	if c.Where != "" {
		what += " behind " + c.Where
	}
	return fmt.Sprintf("%s: %s -> %s", what, c.Broken, c.Fixed)
}

// Difference is what the fix has changed, found by comparing the two machines.
func (b *Bug) Difference() ([]Change, error) {
	broken, err := b.laidOut(false)
	if err != nil {
		return nil, err
	}
	fixed, err := b.laidOut(true)
	if err != nil {
		return nil, err
	}
	return difference(broken, fixed)
}

// difference compares two machines.
func difference(broken, fixed *explore.Model) ([]Change, error) {
	list := paths(&broken.Code.Path, &fixed.Code.Path)
	list = append(list, fields("Code.", *broken.Code, *fixed.Code)...)
	list = append(list, fields("", *broken, *fixed)...)
	if n, m := len(broken.Programs), len(fixed.Programs); n != m {
		return nil, fmt.Errorf("%d patchers, and %d with the fix", n, m)
	}
	for i := range broken.Programs {
		list = append(list, programs(i, &broken.Programs[i], &fixed.Programs[i])...)
	}
	return list, nil
}

// paths compares what CPUs do.
func paths(a, b *cpus.Path) (list []Change) {
	for s := range cpus.Section(cpus.NumSections) {
		if x, y := a.Program(s), b.Program(s); x != y {
			c := Change{What: "path: " + s.String(), Broken: "[" + x.String() + "]", Fixed: "[" + y.String() + "]"}
			list = append(list, c)
		}
	}
	return list
}

// fields compares the exported fields of two values, but what is compared by
// itself, and how words are fetched, which follows from them.
func fields[T any](prefix string, a, b T) (list []Change) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		f := x.Type().Field(i)
		if !f.IsExported() || f.Name == "Programs" || f.Name == "Path" || f.Name == "Arch" || prefix == "" && f.Name == "Code" {
			continue
		}
		if p, q := x.Field(i).Interface(), y.Field(i).Interface(); !reflect.DeepEqual(p, q) {
			list = append(list, Change{What: prefix + f.Name, Broken: fmt.Sprint(p), Fixed: fmt.Sprint(q)})
		}
	}
	return list
}

// programs compares what two patchers do.
func programs(who int, a, b *explore.Program) (list []Change) {
	for i := range max(len(a.Patches), len(b.Patches)) {
		if x, y := patch(a, i), patch(b, i); x != y {
			list = append(list, Change{What: fmt.Sprintf("patch %d of patcher %d", i, who), Broken: x, Fixed: y})
		}
	}
	for _, h := range hunks(a.Plan, b.Plan) {
		h.What = fmt.Sprintf("plan of patcher %d", who)
		list = append(list, h)
	}
	return list
}

// patch spells a program's i-th patch.
func patch(p *explore.Program, i int) string {
	if i >= len(p.Patches) {
		return "none"
	}
	c := &p.Patches[i]
	return fmt.Sprintf("site %d at %s from %#x with ops %#x to %#x with ops %#x",
		c.Site, c.Addr, uint64(c.Old), c.OldOps, uint64(c.New), c.NewOps)
}

// hunks are the places where two plans differ.
func hunks(a, b []poke.Step) (list []Change) {
	long := common(a, b)
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		where := "its beginning"
		if i > 0 {
			where = a[i-1].String()
		}
		from, to := i, j
		for i < len(a) || j < len(b) {
			if i < len(a) && j < len(b) && a[i] == b[j] {
				break
			}
			if j == len(b) || i < len(a) && long[i+1][j] >= long[i][j+1] {
				i++
			} else {
				j++
			}
		}
		list = append(list, Change{Where: where, Broken: spell(a[from:i]), Fixed: spell(b[to:j])})
	}
	return list
}

// common is, for all that is left of both plans, how many steps they have in
// common, in order.
func common(a, b []poke.Step) [][]int {
	long := make([][]int, len(a)+1)
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if long[i][j] = max(long[i+1][j], long[i][j+1]); x == y {
				long[i][j] = long[i+1][j+1] + 1
			}
		}
	}
	return long
}

func spell(plan []poke.Step) string {
	words := make([]string, len(plan))
	for i, s := range plan {
		words[i] = s.String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}
