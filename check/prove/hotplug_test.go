// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// Plans beside which CPUs come online.
const (
	trapsUp = `name: traps
batching: buffered
once before:
    Lock cpu_hotplug_lock
every batch:
    Publish
    Write breakpoint
    Sync 1
    Write tail if tail
    Sync 2
    Write head if head
    Sync 3
    Unpublish
    WaitHandlers
once after:
    Unlock cpu_hotplug_lock
miss:
    fatal
online:
    call a site
    come online
`
	wordUp = `name: word
batching: whole
every batch:
    Write literal if literal
    Fence
    Sync 1
    Write word
    Fence
    Sync 2
online:
    come online
    sync
`
)

const offline = "offline:\n    go offline\n"

// TestCPUsThatComeOnline: a CPU that calls a site before rounds reach it is let in at the wrong
// time, unless the update has the lock of hotplug; one that has fetched ahead before they do
// executes what was there, unless it fetches afresh. One that goes offline does no harm, unless it calls a site when
// rounds pass over it. The explorer says the same.
func TestCPUsThatComeOnline(t *testing.T) {
	without := func(text string, lines ...string) string {
		for _, line := range lines {
			if !strings.Contains(text, line) {
				t.Fatalf("no %q", line)
			}
			text = strings.ReplaceAll(text, line, "")
		}
		return text
	}
	lock, unlock := "once before:\n    Lock cpu_hotplug_lock\n", "once after:\n    Unlock cpu_hotplug_lock\n"
	for _, c := range []struct {
		name, arch, text string
		found            cpus.Property // what the explorer finds first; "" where all is proved
	}{
		{"locked", "x86_64", trapsUp, ""},
		{"not locked", "x86_64", without(trapsUp, lock, unlock), cpus.TornFetch},
		{"online before the call", "x86_64", strings.Replace(without(trapsUp, lock, unlock),
			"    call a site\n    come online\n", "    come online\n    sync\n    call a site\n", 1), ""},
		{"fetches afresh", "riscv64", wordUp, ""},
		{"keeps what it has fetched", "riscv64", without(wordUp, "    sync\n"), cpus.StaleAfterCompletion},
		{"goes, too", "riscv64", wordUp + offline, ""},
		{"goes under the lock", "x86_64", trapsUp + offline + "    call a site\n", ""},
		{"goes without a call", "x86_64", strings.Replace(without(trapsUp, lock, unlock), "    call a site\n    come online\n",
			"    come online\n    sync\n", 1) + offline, ""},
		{"calls when it is gone", "x86_64", strings.Replace(without(trapsUp, lock, unlock), "    call a site\n    come online\n",
			"    come online\n    sync\n", 1) + offline + "    call a site\n", cpus.TornFetch},
	} {
		protocol, err := poke.ParseProtocol("up.plan", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, c.arch, "breakpoint", "")
		s.Protocol, s.Workload = protocol, explore.Endless
		p := closed(t, s)
		if p.Closed() != (c.found == "") {
			t.Errorf("%s: proved %t: %s", c.name, p.Closed(), p.Why())
		}
		s.Roles = []cpus.Role{cpus.Busy, cpus.Busy, cpus.Offline}
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		all, _ := explore.ParseReductions("all")
		r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: all, Workers: 1})
		if err != nil || (r.Violation == nil) != (c.found == "") || r.Violation != nil && r.Violation.Property != c.found {
			t.Errorf("%s: the explorer finds %v, %v; want %q", c.name, r.Violation, err, c.found)
		}
		if s.Sites = 1; c.found == "" {
			if m, err = s.Model(); err != nil {
				t.Fatal(err)
			}
			r, err = explore.Explore(context.Background(), m, explore.Options{Reduce: all, Workers: 1, Liveness: true})
			if err != nil || r.Violation != nil || p.Stuck != "" {
				t.Errorf("%s: updates end %q, the explorer finds %v, %v", c.name, p.Stuck, r.Violation, err)
			}
		}
		if once, again := p.Obligations(false), p.Obligations(false); p.Closed() && !slices.EqualFunc(once, again,
			func(a, b Obligation) bool { return a.script(true) == b.script(true) }) {
			t.Errorf("%s: the obligations are others when they are written again: states have got numbers meanwhile", c.name)
		}
		if p.Closed() && *long {
			if n, open, err := p.Certify(t.Context(), solver(t, "z3")); err != nil || len(open) > 0 {
				t.Errorf("%s: %d obligations, open %v, error %v", c.name, n, open, err)
			}
		}
	}
}

// TestTakeDown: in a view, too, a CPU that is asked for something stays, and one beside a patcher that has the lock.
func TestTakeDown(t *testing.T) {
	protocol, err := poke.ParseProtocol("up.plan", []byte(trapsUp+offline))
	if err != nil {
		t.Fatal(err)
	}
	s := setup(t, "x86_64", "breakpoint", "")
	s.Protocol, s.Workload = protocol, explore.Endless
	c := closed(t, s).closure
	locked := 0
	for _, v := range c.views {
		is := &cell{m: c.machine, of: &v}
		is.begin(branch{})
		holds := c.program.items[c.places.list[v[place]].item].held.has(poke.HotplugLock)
		if got, want := is.TakeDown(1), v[asked] == askedNothing && !holds; got != want {
			t.Fatalf("asked %d, the patcher has the lock %t: goes %t", v[asked], holds, got)
		}
		if holds {
			locked++
		}
	}
	if locked == 0 || locked == len(c.views) {
		t.Errorf("the patcher has the lock in %d of %d views", locked, len(c.views))
	}
}
