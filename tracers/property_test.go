// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// play is a tracer with clients who do anything, and a twin that knows only who is
// attached to what.
type play struct {
	t       *rapid.T
	c       *Core
	text    []Installed // what replaying all passes gives
	clients []*Ops
	single  *Ops // the ops of all direct trampolines
	direct  map[int]records.Addr
	stale   map[int]bool // records whose REGS nobody needs any more (see excluded)
	writes  int          // until a write fails; -1 never
	failed  bool
	did     map[string]int

	// What the stores say that CPUs read.
	list   []*Ops
	traced map[*Ops]Functions
	calls  *Func
	passed *Ops
}

const playRecords = 6

// deed is something that a client did; then tells the twin if it worked.
type deed struct {
	name   string
	report Report
	err    error
	then   func()
}

func newPlay(t *rapid.T, a isa.Arch, did map[string]int) *play {
	p := &play{t: t, direct: map[int]records.Addr{}, stale: map[int]bool{}, did: did, single: NewOps("single", nil, 0)}
	var err error
	p.calls, p.traced = FuncStub, map[*Ops]Functions{}
	p.c, err = New(Config{Arch: a, Records: addrs(playRecords), Stores: Stores{
		Site: func(*Patch) error {
			if p.writes--; p.writes == -1 {
				p.failed = true
				return EPERM
			}
			return nil
		},
		List: func(o, behind *Ops, on bool) {
			at := slices.Index(p.list, behind) + 1 // 0 for nil
			if on {
				p.list = slices.Insert(p.list, at, o)
				p.traced[o] = o.Filter
			} else {
				p.list = slices.Delete(p.list, at, at+1)
			}
		},
		Hash:  func(o *Ops) { p.traced[o] = o.Filter },
		Entry: func(f *Func, o *Ops) { p.calls, p.passed = f, o },
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.text = slices.Clone(p.c.text)
	return p
}

// step does one thing, perhaps with a failure in the middle.
func (p *play) step() {
	before := p.snapshot()
	p.writes, p.failed = -1, false
	if rapid.IntRange(0, 3).Draw(p.t, "fail") == 0 {
		p.writes = rapid.IntRange(0, 3).Draw(p.t, "writes before the failure")
	}
	what := rapid.SampledFrom([]func() deed{
		p.attach, p.attach, p.detach, p.setFilter, p.registerDirect, p.registerDirect,
		p.unregisterDirect, p.modifyDirect, p.modifyDirect, p.addSingle, p.delSingle, p.modSingle, p.toggle,
	}).Draw(p.t, "what")
	d := what()
	name, r, err, then := d.name, d.report, d.err, d.then
	if name == "" {
		return
	}
	p.t.Logf("%s: %v", name, err)
	if !p.c.Dead() {
		p.checkStores(name)
	}
	if err != nil {
		p.did[name+" fails"]++
		if errno(err) == 0 {
			p.t.Fatalf("%s: %v: not an error that clients get", name, err)
		}
		if p.c.Dead() { // refused half-way, and the one failure came on the way back
			if !strings.Contains(err.Error(), "not everything could be taken back") || !p.failed {
				p.t.Fatalf("%s: dead of %v", name, err)
			}
			return
		}
		if after := p.snapshot(); after != before {
			p.t.Fatalf("%s failed (%v) and left\n%s\ninstead of\n%s", name, err, after, before)
		}
		return
	}
	if p.failed {
		p.t.Fatalf("%s: a write failed and nobody said so", name)
	}
	p.did[name]++
	then()
	for _, pass := range r.Passes {
		for _, q := range pass.Patches {
			if p.text[q.Record].Text != q.From.Text {
				p.t.Fatalf("%s: replay of record %d: %s, the pass expects %s", name, q.Record, p.text[q.Record], q.From)
			}
			p.text[q.Record] = q.To
		}
	}
	p.check()
}

func (p *play) filter(label string, least int) []int {
	return rapid.SliceOfN(rapid.IntRange(0, playRecords-1), least, 4).Draw(p.t, label)
}

func (p *play) pick(kind func(*Ops) bool) *Ops {
	var some []*Ops
	for _, o := range p.clients {
		if kind(o) {
			some = append(some, o)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return rapid.SampledFrom(some).Draw(p.t, "ops")
}

func plain(o *Ops) bool    { return !o.has(OpsDirect) && o.Func != nil }
func isDirect(o *Ops) bool { return o.has(OpsDirect) }

func (p *play) attach() deed {
	flags := rapid.SampledFrom([]OpsFlags{0, OpsDynamic, OpsRecursion, OpsSaveRegs | OpsSaveRegsIfSupported,
		OpsSaveRegs | OpsSaveRegsIfSupported | OpsIPModify | OpsDynamic,
		OpsRCU, OpsStub, OpsPermanent, OpsIPModify}).Draw(p.t, "flags")
	o := NewOps(fmt.Sprintf("ops%d", len(p.did)), user(len(p.clients)), flags, p.filter("filter", 0)...)
	if o.has(OpsStub) { // never called: its function is the stub, as tmp_ops' is
		o.Func = FuncStub
	}
	r, err := p.c.Attach(o)
	return deed{"attach", r, err, func() { p.clients = append(p.clients, o) }}
}

func (p *play) detach() deed {
	o := p.pick(plain)
	if o == nil {
		return deed{}
	}
	r, err := p.c.Detach(o)
	return deed{"detach", r, err, func() {
		if p.c.off {
			p.leftBehind(o, o.Filter)
		}
		p.gone(o)
	}}
}

// gone forgets an ops, and frees it: nobody may meet it again.
func (p *play) gone(o *Ops) {
	p.clients = slices.DeleteFunc(p.clients, func(u *Ops) bool { return u == o })
	if o.has(OpsDynamic) {
		if !o.Released() {
			p.t.Fatalf("%s is not released", o.Name)
		}
		if err := p.c.Free(o); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *play) setFilter() deed {
	o := p.pick(plain)
	if o == nil {
		return deed{}
	}
	from := o.Filter
	r, err := p.c.SetFilter(o, p.filter("filter", 0)...)
	return deed{"filter", r, err, func() { p.leftBehind(o, from) }}
}

// leftAll is leftBehind where it is not known any more what the ops was.
func (p *play) leftAll() {
	for rec := range playRecords {
		p.stale[rec] = true
	}
}

// leftBehind notes the records whose REGS the kernel leaves set: flags are cleared
// when a site becomes a nop, and sites do not change while tracing is off.
func (p *play) leftBehind(o *Ops, from Functions) {
	for rec := range playRecords {
		if o.has(OpsSaveRegs) && from.choose(rec) {
			p.stale[rec] = true
		}
	}
}

func (p *play) registerDirect() deed {
	o := NewOps("direct", nil, rapid.SampledFrom([]OpsFlags{0, OpsDynamic}).Draw(p.t, "flags"), p.filter("filter",
		0)...)
	addr := p.trampoline()
	r, err := p.c.RegisterDirect(o, addr)
	return deed{"register direct", r, err, func() {
		p.clients = append(p.clients, o)
		for _, rec := range o.Filter {
			p.direct[rec] = addr
		}
	}}
}

// trampoline is an address for a direct trampoline, near or far.
func (p *play) trampoline() records.Addr {
	return rapid.SampledFrom([]records.Addr{0xffffffff82000000, 0xffffffffa0000000}).Draw(p.t,
		"area") + 0x1000*records.Addr(rapid.IntRange(0, 3).Draw(p.t, "trampoline"))
}

func (p *play) unregisterDirect() deed {
	o := p.pick(isDirect)
	if o == nil {
		return deed{}
	}
	recs := o.Filter
	r, err := p.c.UnregisterDirect(o)
	return deed{"unregister direct", r, err, func() {
		if p.c.off {
			p.leftAll()
		}
		p.gone(o)
		for _, rec := range recs {
			delete(p.direct, rec)
		}
	}}
}

func (p *play) modifyDirect() deed {
	o := p.pick(isDirect)
	if o == nil {
		return deed{}
	}
	addr := p.trampoline()
	r, err := p.c.ModifyDirect(o, addr)
	return deed{"modify direct", r, err, func() {
		for _, rec := range o.Filter {
			p.direct[rec] = addr
		}
	}}
}

func (p *play) request() map[int]records.Addr {
	to := map[int]records.Addr{}
	for _, rec := range p.filter("functions", 1) {
		to[rec] = p.trampoline()
	}
	return to
}

func (p *play) addSingle() deed {
	to := p.request()
	r, err := p.c.DirectAdd(p.single, to)
	return deed{"direct add", r, err, func() { maps.Copy(p.direct, to) }}
}

func (p *play) modSingle() deed {
	to := p.request()
	r, err := p.c.DirectMod(p.single, to)
	return deed{"direct mod", r, err, func() { maps.Copy(p.direct, to) }}
}

func (p *play) delSingle() deed {
	of := map[int]records.Addr{}
	for rec := range p.request() {
		of[rec] = p.direct[rec]
	}
	r, err := p.c.DirectDel(p.single, of)
	return deed{"direct del", r, err, func() {
		p.leftAll()
		for rec := range of {
			delete(p.direct, rec)
		}
	}}
}

func (p *play) toggle() deed {
	r, err := p.c.Switch(p.c.off)
	return deed{"switch", r, err, func() {}}
}

// TestAnything: whatever clients do, in any order and with any store failing, the
// counts are those of the twin, the text is what the flags say, everybody who is
// attached is called and nobody else, no link leads to a freed ops, and what fails
// leaves no trace.
func TestAnything(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		did := map[string]int{}
		want := []string{"attach", "attach fails", "detach", "detach fails", "filter", "filter fails",
			"register direct", "register direct fails",
			"unregister direct", "unregister direct fails", "modify direct", "modify direct fails", "switch",
			"switch fails"}
		if a.Traits().SingleDirectOps {
			want = append(want, "direct add", "direct add fails", "direct mod", "direct mod fails", "direct del",
				"direct del fails")
		}
		never := func(what string) bool { return did[what] == 0 }
		for tries := 0; tries == 0 || tries < 20 && !testing.Short() && slices.ContainsFunc(want, never); tries++ {
			rapid.Check(t, func(t *rapid.T) {
				p := newPlay(t, a, did)
				for range rapid.IntRange(20, 90).Draw(t, "steps") {
					if p.step(); p.c.Dead() {
						return
					}
				}
			})
		}
		for _, what := range want {
			if never(what) && !testing.Short() {
				t.Errorf("never seen: %s", what)
			}
		}
	})
}
