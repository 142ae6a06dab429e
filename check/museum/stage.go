// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// The addresses of sites, entry and ops. No two ops differ in one half only, so half of one
// and half of another is always a third value.
const (
	textAt  records.Addr = 0xffff_ffff_8100_0004 // the first site
	textGap              = 64                    // from site to site
	entryAt records.Addr = 0xffff_ffff_80ff_0000 // ftrace_caller, or the first of two trampolines
	nopOps  uint64       = 0xffff_8000_8234_5678 // ftrace_nop_ops
)

// places are the addresses that cases know by name.
var places = map[string]uint64{
	"entry": uint64(entryAt), "other": 0xffff_ffff_80ff_4240, "third": 0xffff_ffff_80ff_8480,
	"nop_ops": nopOps, "first_ops": 0xffff_ffff_c0a0_1040,
}

// stage is a case's machine being laid out, on one side of the fix.
type stage struct {
	m       *explore.Model
	code    *cpus.Code
	sites   []isa.Site
	patches []poke.Patch // of the patchers that follow
	paths   [cpus.NumSections][]cpus.PathStep
}

// laidOut is the machine of one side of the fix, not prepared yet.
func (b *Bug) laidOut(isFixed bool) (*explore.Model, error) {
	code := &cpus.Code{Entry: entryAt, Stretch: 1}
	s := &stage{code: code, m: &explore.Model{Code: code, NopOps: nopOps, Lookup: int3.Vector}}
	readers := map[string]func(text string) error{
		machineSection: s.machine, textSection: s.site, patchSection: s.patch, patcherSection: s.step,
	}
	for i, name := range cpus.SectionNames() {
		readers[name] = func(text string) error { return s.pathStep(cpus.Section(i), text) }
	}
	for _, section := range b.sections {
		switch section.Key {
		case patchSection:
			s.patches = nil
		case patcherSection:
			s.m.Programs = append(s.m.Programs, explore.Program{Patches: s.patches})
		}
		for _, it := range section.Items {
			text, there := onSide(it.Text, isFixed)
			if !there {
				continue
			}
			if err := readers[section.Key](text); err != nil {
				return nil, fmt.Errorf("%s:%d: %s: %w", b.file, it.Line, text, err)
			}
		}
	}
	if err := s.path(); err != nil {
		return nil, fmt.Errorf("%s: %w", b.file, err)
	}
	s.fetched()
	return s.m, nil
}

// fetched has words of arm64 fetched in pieces where some instruction of the case may not
// be replaced under a running CPU, nor replace another one.
func (s *stage) fetched() {
	texts := slices.Clone(s.m.Initial)
	for _, p := range s.m.Programs {
		for i := range p.Patches {
			texts = append(texts, p.Patches[i].New)
		}
	}
	unlisted := func(t isa.Text) bool { return !arm64.Listed(t) }
	if s.code.Traits.Name == arm64.Name && slices.ContainsFunc(texts, unlisted) {
		s.code.Arch = arm64.Unlisted(s.code.Arch)
	}
}

// path replaces sections of the CPUs' native path by those of the case.
func (s *stage) path() (err error) {
	if s.code.Arch == nil {
		return errors.New("no instruction set: want a line such as \"arch x86_64\" under \"machine:\"")
	}
	s.code.Path = cpus.NativePath(s.code.Traits, s.code.Len, false)
	for i, steps := range s.paths {
		if err == nil && steps != nil {
			s.code.Path, err = s.code.Path.Replace(cpus.Section(i), steps...)
		}
	}
	return err
}

func (s *stage) pathStep(in cpus.Section, text string) error {
	step, err := cpus.ParsePathStep(in, text)
	s.paths[in] = append(s.paths[in], step)
	return err
}

// site adds the site of a line such as "calls other, ops other", of the next record or
// of one that the line names.
func (s *stage) site(text string) error {
	if s.code.Arch == nil {
		return errors.New("want the machine's instruction set before it")
	}
	rec := uint64(textAt) + uint64(textGap*len(s.sites))
	clauses := strings.Split(text, ", ")
	var err error
	if at, ok := strings.CutPrefix(clauses[0], "record "); ok {
		rec, err = place(at)
		clauses = clauses[1:]
	}
	if err != nil || len(clauses) == 0 {
		return cmp.Or(err, errors.New("want what the site holds"))
	}
	site, err := s.code.Arch.Site(records.Addr(rec), s.code.Layout)
	if err != nil {
		return err
	}
	s.sites = append(s.sites, site)
	s.code.Len, s.code.Sites = int(site.Len), append(s.code.Sites, site.Addr)
	names := nopOps
	holds, err := s.text(site, clauses[0])
	if err == nil && len(clauses) > 1 {
		names, err = opsOf(clauses[1])
	}
	s.m.Initial, s.m.Literals = append(s.m.Initial, holds), append(s.m.Literals, names)
	return err
}

// text reads what a site holds.
func (s *stage) text(site isa.Site, text string) (isa.Text, error) {
	what, rest, _ := strings.Cut(text, " ")
	switch what {
	case "disabled":
		return s.code.Arch.Disabled(site), nil
	case "bytes":
		return bytesOf(rest, int(site.Len))
	case "calls":
		return s.calling(site, rest)
	case "jumps":
		to, err := place(strings.TrimPrefix(rest, "to "))
		if err != nil {
			return 0, err
		}
		jump := jumps[s.code.Traits.Name]
		if jump == nil {
			return 0, fmt.Errorf("no jump is known on %s: want its bytes", s.code.Traits.Name)
		}
		t, reaches := jump(site.Addr, records.Addr(to))
		if !reaches {
			return 0, errors.New("the branch does not reach its target")
		}
		return t, nil
	}
	return 0, fmt.Errorf("text %q: %w", what, spelling.NotOneOf(what, []string{"disabled", "bytes", "calls", "jumps"}))
}

// jumps encode the branch of a static key or of a static call's trampoline.
var jumps = map[string]func(at, to records.Addr) (isa.Text, bool){x86_64.Name: x86_64.Jump, arm64.Name: arm64.Jump}

// calling reads "entry" or "entry through 0xffffffff7a000000". If no branch reaches the
// slot, the text is the encoder's value for an error, as in kernels: a breakpoint
// (AARCH64_BREAK_FAULT, arch/arm64/include/asm/debug-monitors.h).
func (s *stage) calling(site isa.Site, text string) (isa.Text, error) {
	name, through, by := strings.Cut(text, " through ")
	to, err := place(name)
	if err != nil {
		return 0, err
	}
	d := isa.Destination{Target: records.Addr(to), Entry: entryAt}
	if by {
		slot, err := place(through)
		if err != nil {
			return 0, err
		}
		d.PLT = records.Addr(slot)
	}
	t, _, err := s.code.Arch.Enabled(site, d)
	if reach := (*isa.ReachError)(nil); by && errors.As(err, &reach) {
		return s.code.Arch.Breakpoint(), nil
	}
	return t, err
}

// bytesOf reads bytes as outputs show them.
func bytesOf(text string, n int) (isa.Text, error) {
	var list []byte
	for word := range strings.FieldsSeq(text) {
		b, err := strconv.ParseUint(word, 16, 8)
		if err != nil {
			return 0, fmt.Errorf("byte %q: want two hexadecimal digits", word)
		}
		list = append(list, byte(b))
	}
	if len(list) != n {
		return 0, fmt.Errorf("%d bytes: a site has %d", len(list), n)
	}
	return isa.TextOf(list...), nil
}

// place reads an address, by name or as a hexadecimal number.
func place(text string) (uint64, error) {
	if at, ok := places[text]; ok {
		return at, nil
	}
	if at, err := strconv.ParseUint(text, 0, 64); err == nil {
		return at, nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(places)), ", ")
	return 0, fmt.Errorf("address %q: not one of %s, nor a number", text, names)
}

// opsOf reads "ops other".
func opsOf(clause string) (uint64, error) {
	name, ok := strings.CutPrefix(clause, "ops ")
	if !ok {
		return 0, fmt.Errorf("%q: want \"ops\" and its name or address", clause)
	}
	return place(name)
}

// patch adds the patch of a line such as "site 0, to calls other, to ops other"; what
// it leads from is what the site starts with, unless the line says so.
func (s *stage) patch(text string) error {
	clauses := strings.Split(text, ", ")
	number, ok := strings.CutPrefix(clauses[0], "site ")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < 0 || i >= len(s.sites) {
		return fmt.Errorf("%q: want one of the %d sites", clauses[0], len(s.sites))
	}
	site := s.sites[i]
	p := poke.Patch{Site: int32(i), Addr: site.Addr, Old: s.m.Initial[i], OldOps: s.m.Literals[i]}
	p.New, p.NewOps = p.Old, p.OldOps
	for _, clause := range clauses[1:] {
		way, what, _ := strings.Cut(clause, " ")
		holds, names := &p.New, &p.NewOps
		switch way {
		case "from":
			holds, names = &p.Old, &p.OldOps
		case "to":
		default:
			return fmt.Errorf("%q: want \"from\" or \"to\"", clause)
		}
		if strings.HasPrefix(what, "ops ") {
			*names, err = opsOf(what)
		} else {
			*holds, err = s.text(site, what)
		}
		if err != nil {
			return err
		}
	}
	s.patches = append(s.patches, p)
	return nil
}

// step adds a step of a patcher: one of poke's, or the whole update of a built-in
// protocol, such as "update breakpoint 0".
func (s *stage) step(text string) error {
	p := &s.m.Programs[len(s.m.Programs)-1]
	if update, ok := strings.CutPrefix(text, "update "); ok {
		return s.update(p, strings.Fields(update))
	}
	st, err := poke.ParseStep(text)
	if err == nil && int(st.To) > len(p.Patches) {
		err = fmt.Errorf("there are %d patches", len(p.Patches))
	}
	p.Plan = append(p.Plan, st)
	return err
}

// update compiles a protocol about some patches: as one batch, each by itself, or the
// other way round.
func (s *stage) update(p *explore.Program, words []string) error {
	if len(words) < 2 {
		return errors.New("want a protocol and its patches")
	}
	protocol := poke.Named(words[0], s.code.Traits)
	if protocol == nil {
		return fmt.Errorf("protocol %q: %w", words[0], spelling.NotOneOf(words[0], poke.Names()))
	}
	r, ok := poke.ParseRange(words[1])
	if !ok || r.To > len(p.Patches) {
		return fmt.Errorf("patches %q: want some of %d", words[1], len(p.Patches))
	}
	n := r.To - r.From
	batches := []poke.Range{{From: 0, To: n}}
	how := strings.Join(words[2:], " ")
	switch how {
	case "", "back":
	case "one by one":
		batches = nil
		for i := range n {
			batches = append(batches, poke.Range{From: i, To: i + 1})
		}
	default:
		return fmt.Errorf("%q: want \"back\" or \"one by one\" or nothing", how)
	}
	var plan []poke.Step
	shape := poke.Shape{Traits: s.code.Traits, Len: s.code.Len, Patches: n}
	err := protocol.Compile(shape, slices.Values(batches), func(st poke.Step) {
		st.From, st.To = st.From+int32(r.From), st.To+int32(r.From)
		plan = append(plan, st)
	})
	if how == "back" {
		plan = poke.Backwards(plan)
	}
	p.Plan = append(p.Plan, plan...)
	return err
}
