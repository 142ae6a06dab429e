// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
)

// Batch is what a patcher did about some places at a time.
type Batch struct {
	By    string // the function that did it all; "" where some steps that belong together follow each other
	Steps []int  // of the recording: stores, rounds, what publishes, where the machine stops and goes on, and the end
	Sites []Site

	rounds int // among Steps
}

// Site is a place that a batch changes.
type Site struct {
	Addr     uint64
	Old, New []byte // none where the literal alone changes
	Literal  *Site  // that was stored before it; nil for none
	first    int    // rounds of the batch before its first store
}

// maxSite is the longest place that is changed while CPUs may execute it, in bytes. A longer store is a function that
// is copied to its place, and is not called yet.
const maxSite = 16

// fresh are functions that store code which is not executed yet: programs, and the slots in which kprobes execute what they
// have replaced (arch/x86/kernel/alternative.c and kprobes/core.c, Linux 6.1).
var fresh = []string{"text_poke_copy", "text_poke_set", "arch_copy_kprobe", "arch_prepare_optimized_kprobe"}

// Fresh tells whether a step stores code that is not executed yet.
func (s *Step) Fresh() bool {
	return len(s.New) > maxSite || slices.ContainsFunc(fresh, func(f string) bool { return strings.HasPrefix(s.Name, f) })
}

// literalLen is how long a literal is; no instruction is so long where there are literals.
const literalLen = 8

// literals tells whether eight bytes in a batch are a literal. In a stopped machine they are a site of two instructions
// (riscv64, Linux 6.10 to 6.15).
func (c *cutter) literals(b *Batch) bool {
	return c.words && (len(b.Steps) == 0 || c.r.Steps[b.Steps[0]].Kind != Stop)
}

// cutter makes batches of steps.
type cutter struct {
	r      *Recording
	words  bool             // sites are words, whose literals have eight bytes
	open   map[int][]*Batch // by CPU: the innermost is last
	halted *Batch
	stand  int // CPUs that stand still
	done   []*Batch
}

// Words tells whether sites are words of the instruction set's own length, which may have literals.
func (r *Recording) Words() bool {
	a, err := cpus.ParseArch(r.Arch)
	return err == nil && a.Traits().FetchLen == a.Traits().BreakpointLen
}

// Batches are the batches of a recording, in the order in which they end.
func (r *Recording) Batches() []*Batch {
	c := cutter{r: r, words: r.Words(), open: map[int][]*Batch{}}
	for i := range r.Steps {
		c.step(i, &r.Steps[i])
	}
	for cpu := range r.CPUs {
		for len(c.open[cpu]) > 0 {
			c.end(cpu)
		}
	}
	slices.SortStableFunc(c.done, func(a, b *Batch) int { return a.Steps[0] - b.Steps[0] })
	return c.done
}

func (c *cutter) step(i int, s *Step) {
	switch s.Kind {
	case Begin, Stop:
		if n := len(c.open[s.CPU]); n > 0 && c.open[s.CPU][n-1].By == "" { // steps that merely follow each other
			c.end(s.CPU)
		}
		b := &Batch{By: s.Name}
		if s.Kind == Stop {
			c.halted, b.Steps = b, []int{i}
		}
		c.open[s.CPU] = append(c.open[s.CPU], b)
	case Move:
		from := s.From()
		c.open[s.CPU], c.open[from] = append(c.open[s.CPU], c.open[from]...), nil
	case Stand:
		c.stand++
	case Go:
		if c.stand--; c.stand == 0 { // the stop is over, whenever its task goes on
			c.halted = nil
		}
	case End, Resume:
		if n := len(c.open[s.CPU]); n > 0 {
			b := c.open[s.CPU][n-1]
			if b.Steps = append(b.Steps, i); b == c.halted {
				c.halted = nil
			}
			c.end(s.CPU)
		}
	case Store:
		if !s.Fresh() {
			b := c.of(s)
			b.Steps = append(b.Steps, i)
			b.store(s, c.words, c.literals(b))
		}
	case Round, Publish, Unpublish:
		if n := len(c.open[s.CPU]); n > 0 {
			b := c.open[s.CPU][n-1]
			if b.Steps = append(b.Steps, i); s.Kind == Round {
				b.rounds++
			}
		}
	}
}

// of is the batch that a store belongs to.
func (c *cutter) of(s *Step) *Batch {
	if c.halted != nil {
		return c.halted
	}
	n := len(c.open[s.CPU])
	if n > 0 {
		b := c.open[s.CPU][n-1]
		if b.By != "" || c.r.Steps[b.Steps[len(b.Steps)-1]].Kind != Round {
			return b
		}
		half := len(b.Sites[len(b.Sites)-1].New) == literalLen // a literal, whose word follows
		if c.words && half || !c.words && b.near(s) {
			return b
		}
		c.end(s.CPU)
	}
	c.open[s.CPU] = append(c.open[s.CPU], &Batch{})
	return c.open[s.CPU][len(c.open[s.CPU])-1]
}

// end ends the innermost batch of a CPU. One that stores nothing is none.
func (c *cutter) end(cpu int) {
	n := len(c.open[cpu]) - 1
	b := c.open[cpu][n]
	for i, s := range b.Sites {
		if c.literals(b) && len(s.New) == literalLen { // that alone has changed
			b.Sites[i] = Site{Addr: s.Addr, Literal: &s}
		}
	}
	if c.open[cpu] = c.open[cpu][:n]; len(b.Sites) > 0 {
		c.done = append(c.done, b)
	}
}

// near tells whether a store is about a site of the batch.
func (b *Batch) near(s *Step) bool {
	return slices.ContainsFunc(b.Sites, func(t Site) bool { return s.At+maxSite > t.Addr && s.At < t.Addr+maxSite })
}

// store takes a store to one of the batch's sites, or to another one.
func (b *Batch) store(s *Step, words, literals bool) {
	last := len(b.Sites) - 1
	literal := literals && len(s.New) == literalLen
	for i := last; i >= 0; i-- {
		t := &b.Sites[i]
		end := t.Addr + uint64(len(t.New))
		// A breakpoint right behind another one is a site of its own.
		behind := s.At == end && s.At < t.Addr+maxSite && (b.rounds > t.first || len(s.New) > 1)
		switch {
		case !words && (s.At >= t.Addr && s.At < end || behind):
			t.put(s)
			return
		case literal && t.Literal == nil && s.At < t.Addr && t.Addr <= s.At+2*literalLen:
			t.Literal = &Site{Addr: s.At, Old: s.Old, New: s.New}
			return
		}
	}
	site := Site{Addr: s.At, Old: bytes.Clone(s.Old), New: bytes.Clone(s.New), first: b.rounds}
	if last >= 0 && literals && len(b.Sites[last].New) == literalLen && b.Sites[last].Addr+2*literalLen >= s.At &&
		b.Sites[last].Addr < s.At && !literal {
		l := b.Sites[last]
		site.Literal = &l
		b.Sites[last] = site
		return
	}
	b.Sites = append(b.Sites, site)
}

// put stores to a part of a site, or behind it.
func (t *Site) put(s *Step) {
	at := int(s.At - t.Addr)
	for i, b := range s.New {
		if at+i < len(t.New) {
			t.New[at+i] = b
			continue
		}
		t.Old, t.New = append(t.Old, s.Old[i]), append(t.New, b)
	}
}
