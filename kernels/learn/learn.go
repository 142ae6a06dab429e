// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/conform"
	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/poke"
)

// Learned is a plan that was learned.
type Learned struct {
	Text     []byte // a plan file
	Protocol *poke.Protocol
	Notes    []string // how often each part was seen, and which parts were not seen, or are assumed
	Misfits  []error  // recordings among those it was learned from that do not conform to it
}

// learner folds batches.
type learner struct {
	arch  isa.Arch
	trap  []byte
	seen  []*sight
	sizes []int // of sites
	loose int   // batches that no function encloses
	notes []string
}

// sight is a shape, and how often it was seen.
type sight struct {
	shape
	batches, sites int
	largest        int // sites of one batch
}

// Plan folds recordings of one kernel.
func Plan(recordings []*record.Recording) (*Learned, error) {
	first := recordings[0]
	a, err := conform.Arch(first)
	if err != nil {
		return nil, err
	}
	shipped, err := conform.Shipped(first, "")
	if err != nil {
		return nil, err
	}
	l := &learner{arch: a, trap: a.Breakpoint().Bytes(a.Traits().BreakpointLen)}
	for _, r := range recordings {
		if r.Arch != first.Arch || r.Image != first.Image {
			return nil, fmt.Errorf("%s: a recording of another kernel than %s", r.Name(), first.Name())
		}
		for _, b := range r.Batches() {
			if err := l.take(r, b); err != nil {
				return nil, fmt.Errorf("%s: step %d: %w", r.Name(), b.Steps[0]+1, err)
			}
		}
	}
	main, err := l.main()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", first.Name(), err)
	}
	text := l.write(first, main)
	p, err := poke.ParseProtocol("learned.plan", text)
	if err != nil {
		return nil, fmt.Errorf("%s: the plan that was learned: %w", first.Name(), err)
	}
	l.compare(p, shipped)
	var misfits []error
	for _, r := range recordings {
		result, err := conform.Check(r, p)
		if err != nil {
			return nil, err
		}
		if result.Misfit != nil {
			misfits = append(misfits, fmt.Errorf("%s does not conform to the plan: %w", r.Name(), result.Misfit))
			l.note("%v", misfits[len(misfits)-1])
		}
	}
	text = l.header(first, text)
	return &Learned{text, p, l.notes, misfits}, nil
}

func (l *learner) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// take folds one batch. Those that no function encloses are other protocols': kprobes, static keys of single branches.
func (l *learner) take(r *record.Recording, b *record.Batch) error {
	if b.By == "" {
		l.loose++
		return nil
	}
	for _, t := range b.Sites {
		if !slices.Contains(l.sizes, len(t.New)) {
			l.sizes = append(l.sizes, len(t.New))
		}
	}
	list, ok := tokens(r, b, l.trap)
	if !ok {
		return errors.New("its stores overlap, and are about no sites")
	}
	s, ok := phases(list)
	if !ok {
		if s, ok = loop(list, len(b.Sites)); !ok {
			return errors.New("its stores do not go in phases, or from site to site")
		}
	}
	i := slices.IndexFunc(l.seen, func(o *sight) bool { return o.equal(s) })
	if i < 0 {
		i = len(l.seen)
		l.seen = append(l.seen, &sight{shape: s})
	}
	of := l.seen[i]
	of.batches++
	of.sites += len(b.Sites)
	of.largest = max(of.largest, len(b.Sites))
	return nil
}

// main is the shape of the batches with several sites that has the most in it.
func (l *learner) main() (*sight, error) {
	var best *sight
	for _, s := range l.seen {
		if s.largest > 1 && (best == nil || len(s.before)+len(s.each) > len(best.before)+len(best.each)) {
			best = s
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%d shapes, none of more than one site in a batch: whether it goes through its sites in "+
			"phases or from one to the next cannot be told; record an action of several sites", len(l.seen))
	}
	return best, nil
}

// missing tells whether some batch or some turn did without a step.
func (l *learner) missing(main *sight, without ...string) bool {
	return slices.ContainsFunc(l.seen, func(s *sight) bool {
		return !s.loop && !main.loop && len(s.before)+len(without) == len(main.before) && partOf(s.before, main.before) &&
			!slices.ContainsFunc(without[:1], func(w string) bool { return slices.Contains(s.before, w) })
	})
}

// write writes the plan's steps.
func (l *learner) write(r *record.Recording, main *sight) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "name:     learned\nsummary:  as %s was seen to change its text\nsource:   %s %s, SHA-256 %s\n",
		r.Release, r.Arch, r.Release, r.Image)
	before, batch := main.before, []string(nil)
	if main.loop {
		fmt.Fprintf(&b, "batching: whole\n")
	} else {
		fmt.Fprintf(&b, "batching: buffered\n")
		before, batch = nil, main.before
	}
	if r.Words() && slices.Contains(l.sizes, 2*l.arch.Traits().FetchLen) {
		fmt.Fprintf(&b, "layout:   pair\n")
	}
	w := writer{l: l, main: main, out: &b, fenced: len(r.Fences) > 0}
	w.section("once before", before)
	fmt.Fprint(&b, "\nevery batch:\n")
	if main.loop {
		w.indent = "    "
		fmt.Fprint(&b, "    for each patch\n")
		w.lines(main.each)
		fmt.Fprint(&b, "    end\n")
		w.indent = ""
	} else {
		w.lines(batch)
	}
	w.section("once after", main.after)
	return []byte(b.String())
}

// writer writes lines of a plan.
type writer struct {
	l      *learner
	main   *sight
	out    *strings.Builder
	indent string
	fenced bool
	rounds int
}

func (w *writer) section(name string, steps []string) {
	if len(steps) > 0 {
		fmt.Fprintf(w.out, "\n%s:\n", name)
		w.lines(steps)
	}
}

func (w *writer) line(does, when string) {
	if when != "" {
		does = fmt.Sprintf("%-17s if %s", does, when)
	}
	fmt.Fprintf(w.out, "%s    %s\n", w.indent, does)
}

// lines writes steps. A site without a tail has none to write: that needs no sight. Whether the round behind goes, too,
// does.
func (w *writer) lines(steps []string) {
	before := ""
	for _, does := range steps {
		when := ""
		switch does {
		case tail:
			when = "tail"
		case head:
			when = "head"
		case literal:
			when = "literal"
		case sync:
			w.rounds++
			does = fmt.Sprintf("Sync %d", w.rounds)
			switch {
			case before == literal:
				when = "literal"
			case before == tail && w.l.missing(w.main, tail, sync):
				when = "rest"
				w.l.note("the round behind the tails is left out where no site has one: seen")
			case before == tail:
				w.l.note("no batch of sites without a tail was seen: whether the round behind the tails is left out is not known")
			}
		}
		w.line(does, when)
		if strings.HasPrefix(does, "Write") && w.fenced {
			if when != "" {
				when += " and "
			}
			w.line("Fence", when+"stores-buffered")
		}
		if does == unpublish {
			w.line("WaitHandlers", "")
			w.l.note("WaitHandlers is assumed: no handler was seen inside a batch that was given up")
		}
		if before = strings.TrimRight(does, " 0123456789"); before == "Sync" {
			before = sync
		}
	}
}

// compare says whether the plan makes the steps of a shipped one.
func (l *learner) compare(p, shipped *poke.Protocol) {
	slices.Sort(l.sizes)
	for _, n := range l.sizes {
		for patches := 1; patches <= 3; patches++ {
			s := poke.Shape{Traits: l.arch.Traits(), Len: n, Patches: patches}
			got, want := steps(p, s), steps(shipped, s)
			if slices.Equal(got, want) {
				continue
			}
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			l.note("it differs from %s for %d sites of %d bytes: step %d is %q, there %q", shipped.Name, patches, n, i+1,
				at(got, i), at(want, i))
			return
		}
	}
	l.note("it makes the steps of %s, for batches of 1 to 3 sites of %v bytes", shipped.Name, l.sizes)
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

// steps is a plan for one batch, as text.
func steps(p *poke.Protocol, s poke.Shape) (out []string) {
	whole := func(yield func(poke.Range) bool) { yield(poke.Range{To: s.Patches}) }
	if err := p.Compile(s, whole, func(st poke.Step) { out = append(out, st.String()) }); err != nil {
		return []string{err.Error()}
	}
	return out
}

// header puts what was seen before the plan, as comments.
func (l *learner) header(r *record.Recording, plan []byte) []byte {
	var b strings.Builder
	for _, s := range l.seen {
		l.note("seen in %d batches of %d sites, %d at most: %s", s.batches, s.sites, s.largest, s.String())
		if s.batches == 1 {
			l.note("that was seen once only")
		}
	}
	if l.loose > 0 {
		l.note("%d batches that no function encloses are not in the plan", l.loose)
	}
	if len(r.Fences) > 0 {
		l.note("a fence follows each store: %s", strings.Join(r.Fences, "; "))
	}
	for _, n := range l.notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	return append([]byte(b.String()+"\n"), plan...)
}

func (s shape) String() string {
	text := strings.Join(s.before, ", ")
	if s.loop {
		text = strings.TrimPrefix(text+", for each site ("+strings.Join(s.each, ", ")+")", ", ")
	}
	if len(s.after) > 0 {
		text += ", " + strings.Join(s.after, ", ")
	}
	return text
}
