package museum

import (
	"errors"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Where things lie, and what the ops are. No two differ in one half only, so that
// half of one and half of another is neither.
const (
	textAt  records.Addr = 0xffff_ffff_8100_0004 // the first site
	textGap              = 64                    // from site to site
	entryAt records.Addr = 0xffff_ffff_80ff_0000 // ftrace_caller, or the first of two trampolines
	otherAt records.Addr = 0xffff_ffff_80ff_4240 // the second
	thirdAt records.Addr = 0xffff_ffff_80ff_8480

	nopOps   uint64 = 0xffff_8000_8234_5678 // ftrace_nop_ops
	firstOps uint64 = 0xffff_ffff_c0a0_1040
)

// scene is a model being laid out.
type scene struct {
	m    *explore.Model
	path []cpus.Variant // what CPUs do otherwise
	err  error
}

// newScene is a machine of busy CPUs without any site. Handlers search a sorted
// vector, as the kernel's do.
func newScene(a isa.Arch, layout isa.Layout, ncpus int) *scene {
	return &scene{m: &explore.Model{
		Code:   &cpus.Code{Arch: a, Traits: a.Traits(), Layout: layout, Entry: entryAt, Stretch: 1},
		Roles:  make([]cpus.Role, ncpus),
		NopOps: nopOps, Lookup: int3.Vector,
	}}
}

// site is a place in the text being laid out.
type site struct {
	isa.Site
	i int32
	s *scene
}

// siteAt adds the site of the record at rec, disabled.
func (s *scene) siteAt(rec records.Addr) site {
	at, err := s.m.Code.Arch.Site(rec, s.m.Code.Layout)
	s.fail(err)
	i := len(s.m.Code.Sites)
	s.m.Code.Len = int(at.Len)
	s.m.Code.Sites = append(s.m.Code.Sites, at.Addr)
	s.m.Initial = append(s.m.Initial, s.m.Code.Arch.Disabled(at))
	s.m.Literals = append(s.m.Literals, nopOps)
	return site{at, int32(i), s}
}

// site adds a site behind the last one.
func (s *scene) site() site {
	return s.siteAt(textAt + records.Addr(textGap*len(s.m.Code.Sites)))
}

func (s *scene) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// program adds a patcher.
func (s *scene) program(patches []poke.Patch, plan ...[]poke.Step) {
	p := explore.Program{Patches: patches}
	for _, steps := range plan {
		p.Plan = append(p.Plan, steps...)
	}
	s.m.Programs = append(s.m.Programs, p)
}

// calling is the site's text when it calls target.
func (p site) calling(target records.Addr) isa.Text {
	t, _, err := p.s.m.Code.Arch.Enabled(p.Site, isa.Destination{Target: target, Entry: entryAt})
	p.s.fail(err)
	return t
}

// starts says what the site holds, and its literal names, before anything
// happens.
func (p site) starts(text isa.Text, ops uint64) {
	p.s.m.Initial[p.i], p.s.m.Literals[p.i] = text, ops
}

// to is the patch that changes what the site starts with into text.
func (p site) to(text isa.Text, ops uint64) poke.Patch {
	return poke.Patch{
		Site: p.i, Addr: p.Addr, Old: p.s.m.Initial[p.i], New: text,
		OldOps: p.s.m.Literals[p.i], NewOps: ops,
	}
}

// enabled is the patch that makes the disabled site call target; where sites have
// no literal the call itself names what is called.
func (p site) enabled(target records.Addr) poke.Patch {
	return p.to(p.calling(target), uint64(target))
}

// shape is what plans depend on.
func (s *scene) shape(patches int) poke.Shape {
	return poke.Shape{Traits: s.m.Code.Traits, Len: s.m.Code.Len, Patches: patches}
}

// reaches notes that a branch was to reach, and whether it does.
func (s *scene) reaches(ok bool) {
	if !ok {
		s.fail(errReach)
	}
}

var errReach = errors.New("a branch does not reach its target")
