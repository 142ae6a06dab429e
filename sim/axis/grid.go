// SPDX-License-Identifier: Apache-2.0

package axis

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
)

// Choices are what was chosen.
type Choices = choice.Choices

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

// Read reads choices. Errors are those of package choice, and begin with the axis that they are about.
func (t Table[C]) Read(choices Choices) (*Grid[C], error) {
	for name := range choices {
		if t.Named(name) == nil {
			return nil, choice.Errorf("%s: there is no such axis", choice.Name(name))
		}
	}
	g := &Grid[C]{}
	for i := range t {
		a := &t[i]
		given, chosen := choices[a.Name]
		if err := t.goTogether(a, chosen, choices); err != nil {
			return nil, err
		}
		if !chosen && !slices.ContainsFunc(t, func(other Axis[C]) bool { // in place of this one
			_, ok := choices[other.Name]
			return ok && other.Replaces == a.Name
		}) {
			given = a.Presets()
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
		return choice.Errorf("%s goes with %s", choice.Name(a.Name), choice.Name(a.Needs))
	}
	if _, ok := choices[a.Replaces]; a.Replaces != "" && ok {
		return choice.Errorf("%s goes in place of %s: want one of them", choice.Name(a.Name), choice.Name(a.Replaces))
	}
	return nil
}

// read reads the values of one axis.
func (a *Axis[C]) read(given []string, chosen bool) (line[C], error) {
	l := line[C]{Axis: a, chosen: chosen}
	if chosen && len(given) == 0 {
		return l, choice.Errorf("%s: empty list", choice.Name(a.Name))
	}
	l.values = given
	if a.Split != nil && len(given) > 0 {
		var err error
		if l.values, err = a.Split(given); err != nil {
			return l, a.named("", err)
		}
	}
	for _, value := range l.values {
		if err := a.Known(value); err != nil {
			return l, choice.Errorf("%s %q: %w", choice.Name(a.Name), value, err)
		}
		set, err := a.Parse(value)
		if err != nil {
			return l, a.named(value, err)
		}
		l.sets = append(l.sets, set)
	}
	return l, nil
}

// named lets an error begin with the axis, unless it begins with the name of a file, and
// its line.
func (a *Axis[C]) named(value string, err error) error {
	text := err.Error()
	var path *fs.PathError
	switch {
	case a.IsFile(value) && strings.HasPrefix(text, value+":"):
		return err
	case errors.As(err, &path):
		return choice.Errorf("%s: %w", choice.Name(a.Name), err)
	case strings.HasPrefix(text, a.Name+" "):
		return choice.Errorf("%s %s", choice.Name(a.Name), strings.TrimPrefix(text, a.Name+" "))
	}
	return choice.Errorf("%s %w", choice.Name(a.Name), err)
}

// Points is how many combinations there are at most: as many as lists multiply to,
// without those of the axes except, or the largest number.
func (g *Grid[C]) Points(except ...string) int {
	points := 1
	for _, l := range g.lines {
		n := max(len(l.sets), 1)
		if slices.Contains(except, l.Name) {
			n = 1
		}
		if points > math.MaxInt/n {
			return math.MaxInt
		}
		points *= n
	}
	return points
}

// Several are the columns of axes with several values: rows cannot be told apart without
// them.
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
		names = append(names, slices.DeleteFunc(slices.Clone(l.values), func(v string) bool { return !l.IsFile(v) })...)
	}
	return names
}

// ColumnName is the column of tables that shows the axis.
func (a *Axis[C]) ColumnName() string {
	if a.Column != "" {
		return a.Column
	}
	return a.Name
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
			return choice.Errorf("%s goes with %s %s: the %s engine does not know it", choice.Name(l.Name),
				choice.Name("engine"), strings.Join(know, ","), not[0])
		}
	}
	return nil
}

// Cross multiplies combinations by all axes. After each axis, the combinations so far
// go through then.
func (g *Grid[C]) Cross(base []C, then func(name string, so []C) ([]C, error)) ([]C, error) {
	for _, l := range g.lines {
		var err error
		if base, err = l.cross(base); err != nil {
			return nil, err
		}
		if base, err = then(l.Name, base); err != nil {
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
