// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// scriptRecords is how many records scripts are about, so few that they meet.
const scriptRecords = 6

// action is one line of a script: exactly one of its fields counts.
type action struct {
	submit *Request
	cancel int // number of the request, -1: none
	finish bool
}

func (a action) String() string {
	switch {
	case a.submit != nil:
		return fmt.Sprintf("submit %+v", *a.submit)
	case a.cancel >= 0:
		return fmt.Sprintf("cancel request %d", a.cancel)
	default:
		return "finish the update"
	}
}

func drawScript(t *rapid.T) []action {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) action {
		switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
		case what < 7:
			return action{submit: &Request{
				Client:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client"),
				Enable:  rapid.Bool().Draw(t, "enable"),
				Records: rapid.SliceOfN(rapid.IntRange(0, scriptRecords-1), 0, 4).Draw(t, "records"),
			}, cancel: -1}
		case what < 8:
			return action{cancel: rapid.IntRange(0, 30).Draw(t, "request")}
		default:
			return action{cancel: -1, finish: true}
		}
	}), 20, 80).Draw(t, "script")
}

// wish is a request in the model.
type wish struct {
	Request
	answered bool
	err      error
}

// model is what a coordinator is to do, one thing after the other.
type model struct {
	bad     int
	wanted  map[int]map[string]bool // who wants a record
	live    map[int]bool
	all     []*wish
	queue   []*wish
	single  []*wish // to be tried one by one
	running []*wish // in the update that is held up
	calls   [][]Change
}

// with is who wants what once requests are carried out.
func (m *model) with(ws []*wish) map[int]map[string]bool {
	after := map[int]map[string]bool{}
	for rec := range scriptRecords {
		after[rec] = map[string]bool{}
		for client := range m.wanted[rec] {
			after[rec][client] = true
		}
	}
	for _, w := range ws {
		for _, rec := range w.Records {
			if delete(after[rec], w.Client); w.Enable {
				after[rec][w.Client] = true
			}
		}
	}
	return after
}

// next begins updates until one is held up, or nothing waits.
func (m *model) next() {
	for m.running == nil && len(m.single)+len(m.queue) > 0 {
		group := m.queue
		if len(m.single) > 0 {
			group, m.single = m.single[:1], m.single[1:]
		} else {
			m.queue = nil
		}
		group = slices.DeleteFunc(slices.Clone(group), func(w *wish) bool { return w.answered })
		after := m.with(group)
		var changes []Change
		for rec := range scriptRecords {
			if want := len(after[rec]) > 0; want != m.live[rec] {
				changes = append(changes, Change{rec, want})
			}
		}
		if len(changes) == 0 {
			m.done(group)
			continue
		}
		m.calls = append(m.calls, changes)
		m.running = group
	}
}

func (m *model) done(group []*wish) {
	m.wanted = m.with(group)
	for rec := range scriptRecords {
		m.live[rec] = len(m.wanted[rec]) > 0
	}
	for _, w := range group {
		w.answered = true
	}
}

// finish ends the update that is held up, and tells whether there was one.
func (m *model) finish() bool {
	group := m.running
	if group == nil {
		return false
	}
	m.running = nil
	bad := slices.ContainsFunc(m.calls[len(m.calls)-1], func(c Change) bool { return c.Record == m.bad })
	switch {
	case !bad:
		m.done(group)
	case len(group) > 1:
		m.single = group
	default:
		group[0].answered, group[0].err = true, errBad
	}
	m.next()
	return true
}

func (m *model) submit(r Request) {
	w := &wish{Request: r}
	m.all = append(m.all, w)
	m.queue = append(m.queue, w)
	m.next()
}

// cancel withdraws a request that nobody has taken up.
func (m *model) cancel(i int) bool {
	w := m.all[i]
	if w.answered || !slices.Contains(m.queue, w) {
		return false
	}
	w.answered, w.err = true, ErrCancelled
	return true
}

// player plays a script to a coordinator and to the model.
type player struct {
	x       *fakeText
	c       *Coordinator
	m       *model
	tickets []*Ticket
}

// play is one action, after which both must agree about all requests.
func (p *player) play(t *testing.T, a action) error {
	switch {
	case a.submit != nil:
		ticket, err := p.c.Submit(t.Context(), *a.submit)
		if err != nil {
			return err
		}
		p.tickets = append(p.tickets, ticket)
		p.m.submit(*a.submit)
	case a.cancel >= 0 && a.cancel < len(p.tickets):
		if got, want := p.tickets[a.cancel].Cancel(), p.m.cancel(a.cancel); got != want {
			return fmt.Errorf("cancelled: %t, want %t", got, want)
		}
	case a.finish:
		if p.m.finish() {
			p.x.hold <- struct{}{}
		}
	}
	synctest.Wait()
	return p.agree()
}

func (p *player) agree() error {
	if !slices.EqualFunc(p.x.calls, p.m.calls, slices.Equal) {
		return fmt.Errorf("updates %v, want %v", p.x.calls, p.m.calls)
	}
	for i, w := range p.m.all {
		answered, err := false, error(nil)
		select {
		case <-p.tickets[i].Done():
			answered, err = true, p.tickets[i].Err()
		default:
		}
		if answered != w.answered || !errors.Is(err, w.err) || w.err == nil && err != nil {
			return fmt.Errorf("request %d %+v: answered %t with %v, want %t, %v", i, w.Request, answered, err, w.answered, w.err)
		}
	}
	return p.x.wrong
}

// playAll plays a script to its end, with all updates finished.
func playAll(t *testing.T, script []action, bad int) (failed error) {
	synctest.Test(t, func(t *testing.T) {
		x := newFake(scriptRecords).held()
		x.bad = bad
		p := &player{x: x, c: x.start(t, Config{}), m: &model{bad: bad, live: map[int]bool{}}}
		for i, a := range script {
			if err := p.play(t, a); err != nil && failed == nil {
				failed = fmt.Errorf("line %d, %v: %w", i, a, err)
			}
		}
		for failed == nil && p.m.running != nil {
			failed = p.play(t, action{cancel: -1, finish: true})
		}
		close(x.hold)
		if err := p.c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for rec := range scriptRecords {
			if got := p.c.Snapshot().Live(rec); failed == nil && (got != p.m.live[rec] || got != x.live[rec]) {
				failed = fmt.Errorf("record %d is live: %t, want %t, in the text: %t", rec, got, p.m.live[rec], x.live[rec])
			}
		}
		if n := p.c.Stats().Requests; failed == nil && n != uint64(len(p.m.all)) {
			failed = fmt.Errorf("%d requests answered, want %d", n, len(p.m.all))
		}
	})
	return failed
}

// TestCoordinatorIsTheModel plays random scripts of several clients, with
// updates held up, requests cancelled, and a record that no update may hold.
func TestCoordinatorIsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := drawScript(rt)
		bad := rapid.IntRange(-3, scriptRecords-1).Draw(rt, "bad record")
		if err := playAll(t, script, bad); err != nil {
			rt.Fatal(err)
		}
	})
}
