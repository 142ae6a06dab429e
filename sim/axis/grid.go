// SPDX-License-Identifier: Apache-2.0

package axis

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Choices are what was chosen, by flag. What is not there was left open.
type Choices map[string][]string

// Grid is the values of each axis of a table, read and ready to be multiplied.
type Grid[C any] struct {
	lines []line[C]
}

type line[C any] struct {
	*Axis[C]
	chosen bool // and not preset
	values []string
	sets   []Set[C]
}

// Read reads choices. Errors begin with the flag that they are about.
func (t Table[C]) Read(choices Choices) (*Grid[C], error) {
	for flag := range choices {
		if t.Named(flag) == nil {
			return nil, fmt.Errorf("--%s: there is no such axis", flag)
		}
	}
	g := &Grid[C]{}
	for i := range t {
		a := &t[i]
		given, chosen := choices[a.Flag]
		if err := t.goTogether(a, chosen, choices); err != nil {
			return nil, err
		}
		if !chosen && t.replaced(a, choices) {
			given = nil
		} else if !chosen {
			given = a.Preset
		}
		l, err := a.read(given, chosen)
		if err != nil {
			return nil, err
		}
		g.lines = append(g.lines, l)
	}
	return g, nil
}

// goTogether holds an axis that was chosen against what else was.
func (t Table[C]) goTogether(a *Axis[C], chosen bool, choices Choices) error {
	if !chosen {
		return nil
	}
	if _, ok := choices[a.Needs]; a.Needs != "" && !ok {
		return fmt.Errorf("--%s goes with --%s", a.Flag, a.Needs)
	}
	if _, ok := choices[a.Replaces]; a.Replaces != "" && ok {
		return fmt.Errorf("--%s goes in place of --%s: want one of them", a.Flag, a.Replaces)
	}
	return nil
}

// replaced tells whether another axis was chosen in place of this one.
func (t Table[C]) replaced(a *Axis[C], choices Choices) bool {
	for _, other := range t {
		if _, ok := choices[other.Flag]; ok && other.Replaces == a.Flag {
			return true
		}
	}
	return false
}

// read reads the values of one axis.
func (a *Axis[C]) read(given []string, chosen bool) (line[C], error) {
	l := line[C]{Axis: a, chosen: chosen}
	if chosen && len(given) == 0 {
		return l, fmt.Errorf("--%s: empty list", a.Flag)
	}
	l.values = given
	if a.Split != nil && len(given) > 0 {
		var err error
		if l.values, err = a.Split(given); err != nil {
			return l, a.named("", err)
		}
	}
	for _, value := range l.values {
		if a.Closed && !slices.Contains(a.Names, value) {
			return l, fmt.Errorf("--%s %q: %w", a.Flag, value, spelling.NotOneOf(value, a.Names))
		}
		set, err := a.Parse(value)
		if err != nil {
			return l, a.named(value, err)
		}
		l.sets = append(l.sets, set)
	}
	return l, nil
}

// named lets an error begin with the flag, unless it begins with the name of a file, and
// its line.
func (a *Axis[C]) named(value string, err error) error {
	text := err.Error()
	var path *fs.PathError
	switch {
	case a.Files && strings.HasPrefix(text, value+":"):
		return err
	case errors.As(err, &path):
		return fmt.Errorf("--%s: %w", a.Flag, err)
	case strings.HasPrefix(text, a.Flag+" "):
		return fmt.Errorf("--%w", err)
	}
	return fmt.Errorf("--%s %w", a.Flag, err)
}

// Points is how many combinations there are at most: as many as lists multiply to,
// without those of the axes except, or the largest number.
func (g *Grid[C]) Points(except ...string) int {
	points := 1
	for _, l := range g.lines {
		n := max(len(l.sets), 1)
		if slices.Contains(except, l.Flag) {
			n = 1
		}
		if points > math.MaxInt/n {
			return math.MaxInt
		}
		points *= n
	}
	return points
}

// Several are the columns of axes of which several values were asked for: rows cannot
// be told apart without.
func (g *Grid[C]) Several() map[string]bool {
	out := map[string]bool{}
	for _, l := range g.lines {
		if len(l.sets) > 1 {
			out[l.ColumnName()] = true
		}
	}
	return out
}

// Files are the values that may name files.
func (g *Grid[C]) Files() (names []string) {
	for _, l := range g.lines {
		if l.Axis.Files {
			names = append(names, l.values...)
		}
	}
	return names
}

// ColumnName is the column of tables that shows the axis.
func (a *Axis[C]) ColumnName() string {
	if a.Column != "" {
		return a.Column
	}
	return a.Flag
}

// Engine is something that can make use of some axes.
type Engine struct {
	Name string
	Uses uint
}

// Refuse refuses an axis that was chosen and that some of the engines in use do not
// know. All are those that there are.
func (g *Grid[C]) Refuse(all []Engine, inUse []string) error {
	for _, l := range g.lines {
		var know, not []string
		heard := false
		for _, e := range all {
			knows, used := l.Uses&e.Uses != 0, slices.Contains(inUse, e.Name)
			if knows {
				know, heard = append(know, e.Name), heard || used
			} else if used {
				not = append(not, e.Name)
			}
		}
		if l.chosen && len(not) > 0 && !(heard && l.Silent) {
			return fmt.Errorf("--%s goes with --engine %s: the %s engine does not know it", l.Flag, strings.Join(know, ","),
				not[0])
		}
	}
	return nil
}

// Cross multiplies combinations by all axes. After each axis, the combinations so far
// go through then.
func (g *Grid[C]) Cross(base []C, then func(flag string, so []C) ([]C, error)) ([]C, error) {
	for _, l := range g.lines {
		var err error
		if base, err = l.cross(base); err != nil {
			return nil, err
		}
		if base, err = then(l.Flag, base); err != nil {
			return nil, err
		}
	}
	return base, nil
}

func (l *line[C]) cross(base []C) ([]C, error) {
	if len(l.sets) == 0 {
		return base, nil
	}
	out := make([]C, 0, len(base)*len(l.sets))
	for i := range base {
		if l.Applies != nil && !l.Applies(&base[i]) {
			out = append(out, base[i])
			continue
		}
		var unfit Unfit
		before := len(out)
		for _, set := range l.sets {
			c := base[i]
			if err := set(&c); err == nil {
				out = append(out, c)
			} else if !errors.As(err, &unfit) {
				return nil, err
			}
		}
		if len(out) == before {
			return nil, unfit
		}
	}
	return out, nil
}
