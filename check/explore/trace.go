// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
)

// Trace is one way from the beginning to a violation, for people, for files, and
// for other engines to follow.
type Trace struct {
	Model     []string       `json:"model"`    // flags that name the model
	Shortest  bool           `json:"shortest"` // no shorter way leads to a violation
	Live      bool           `json:"live"`     // recorded on the live machine, not found by a search
	Steps     []Step         `json:"steps"`
	Violation cpus.Violation `json:"violation"`
}

// Step is one action, and the state after it.
type Step struct {
	Do    string   `json:"do"`    // see kindLetters
	Who   string   `json:"who"`   // "cpu 1", "patcher 0"
	What  string   `json:"what"`  // in words
	Event string   `json:"event"` // what it amounted to for the CPU's call, if anything
	After string   `json:"after"` // where that left the CPU, or the patcher
	CPUs  []string `json:"cpus"`  // what each CPU is about
	Sites []Site   `json:"sites"`
}

// Site is what there is of a site.
type Site struct {
	Bytes   string     `json:"bytes"`             // in memory
	Literal string     `json:"literal,omitempty"` // the ops that it names
	Fetch   [][]string `json:"fetch"`             // by CPU: every text that it may fetch, the newest first
}

// kindLetters begin the actions of a schedule, as Step.Do has them: who steps, and the chooser's answers. p0: patcher 0
// steps; c1:1,0: CPU 1 steps and its questions are answered by 1 and 0; b0: patcher 0 begins; d0.1: the second of its
// buffered stores drains; k1: the task of CPU 1 is preempted; u1.0: CPU 1 goes on with the task parked by CPU 0; s1: CPU
// 1 does not look for interrupts; a1: it does, after all; n1: an NMI comes; t1: its timer ticks.
const kindLetters = "cpbdkusant"

// spell writes an action as a schedule has it.
func (a action) spell(answers []uint8) string {
	var b strings.Builder
	b.WriteByte(kindLetters[a.kind])
	b.WriteString(strconv.Itoa(int(a.who)))
	if a.kind == drain || a.kind == unpark {
		fmt.Fprintf(&b, ".%d", a.arg)
	}
	for i, n := range answers {
		b.WriteByte(":,"[min(i, 1)])
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

// parseAction reads what spell has written.
func parseAction(s string) (a action, answers []uint8, err error) {
	bad := fmt.Errorf("%q: not an action such as c1:0,2", s)
	name, list, choices := strings.Cut(s, ":")
	if name == "" || strings.IndexByte(kindLetters, name[0]) < 0 {
		return a, nil, bad
	}
	a.kind = kind(strings.IndexByte(kindLetters, name[0]))
	who, arg, hasArg := strings.Cut(name[1:], ".")
	if hasArg != (a.kind == drain || a.kind == unpark) {
		return a, nil, bad
	}
	number := func(s string) uint8 {
		n, e := strconv.ParseUint(s, 10, 8)
		if e != nil || s != strconv.FormatUint(n, 10) {
			err = bad
		}
		return uint8(n)
	}
	if a.who = number(who); hasArg {
		a.arg = number(arg)
	}
	if choices {
		for n := range strings.SplitSeq(list, ",") {
			answers = append(answers, number(n))
		}
	}
	return a, answers, err
}

// traceStates bounds the second search, which keeps the way to every state.
const traceStates = 4_000_000

// findTrace looks for the violation again, on one core, and keeps how it got
// there: first step by step, which gives the shortest way, and where that is too
// much in the way that the first search went. Where the limits leave no room for
// that either, or somebody wants an end, there is no trace.
func (s *search) findTrace(ctx context.Context, r *Result) error {
	same := s.o.Reduce
	same.Sites = false // a way tells sites apart
	for i, reduce := range []Reductions{{Symmetry: true}, same} {
		t := &tracer{m: s.m, e: newExpander(s.m, reduce), limit: traceStates}
		if i > 0 {
			t.limit = s.roomForTrace()
		}
		found, err := t.search(ctx)
		if err != nil {
			return nil // interrupted: the trace stays as it is
		}
		if !found {
			continue
		}
		if r.Trace, err = t.trace(); err != nil {
			return err
		}
		r.Trace.Shortest = !reduce.Order
		r.Violation, r.Depth = &r.Trace.Violation, len(r.Trace.Steps)
		return nil
	}
	if s.o.LimitMemory > 0 {
		return nil
	}
	return errNoTrace
}

// roomForTrace is how many states the limit of memory leaves room for, each with
// its words, its fingerprint and its parent; 0 for any number.
func (s *search) roomForTrace() int {
	if s.o.LimitMemory == 0 {
		return 0
	}
	return int(s.o.LimitMemory/uint64(8*s.m.layout.words+20)) + 1
}

// tracer is a search on one core that keeps every state's parent.
type tracer struct {
	m     *Model
	e     *expander
	limit int // of states: no level is begun behind it; 0 for none

	parent  []uint32 // by state, in the order of discovery
	ordinal []uint16 // which of the parent's successors
	depth   int      // of the level that is gone through
	last    link     // the violation
}

type link struct {
	parent  uint32
	ordinal uint16
}

// levels goes through states level by level, as long as begin, at a state, and step, at each way on from it, let it. The
// expander is at the state that a step leads to, or at what it breaks; step tells whether that state is a new one.
func (t *tracer) levels(ctx context.Context, begin func(words []uint64) bool,
	step func(l link, broken *cpus.Violation) (fresh, on bool)) error {
	n, level := t.m.layout.words, t.e.initial()
	t.parent, t.ordinal = []uint32{0}, []uint16{0}
	for state, on := uint32(0), true; ; t.depth++ {
		var next []uint64
		for ; len(level) > 0; level = level[n:] {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !begin(level[:n]) {
				return nil
			}
			l := link{parent: state}
			t.e.expand(level[:n], func(broken *cpus.Violation) bool {
				var fresh bool
				if fresh, on = step(l, broken); fresh {
					next = append(next, t.e.next...)
					t.parent, t.ordinal = append(t.parent, l.parent), append(t.ordinal, l.ordinal)
				}
				l.ordinal++
				return on
			})
			if !on {
				return nil
			}
			state++
		}
		if level = next; len(level) == 0 || t.limit > 0 && len(t.parent) > t.limit {
			return nil
		}
	}
}

// search goes on until something breaks.
func (t *tracer) search(ctx context.Context) (found bool, err error) {
	seen := &prints{}
	seen.insert(fingerprint(t.e.initial()), nil)
	err = t.levels(ctx, func([]uint64) bool { return true }, func(l link, broken *cpus.Violation) (fresh, on bool) {
		if broken != nil {
			t.last, found = l, true
			return false, false
		}
		return seen.insert(fingerprint(t.e.next), nil), true
	})
	return found, err
}

// trace is the way to the violation.
func (t *tracer) trace() (*Trace, error) {
	return t.broken(append(t.wayTo(t.last.parent), t.last.ordinal))
}

// broken is a way that ends in a violation.
func (t *tracer) broken(ordinals []uint16) (*Trace, error) {
	tr, real, err := t.way(ordinals)
	switch {
	case err != nil:
		return nil, err
	case real.found == nil:
		return nil, errNoTrace
	}
	tr.Violation = *real.found
	return tr, nil
}

// wayTo follows a state's parents back: which successor leads on, from the beginning.
func (t *tracer) wayTo(state uint32) (ordinals []uint16) {
	for i := state; i != 0; i = t.parent[i] {
		ordinals = append(ordinals, t.ordinal[i])
	}
	slices.Reverse(ordinals)
	return ordinals
}

// way makes the steps again from the beginning, on a machine whose CPUs keep their
// numbers, which is where it leads to.
func (t *tracer) way(ordinals []uint16) (*Trace, *world, error) {
	tr := &Trace{}
	real := newWorld(t.m)
	words := t.e.initial()
	var number [MaxCPUs]uint8 // by CPU of words: its real number
	t.numbers(real, words, &number)
	for _, left := range ordinals {
		var a action
		var answers []uint8
		t.e.expand(words, func(*cpus.Violation) bool {
			if left > 0 {
				left--
				return true
			}
			a, answers = t.e.action, slices.Clone(t.e.answers())
			words = slices.Clone(t.e.next)
			return false
		})
		if a.kind == stepCPU || a.kind == park || a.kind == unpark {
			a.who = number[a.who]
		}
		if a.kind == unpark {
			a.arg = number[a.arg]
		}
		tr.Steps = append(tr.Steps, t.follow(real, a, answers)...)
		if !t.numbers(real, words, &number) && real.found == nil {
			return nil, nil, errNoTrace
		}
	}
	return tr, real, nil
}

// numbers works out which CPU of the canonical state is which real one, and tells
// whether the two states are one and the same, as they must be.
func (t *tracer) numbers(real *world, words []uint64, number *[MaxCPUs]uint8) bool {
	own := make([]uint64, t.m.layout.words)
	w := *real // packing changes nothing, but canonical does
	w.pack(own)
	t.e.canonical(own)
	*number = t.e.order
	return slices.Equal(own, words)
}

// follow makes one action of the search on the real world: with reductions, the
// steps that went with it too.
func (t *tracer) follow(w *world, a action, answers []uint8) (steps []Step) {
	sc, used := cpus.Repeat(answers), 0
	before := *w
	w.observe = func(a action) {
		steps = append(steps, w.describe(&before, a, sc.Answers()[used:]))
		used = len(sc.Answers())
		before = *w
	}
	defer func() { w.observe = nil }()
	w.perform(a, sc)
	if t.e.reduce.Order {
		w.runOn(a, sc)
	}
	return steps
}

// traceFormat is the version of the format of trace files.
const traceFormat = 1

// traceFile is a saved trace.
type traceFile struct {
	Format int `json:"format"`
	*Trace
}

// Save writes the trace as JSON.
func (t *Trace) Save(path string) error {
	b, err := json.MarshalIndent(traceFile{traceFormat, t}, "", " ")
	if err != nil {
		return fmt.Errorf("trace %s: %w", path, err)
	}
	return files.Write(path, 0o644, files.From(bytes.NewReader(append(b, '\n'))))
}

// maxTraceFile bounds what is read of a trace file, in bytes.
const maxTraceFile = 256 << 20

// LoadTrace reads a trace. Errors name the file and the mistake.
func LoadTrace(path string) (*Trace, error) {
	b, err := inputs.Read(path, maxTraceFile)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	t, err := parseTrace(b)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	return t, nil
}

func parseTrace(b []byte) (*Trace, error) {
	t := &Trace{}
	file := traceFile{Trace: t}
	if err := json.Unmarshal(b, &file); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("byte %d: %w", syntax.Offset, err)
		}
		return nil, err
	}
	if file.Format != traceFormat {
		return nil, fmt.Errorf("format %d: want %d", file.Format, traceFormat)
	}
	if len(t.Model) == 0 {
		return nil, errors.New(`no "model": it says what the steps are of`)
	}
	for i, s := range t.Steps {
		if _, _, err := parseAction(s.Do); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return t, nil
}
