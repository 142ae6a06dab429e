// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

// Misfit is a step that does not fit.
type Misfit struct {
	Step int    // of the recording, from 1; one more than there are: its end
	What string // the step, and why it does not fit
}

func (m *Misfit) Error() string { return fmt.Sprintf("step %d: %s", m.Step, m.What) }

// Result is what a recording shows.
type Result struct {
	Protocol                string
	Batches, Sites, Stores  int
	Rounds, Answers, Traps  int
	Fresh                   int // stores of functions that are not called yet
	ExtraRounds, ExtraHalts int // that the plan does not ask for
	SkippedRounds           int // of the plan, before which nothing was stored
	OthersBreakpoints       int // batches of breakpoints that another handler knows
	Misfit                  *Misfit
}

// Arch is the instruction set of a recording, with the layout of sites that it shows.
func Arch(r *record.Recording) (isa.Arch, error) {
	a, err := cpus.ParseArch(r.Arch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	literals := slices.ContainsFunc(r.Batches(), func(b *record.Batch) bool {
		return slices.ContainsFunc(b.Sites, func(s record.Site) bool { return s.Literal != nil })
	})
	for _, l := range cpus.Layouts(a) {
		if l.Traits().CallOps == literals {
			return l, nil
		}
	}
	return a, nil
}

// Shipped is the shipped protocol of a name; "" for the one that a recording's image names, native where it names none.
func Shipped(r *record.Recording, name string) (*poke.Protocol, error) {
	a, err := Arch(r)
	if err != nil {
		return nil, err
	}
	name = cmp.Or(name, r.Protocol, poke.Native)
	p := poke.Named(name, a.Traits())
	if p == nil {
		return nil, fmt.Errorf("%s: protocol %q: there is none of that name", r.File, name)
	}
	return p, nil
}

// Check holds a recording against a protocol; nil for the one that the image names.
func Check(r *record.Recording, p *poke.Protocol) (*Result, error) {
	a, err := Arch(r)
	if err != nil {
		return nil, err
	}
	if p == nil {
		if p, err = Shipped(r, ""); err != nil {
			return nil, err
		}
	}
	c := &checker{r: r, arch: a, plan: p, Result: Result{Protocol: p.Name}}
	c.published = r.Watches(record.Publish)
	batches := r.Batches()
	if len(batches) == 0 {
		c.misfit(len(r.Steps), "nothing was changed that CPUs may execute: there is nothing to hold against the plan")
	}
	if err := c.machine(batches); err != nil {
		return nil, err
	}
	for _, b := range batches {
		if err := c.batch(b); err != nil {
			return nil, err
		}
	}
	return &c.Result, nil
}

// checker follows a recording.
type checker struct {
	Result
	r         *record.Recording
	arch      isa.Arch
	plan      *poke.Protocol
	published bool // what publishes batches is recorded
}

// misfit notes a step that does not fit, if it is the first one.
func (c *checker) misfit(i int, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if i < len(c.r.Steps) {
		what = c.r.Steps[i].String() + ": " + what
	}
	if c.Misfit == nil || i+1 < c.Misfit.Step {
		c.Misfit = &Misfit{i + 1, what}
	}
}

// item is a step of the plan about one patch, or about none.
type item struct {
	poke.Step
	site  *record.Site
	at    uint64
	bytes []byte // that it stores
	moot  bool   // a round behind literals where the sites have none
}

func (t *item) String() string {
	if len(t.bytes) == 0 {
		return t.Name()
	}
	return fmt.Sprintf("%s % x at %#x", t.Name(), t.bytes, t.at)
}

// batch holds one batch against the plan of an update that is this batch.
func (c *checker) batch(b *record.Batch) error {
	c.Batches++
	c.Sites += len(b.Sites)
	items, err := c.items(b, c.plan)
	if b.By == "" && slices.ContainsFunc(items, func(t item) bool { return t.Op == poke.StopMachine }) {
		// Keys change one branch each beside it, while CPUs run (arch_jump_label_transform, riscv64, Linux 6.12).
		items, err = c.items(b, poke.Named(poke.Native, c.arch.Traits()))
	}
	if err != nil {
		return err
	}
	f := follower{checker: c, b: b, items: items, text: map[uint64]byte{}}
	trapping := func(s record.Site) bool { return c.traps(s.Old) || c.traps(s.New) }
	if f.others = b.By == "" && slices.ContainsFunc(b.Sites, trapping); f.others {
		c.OthersBreakpoints++
	}
	for _, s := range b.Sites {
		for _, part := range []*record.Site{&s, s.Literal} {
			for i := 0; part != nil && i < len(part.Old); i++ {
				if _, changed := f.text[part.Addr+uint64(i)]; !changed {
					f.text[part.Addr+uint64(i)] = part.Old[i]
				}
			}
		}
	}
	f.follow()
	if c.ended(b) {
		c.whole(b)
	}
	return nil
}

// whole finds a batch that leaves a part of an instruction behind.
func (c *checker) whole(b *record.Batch) {
	for i := range b.Sites {
		s := &b.Sites[i]
		insn, n := c.decode(s), len(s.New)
		if b.By != "" && n > 0 && (int(insn.Len) > n || n == 1 && insn.Kind == isa.Unknown) {
			c.misfit(b.Steps[len(b.Steps)-1], "at %#x % x is not a whole instruction", s.Addr, s.New)
		}
	}
}

// decode reads a site's new instruction.
func (c *checker) decode(s *record.Site) isa.Insn {
	return c.arch.Decode(records.Addr(s.Addr), isa.TextOf(s.New[:min(8, len(s.New))]...), 0)
}

// traps tells whether a text begins with a breakpoint.
func (c *checker) traps(text []byte) bool {
	return bytes.HasPrefix(text, c.arch.Breakpoint().Bytes(c.arch.Traits().BreakpointLen))
}

// items are the steps of a plan for the batch.
func (c *checker) items(b *record.Batch, plan *poke.Protocol) (items []item, err error) {
	s := poke.Shape{Traits: c.arch.Traits(), Patches: len(b.Sites), Entry: func(i int) (int, bool) {
		n := len(b.Sites[i].New)
		if n == 0 {
			n = c.arch.Traits().FetchLen
		}
		return n, c.traps(b.Sites[i].New)
	}}
	whole := poke.Range{To: len(b.Sites)}
	moot := false
	err = plan.Compile(s.Of(whole), slices.Values([]poke.Range{whole}), func(st poke.Step) {
		if st.Op != poke.Write {
			items = append(items, item{Step: st, moot: moot && st.Op == poke.Sync})
			return
		}
		n := len(items)
		for i := st.From; i < st.To; i++ {
			if t, ok := c.write(st, &b.Sites[i]); ok {
				items = append(items, t)
			}
		}
		moot = st.WritesLiteral() && n == len(items)
	})
	return items, err
}

// write is a step that stores a part of one site; false where the site has no such part.
func (c *checker) write(st poke.Step, s *record.Site) (t item, ok bool) {
	n := min(c.arch.Traits().BreakpointLen, len(s.New))
	t = item{Step: st, site: s, at: s.Addr}
	switch st.Part {
	case poke.Breakpoint:
		t.bytes = c.arch.Breakpoint().Bytes(n)
	case poke.Tail:
		t.at, t.bytes = s.Addr+uint64(n), s.New[n:]
	case poke.Head:
		if t.bytes = s.New[:n]; c.traps(s.New) {
			return t, false
		}
	case poke.Word:
		t.bytes = s.New
	case poke.Bytes:
		from, to := min(int(st.Span.From), len(s.New)), min(int(st.Span.To), len(s.New))
		t.at, t.bytes = s.Addr+uint64(from), s.New[from:to]
	case poke.Literal, poke.LiteralLow, poke.LiteralHigh:
		if s.Literal == nil {
			return t, false
		}
		from, to := 0, len(s.Literal.New)
		if st.Part == poke.LiteralLow {
			to /= 2
		} else if st.Part == poke.LiteralHigh {
			from = to / 2
		}
		t.at, t.bytes = s.Literal.Addr+uint64(from), s.Literal.New[from:to]
	}
	return t, len(t.bytes) > 0
}

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Row is a recording and its result.
type Row struct {
	*record.Recording
	*Result
}

// Answer is what rows come to, in a line, and whether all conform.
func Answer(rows []Row) (line string, yes bool) {
	steps, misfits := 0, 0
	for _, r := range rows {
		steps += len(r.Steps)
		if r.Misfit != nil {
			misfits++
		}
	}
	if misfits > 0 {
		return fmt.Sprintf("NO: recordings that do not conform: %d of %d", misfits, len(rows)), false
	}
	return fmt.Sprintf("YES: each of %d steps is one that the protocol allows there", steps), true
}

// Columns are those of rows.
var Columns = results.Declare(declared, "rows", map[string]func(Row) any{
	"actions": func(r Row) any { return strings.Join(r.Actions, " ") },
	"steps":   func(r Row) any { return len(r.Steps) },
	"verdict": func(r Row) any {
		if r.Misfit == nil {
			return "conforms"
		}
		return "differs"
	},
})
