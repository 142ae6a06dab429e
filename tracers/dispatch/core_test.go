// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// sites are functions at uneven distances, so that some share a bucket.
var sites = []records.Addr{tracee, tracee + 0x40, tracee + 0x90, tracee + 0x200}

// client is a tracer that calls traced functions itself, and what of it is known
// without the core.
type client struct {
	ops    *tracers.Ops
	calls  []nested
	filter []int
}

type nested struct {
	site int
	in   tracers.Context
}

func (c *client) traces(site int) bool {
	return len(c.filter) == 0 || slices.Contains(c.filter, site)
}

// play is a way whose clients do anything, beside its core.
type play struct {
	*rapid.T
	kind     Kind
	way      *Way
	clients  []*client
	made     int
	writes   int // stores until one fails; -1: none does
	did      map[string]int
	enter    func(site int) // by the way, or by the core
	log      []string
	budget   int // nested calls that are left
	asCore   bool
	updating bool
}

func newPlay(t *rapid.T, k Kind, did map[string]int) *play {
	p := &play{T: t, kind: k, did: did}
	var err error
	if p.way, err = k.New(Config{Sites: sites, Elsewhere: []records.Addr{elsewhere}}); err != nil {
		t.Fatal(err)
	}
	stored := p.way.core.Stores.Site
	p.way.core.Stores.Site = func(q *tracers.Patch) error {
		if p.writes--; p.writes == -1 {
			return tracers.EPERM
		}
		if p.updating && p.way.users == nil {
			p.compare(fmt.Sprintf("before record %d is stored", q.Record)) // others are, or are not yet
			p.did["window"]++
		}
		return stored(q)
	}
	p.way.core.Jump = func(to, ip records.Addr, t *tracers.Task) {
		tr := p.way.direct[to]
		tr.code.Entry(ip, tr.of, t)
	}
	return p
}

// called is the callback of all clients.
func (p *play) called(c *client) func(ip records.Addr, o *tracers.Ops, t *tracers.Task) {
	return func(ip records.Addr, o *tracers.Ops, t *tracers.Task) {
		if p.asCore && strings.HasPrefix(p.kind.Name, "fprobe") { // fprobe_handler guards itself
			bit, ok := t.Enter(tracers.FtraceGuard)
			if !ok {
				return
			}
			defer t.Leave(bit)
		}
		if o != c.ops {
			p.Fatalf("%s was called with %s", c.ops.Name, o.Name)
		}
		p.log = append(p.log, fmt.Sprintf("%s of %s in %d", o.Name, ip, t.Context()))
		for _, n := range c.calls {
			if p.budget > 0 {
				p.budget--
				t.Interrupt(n.in, func() { p.enter(n.site) })
			}
		}
	}
}

// byWay calls a site through the way.
func (p *play) byWay(site, budget int) ([]string, uint64) {
	t := &Task{}
	p.log, p.budget, p.asCore, p.enter = nil, budget, false, func(site int) { p.way.Call(site, t) }
	p.enter(site)
	if t.Mismatched != 0 || t.late != nil {
		p.Fatalf("site %d: %d mismatched, on the way to %v", site, t.Mismatched, t.late)
	}
	return p.log, t.Missed
}

// byCore calls it as the core says: through the text, or where a way has no text of the
// function tracer's the users, newest first.
func (p *play) byCore(site, budget int) ([]string, uint64) {
	t, probing := &tracers.Task{}, false
	p.log, p.budget, p.asCore = nil, budget, true
	p.enter = func(site int) {
		if p.way.users == nil {
			if _, err := p.way.core.Enter(site).Finish(t); err != nil {
				p.Fatal(err)
			}
			return
		}
		users := p.way.core.Users(site)
		if kprobe := strings.HasPrefix(p.kind.Name, "kprobe"); kprobe && len(users) > 0 {
			if probing { // kprobe_running
				t.Missed++
				return
			}
			probing = true
			defer func() { probing = false }()
		}
		for _, o := range slices.Backward(users) {
			o.Func.Entry(p.way.ips[site], o, t)
		}
	}
	p.enter(site)
	return p.log, t.Missed
}

// compare holds the way against the core: who is called, in which order, and how many
// calls are missed.
func (p *play) compare(when string) {
	for site := range sites {
		for _, budget := range []int{0, 5} {
			got, missed := p.byWay(site, budget)
			want, missing := p.byCore(site, budget)
			if !slices.Equal(got, want) || missed != missing {
				p.Fatalf("%s: site %d: called %v, missed %d; the core: %v, missed %d", when, site, got, missed, want,
					missing)
			}
			if missed > 0 {
				p.did["missed"]++
			}
		}
	}
}

// step does one thing, perhaps with a failing store.
func (p *play) step() {
	p.writes, p.updating = -1, true
	if rapid.IntRange(0, 5).Draw(p.T, "fail") == 0 {
		p.writes = rapid.IntRange(0, 3).Draw(p.T, "writes before the failure")
	}
	what, err := "", error(nil)
	switch rapid.IntRange(0, 5).Draw(p.T, "what") {
	case 0, 1, 2:
		what, err = p.attach()
	case 3:
		what, err = p.change("detach", func(c *client) error {
			err := p.way.Detach(c.ops)
			if err == nil {
				p.clients = slices.DeleteFunc(p.clients, func(d *client) bool { return c == d })
			}
			return err
		})
	default:
		to := p.functions("filter")
		what, err = p.change("filter", func(c *client) error {
			err := p.way.SetFilter(c.ops, to...)
			if err == nil {
				c.filter = to
			}
			return err
		})
	}
	p.updating = false
	if err != nil {
		what += " fails"
		if failed := p.writes < -1 || p.writes == -1; !failed && !errors.Is(err, tracers.EBUSY) && !errors.Is(err,
			tracers.EINVAL) {
			p.Fatalf("%s: %v", what, err)
		}
	}
	p.did[what]++
	if p.way.core.Dead() {
		return
	}
	p.compare(what)
	p.check(what)
}

// check holds the core against what the clients know, and counts against costs.
func (p *play) check(what string) {
	for site := range sites {
		var want []string
		for _, c := range p.clients {
			if c.traces(site) {
				want = append(want, fmt.Sprintf("%s of %s in %d", c.ops.Name, sites[site], tracers.Normal))
			}
		}
		got, _ := p.byWay(site, 0)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			p.Fatalf("%s: site %d: called %v, attached %v", what, site, got, want)
		}
		p.budget = 0
		p.enter, p.asCore = nil, false
		if got, _ := counted(p.way, site, 1); got != p.kind.cost(p.way, site) {
			p.Fatalf("%s: site %d: counted %+v, computed %+v", what, site, got, p.kind.cost(p.way, site))
		}
	}
}

func (p *play) functions(label string) []int {
	return tracers.FunctionsOf(rapid.SliceOfN(rapid.IntRange(0, len(sites)), 0, 3).Draw(p.T, label)...)
}

func (p *play) attach() (string, error) {
	p.made++
	c := &client{filter: p.functions("filter")}
	for range rapid.IntRange(0, 2).Draw(p.T, "nested calls") {
		c.calls = append(c.calls, nested{rapid.IntRange(0, len(sites)-1).Draw(p.T, "site"),
			tracers.Context(rapid.IntRange(0, int(tracers.Normal)).Draw(p.T, "context"))})
	}
	flags := rapid.SampledFrom([]tracers.OpsFlags{0, 0, tracers.OpsDynamic, tracers.OpsRecursion,
		tracers.OpsDynamic | tracers.OpsRecursion, tracers.OpsRCU}).Draw(p.T, "flags")
	f := &tracers.Func{Name: "client", Entry: p.called(c)}
	c.ops = tracers.NewOps(fmt.Sprint("ops", p.made), f, flags, c.filter...)
	if p.kind.Direct && rapid.Bool().Draw(p.T, "direct") {
		c.ops.Func, c.ops.Direct = nil, f
	}
	err := p.way.Attach(c.ops)
	if err == nil {
		p.clients = append(p.clients, c)
	}
	return "attach", err
}

// change changes a client, if there is one.
func (p *play) change(what string, f func(*client) error) (string, error) {
	if len(p.clients) == 0 {
		return "nothing", nil
	}
	return what, f(rapid.SampledFrom(p.clients).Draw(p.T, "client"))
}

// TestWaysFollowTheCore: whatever clients do, in any order and with any store failing,
// each way calls whom the core says, in its order, and misses what it says: behind a
// guard against recursion, in any context, and at sites that an update has not reached.
func TestWaysFollowTheCore(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			did := map[string]int{}
			rapid.Check(t, func(t *rapid.T) {
				p := newPlay(t, k, did)
				for range rapid.IntRange(1, 20).Draw(t, "steps") {
					if p.step(); p.way.core.Dead() {
						return
					}
				}
			})
			want := []string{"attach", "attach fails", "detach", "filter"}
			if sole(t, k).users == nil {
				want = append(want, "window", "missed")
			}
			for _, what := range want {
				if did[what] == 0 && !testing.Short() {
					t.Errorf("never seen: %s", what)
				}
			}
		})
	}
}

// sole is a way with one site.
func sole(t testing.TB, k Kind) *Way {
	t.Helper()
	w, err := k.New(Config{Sites: []records.Addr{tracee}, Elsewhere: []records.Addr{elsewhere}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// SetFilter changes which functions an attached ops traces. EINVAL: it has a direct trampoline.
func (w *Way) SetFilter(o *tracers.Ops, functions ...int) error {
	return w.change(o, w.core.SetFilter, o.Filter, functions)
}

// change changes what an ops traces, or leaves it as it was.
func (w *Way) change(
	o *tracers.Ops, set func(*tracers.Ops, ...int) (tracers.Report, error), from, to []int,
) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.Direct != nil {
		return refuse(tracers.EINVAL, o, "its functions have direct trampolines")
	}
	before := tracers.Ops{Filter: o.Filter}
	_, err := set(o, to...)
	if err != nil || w.entries[o] == nil {
		return err
	}
	if err = errors.Join(w.published(&before), w.published(o)); err != nil {
		after := tracers.Ops{Filter: o.Filter}
		_, undone := set(o, from...)
		err = errors.Join(err, undone, w.published(&after), w.published(o))
	}
	return err
}
