// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// MaxPlanFile is the most bytes that a plan file may have, maxPlanLine the most
// of a line, and maxPlanSteps the most steps: there are protocols of fifteen.
const (
	MaxPlanFile  = 64 << 10
	maxPlanLine  = 500
	maxPlanSteps = 100
)

// PlanError says in one line what is wrong with a protocol from a file.
type PlanError struct {
	File   string
	Line   int    // from 1
	Arch   string // the instruction set on which it is wrong, "" for any
	Reason string // with the offending value
}

func (e *PlanError) Error() string {
	on := ""
	if e.Arch != "" {
		on = "on " + e.Arch + ": "
	}
	return fmt.Sprintf("%s:%d: %s%s", e.File, e.Line, on, e.Reason)
}

// planFile is a protocol as its file says it.
type planFile struct {
	src      []byte
	file     string
	headers  map[string]header
	sections [numSections]section[planLine]
	paths    [cpus.NumSections]section[pathLine]
	last     int // line
	steps    int
}

// header is the value of a header line.
type header struct {
	value string
	line  int
}

// section is a run of lines with steps, of a plan or of the CPUs' path.
type section[Line any] struct {
	line  int // of its head, 0 where there is none
	lines []Line
}

// planLine is a step, or a loop over a batch's patches.
type planLine struct {
	line int
	step Step
	when []condition // all must hold
	each []planLine  // of a loop: its lines
	loop bool
}

// The sections, in the order in which they are carried out.
const (
	onceBefore = iota
	everyBatch
	onceAfter
	numSections
)

var sectionNames = []string{onceBefore: "once before", everyBatch: "every batch", onceAfter: "once after"}

// ParseProtocol reads a protocol from a plan file. name is what errors call the
// file. The protocol is as good as a built-in one: it compiles, is counted,
// executed, mutated and taken back like these. docs/plan-files.md describes the
// format.
//
// Errors are *PlanError. The parser refuses text that it cannot read, and plans that
// run on no instruction set: they wait for ever, or give back a lock or a batch that
// they have not taken. It takes plans that run and break something. Compile refuses,
// with a *PlanError too, a plan that cannot run on its instruction set.
func ParseProtocol(name string, src []byte) (*Protocol, error) {
	f := &planFile{file: name, src: src, headers: map[string]header{}}
	if err := f.read(src); err != nil {
		return nil, err
	}
	p, err := f.protocol()
	if err != nil {
		return nil, err
	}
	if err := f.fitsSomewhere(p.Layout); err != nil {
		return nil, err
	}
	return p, nil
}

// Text is the file that the protocol was read from, nil where there was none.
func (p *Protocol) Text() []byte {
	if p.says == nil {
		return nil
	}
	return p.says.src
}

// protocol is what the lines amount to.
func (f *planFile) protocol() (*Protocol, error) {
	p := &Protocol{File: f.file, Summary: f.headers["summary"].value, Source: f.headers["source"].value, says: f}
	name, ok := f.headers["name"]
	if !ok {
		return nil, f.wrong(1, "no name: the file needs a line such as %q", "name: my-protocol")
	}
	if p.Name = name.value; len(p.Name) > maxName || strings.Trim(p.Name, nameLetters) != "" {
		return nil, f.wrong(name.line, "name %q: want at most %d letters, digits and - . _", p.Name, maxName)
	}
	batching, err := f.oneOf("batching", batchingNames)
	if err != nil {
		return nil, err
	}
	layout, err := f.oneOf("layout", layoutNames)
	if err != nil {
		return nil, err
	}
	locks, err := f.oneOf("locks", locksNames)
	if err != nil {
		return nil, err
	}
	p.Batching, p.Layout, p.Locks = Batching(batching), isa.Layout(layout), Locks(locks)
	p.Traps, p.OneStore = f.writes()
	return p, nil
}

// The values of headers.
const (
	maxName     = 40
	nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
)

var (
	headerNames   = []string{"name", "summary", "source", "batching", "layout", "locks"}
	batchingNames = []string{Buffered: "buffered", Whole: "whole", Single: "single"}
	layoutNames   = []string{isa.Word: "word", isa.Pair: "pair"}
	locksNames    = []string{LocksOfCaller: "caller", LocksOfPlan: "plan"}
)

// writes derives what is true of the protocol whatever the instruction set.
// Stores to whole sites are relied upon wherever CPUs do not stand still.
func (f *planFile) writes() (traps, oneStore bool) {
	stopped := false
	var look func(lines []planLine)
	look = func(lines []planLine) {
		for _, l := range lines {
			switch st := l.step; {
			case l.loop:
				look(l.each)
			case st.Op == StopMachine:
				stopped = true
			case st.Op == Resume:
				stopped = false
			case st.Op == Write && st.Part == Breakpoint:
				traps = true
			case st.Op == Write && st.Part == Word:
				oneStore = oneStore || !stopped
			}
		}
	}
	for _, s := range f.sections {
		look(s.lines)
	}
	return traps, oneStore
}

// fitsSomewhere fails where there is no instruction set on which the plan can
// run; the error is that of the first one.
func (f *planFile) fitsSomewhere(layout isa.Layout) error {
	var first *PlanError
	same := true
	for _, name := range cpus.ArchNames() {
		s, err := shapeOn(name, layout)
		if err != nil {
			return err
		}
		wrong, _ := f.fits(s)
		if wrong == nil {
			return nil
		}
		if first == nil {
			first = wrong
			first.Arch = name
		}
		same = same && wrong.Line == first.Line && wrong.Reason == first.Reason
	}
	if same {
		first.Arch = ""
	}
	return first
}

// shapeOn is the shape of sites on an instruction set.
func shapeOn(arch string, layout isa.Layout) (Shape, error) {
	a, err := cpus.ParseArch(arch)
	if err != nil {
		return Shape{}, err
	}
	site, err := a.Site(alignedRecord, layout)
	return Shape{Traits: a.Traits(), Len: int(site.Len), Patches: 2}, err
}

// alignedRecord is the address of a record that no instruction set refuses: the
// word behind a literal and the instruction that loads it.
const alignedRecord = 0x1004

// oneOf reads a header whose value is one of names; the first where there is no
// such header.
func (f *planFile) oneOf(name string, names []string) (int, error) {
	h, ok := f.headers[name]
	i := slices.Index(names, h.value)
	if ok && i < 0 {
		return 0, f.wrong(h.line, "%s %q: %v", name, h.value, notOneOf(h.value, names))
	}
	return max(i, 0), nil
}

// wrong is an error about a line.
func (f *planFile) wrong(line int, format string, args ...any) *PlanError {
	return &PlanError{File: f.file, Line: cmp.Or(line, 1), Reason: fmt.Sprintf(format, args...)}
}

// Sections of a file about the CPUs' side: their path, a step a line.

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
