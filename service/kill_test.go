// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// killer kills servers and looks what the next one knows.
type killer struct {
	t    *testing.T
	dir  string
	rng  *rand.Rand
	seen *seen
	seed uint64 // of the last life
}

// TestKill kills a server with SIGKILL, at every point where a crash is of
// interest and at random, and holds each time what the next one knows and does
// against what clients were told: what was acknowledged is there, once, and ends as
// it was answered; what was live is live, and nothing else; every site is whole.
func TestKill(t *testing.T) {
	kills := 20
	switch {
	case *long:
		kills = 300
	case raced():
		kills = 3
	}
	k := &killer{t: t, dir: t.TempDir(), rng: rand.New(rand.NewPCG(1, 2)), seen: newSeen()}
	points := k.points()
	t.Logf("points: %q", points)
	at := map[string]int{}
	for i := range kills {
		l := life{}
		if i%(len(points)+3) < len(points) { // the others at random
			l.Point, l.Pass, l.Linger = points[i%(len(points)+3)], 1+k.rng.IntN(4), k.rng.IntN(2) == 0
		}
		at[k.kill(l)]++
		k.look()
		if t.Failed() {
			t.Fatalf("after kill %d of %d, %+v", i+1, kills, l)
		}
	}
	t.Logf("kills by place: %v; %d comparisons, %d updates, %d answered", at, k.seen.checks, len(k.seen.ids),
		len(k.seen.ends))
	for _, p := range points {
		if *long && at[p] == 0 {
			t.Errorf("no server was killed %s", p)
		}
	}
	answers := 1 // some servers are killed before their first
	if *long {
		answers = kills
	}
	if k.seen.checks < kills || len(k.seen.ends) < answers {
		t.Errorf("%d comparisons and %d answers for %d kills", k.seen.checks, len(k.seen.ends), kills)
	}
}

func (k *killer) begin(l life) *child {
	k.seed++
	l.Dir, l.Seed, l.Again = k.dir, k.seed, k.seen.again()
	return born(k.t, l)
}

// points is where a life passes that is let run for a while, and what the service
// names.
func (k *killer) points() []string {
	all := map[string]bool{}
	for _, p := range []string{
		service.BeforeAccept, service.AfterAccept, service.BeforeApply, service.AfterApply, service.BeforeAnswer, service.AfterAnswer,
		service.BeforeCompact, service.DuringCompact, service.AfterCompact,
	} {
		all[p] = true
	}
	c := k.begin(life{Trace: true})
	end := time.AfterFunc(300*time.Millisecond, func() { _ = c.cmd.Process.Kill() })
	defer end.Stop()
	k.listen(c, func(x line) {
		if x.Event == "point" {
			all[x.State] = true
		}
	})
	k.look()
	return slices.Sorted(maps.Keys(all))
}

// listen hears everything out that a life says.
func (k *killer) listen(c *child, also func(line)) {
	for x := range c.lines {
		if err := k.seen.hear(x); err != nil {
			k.t.Error(err)
		}
		also(x)
	}
	if c.err != nil {
		k.t.Error(c.err)
	}
}

// patience is how long a life may take to reach the place where it is killed.
const patience = 500 * time.Millisecond

// kill begins a life and sees to it that it is killed; it tells where.
func (k *killer) kill(l life) string {
	c := k.begin(l)
	wait, where := patience, l.Point
	if l.Point == "" {
		wait, where = time.Duration(k.rng.Int64N(int64(50*time.Millisecond))), "at random"
	}
	var timer *time.Timer
	kill := func() {
		where = "at random"
		_ = c.cmd.Process.Kill()
	}
	if l.Point == "" && k.rng.IntN(3) == 0 { // while it starts
		timer = time.AfterFunc(wait, kill)
	}
	k.listen(c, func(x line) {
		if x.Event == "ready" && timer == nil {
			timer = time.AfterFunc(wait, kill)
		}
	})
	if timer != nil {
		timer.Stop()
	}
	return where
}

// look begins a life that only says what there is.
func (k *killer) look() {
	ready := false
	k.listen(k.begin(life{Look: true}), func(x line) { ready = ready || x.Event == "ready" })
	if !ready {
		k.t.Error("the server did not get ready again")
	}
}

// TestSeenFindsOut: servers that lose, repeat, invent or change something are
// found out, and one that does not is not.
func TestSeenFindsOut(t *testing.T) {
	a := asked{Client: "bpf", Ops: "graph", Key: "k", Enable: true, Set: 0b11}
	u := told{ID: 7, Client: "bpf", Ops: "graph", Key: "k", Enable: true, Records: 2, State: "live"}
	with := func(change func(*told)) told {
		v := u
		change(&v)
		return v
	}
	before := []line{{Event: "try", At: 1, Asked: a}, {Event: "ack", At: 2, Asked: a, ID: 7}}
	answered := append(slices.Clone(before), line{Event: "end", At: 3, Asked: a, ID: 7, State: "live"})
	for _, c := range []struct {
		name   string
		before []line
		ready  line
		wrong  bool
	}{
		{"all is there", answered, line{Set: 0b11, Updates: []told{u}}, false},
		{"answered only now", before, line{Set: 0b11, Updates: []told{u}}, false},
		{"never acknowledged, and lost", before[:1], line{}, false},
		{"never acknowledged, and there", before[:1], line{Set: 0b11, Updates: []told{u}}, false},
		{"lost", before, line{}, true},
		{"lost in the text", before, line{Updates: []told{u}}, true},
		{"there twice", before, line{Set: 0b11, Updates: []told{u, with(func(u *told) { u.ID = 8 })}}, true},
		{"another number", before, line{Set: 0b11, Updates: []told{with(func(u *told) { u.ID = 8 })}}, true},
		{"invented", nil, line{Set: 0b11, Updates: []told{u}}, true},
		{"changed", before, line{Set: 0b11, Updates: []told{with(func(u *told) { u.Records = 1 })}}, true},
		{"answered, and taken back", answered, line{Updates: []told{with(func(u *told) { u.State = "failed" })}}, true},
		{"still waiting", before, line{Updates: []told{with(func(u *told) { u.State = "queued" })}}, true},
		{"a site is broken", answered, line{Set: 0b11, Updates: []told{u}, Wrong: "breakpoint"}, true},
		{"seen before it failed", append(slices.Clone(before), line{Event: "look", At: 3, Until: 4, Set: 0b11}),
			line{Updates: []told{with(func(u *told) { u.State = "failed" })}}, true},
	} {
		s := newSeen()
		for _, l := range c.before {
			if err := s.hear(l); err != nil {
				t.Fatal(err)
			}
		}
		c.ready.Event, c.ready.At = "ready", 10
		if err := s.hear(c.ready); (err != nil) != c.wrong {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
