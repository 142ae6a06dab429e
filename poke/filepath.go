// SPDX-License-Identifier: Apache-2.0

package poke

import (
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
)

// Sections of a file about the CPUs' side: their path, a step a line.

// pathSection is a section of the path as its file says it.
type pathSection struct {
	line  int // of its head, 0 where there is none
	lines []pathLine
}

// pathLine is a step of a path.
type pathLine struct {
	line int
	step cpus.PathStep
	when []condition
}

// defaultPath is what CPUs do where a file does not say.
//
//go:embed default.path
var defaultPath string

// DefaultPath is what CPUs do where a plan file does not say, as a plan file says it.
func DefaultPath() string { return defaultPath }

// pathStep reads a step of a path and its conditions.
func (in *reader) pathStep(words []string) (err error) {
	l := pathLine{line: in.last}
	if i := slices.Index(words, ifWord); i >= 0 {
		if l.when, err = in.when(words[i+1:]); err != nil {
			return err
		}
		words = words[:i]
	}
	if len(words) == 0 {
		return in.wrong(in.last, "%q: no step before it", ifWord)
	}
	if l.step, err = cpus.ParsePathStep(in.path, strings.Join(words, " ")); err != nil {
		return in.wrong(in.last, "%v", err)
	}
	s := &in.paths[in.path]
	s.lines = append(s.lines, l)
	return in.count(strings.Join(words, " "))
}

// pathOn is the path on sites of a shape: sections that the file does not have are
// the architecture's own. lazy: rounds leave out CPUs in user space.
func (f *planFile) pathOn(s Shape, lazy bool) (cpus.Path, *PlanError) {
	native := cpus.NativePath(s.Traits, s.Len, lazy)
	var sections [cpus.NumSections][]cpus.PathStep
	var lines [cpus.NumSections][]int
	for i, stated := range f.paths {
		if stated.line == 0 {
			sections[i] = native.Program(cpus.Section(i)).Steps()
			continue
		}
		for _, l := range stated.lines {
			if !holdAll(l.when, s) {
				continue
			}
			if l.step.ReadsLiteral() && !s.Literals() {
				return cpus.Path{}, f.wrong(l.line, "%s: a site has no literal (write \"%s if literal\")", l.step, l.step)
			}
			sections[i], lines[i] = append(sections[i], l.step), append(lines[i], l.line)
		}
	}
	p, err := cpus.NewPath(sections)
	var wrong *cpus.PathError
	if !errors.As(err, &wrong) {
		return p, nil
	}
	line := f.paths[wrong.Section].line
	if at := wrong.At; at >= 0 && at < len(lines[wrong.Section]) {
		line = lines[wrong.Section][at]
	}
	return p, f.wrong(line, "%v", wrong)
}
