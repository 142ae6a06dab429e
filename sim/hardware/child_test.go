// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
)

// TestMain ends a child that gets as far as this: it would run the tests, each of which starts children, for ever.
func TestMain(m *testing.M) {
	if os.Getenv(childOf) != "" {
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// machineOf is two CPUs and some sites, and the update that enables them.
func machineOf(t *testing.T, sites int) (Config, *poke.Update) {
	t.Helper()
	list, err := threads.Allowed()
	if err != nil || len(list) < 2 {
		t.Skipf("skipped: CPUs %v, %v", list, err)
	}
	if n, err := Allowed(); n != len(list) || err != nil {
		t.Fatalf("%d CPUs, %v", n, err)
	}
	code := &cpus.Code{Arch: live.Arch, Traits: live.Arch.Traits(), Entry: 0xffffffff81000000}
	u := &poke.Update{Shape: poke.Shape{Traits: code.Traits, Patches: sites}}
	for i := range sites {
		at, err := live.Arch.Site(code.Entry+0x1000+records.Addr(64*i), isa.Pair)
		if err != nil {
			t.Fatal(err)
		}
		call, _, err := live.Arch.Enabled(at, isa.Destination{Target: code.Entry, Entry: code.Entry})
		if err != nil {
			t.Fatal(err)
		}
		code.Sites, code.Len = append(code.Sites, at.Addr), int(at.Len)
		u.Patches = append(u.Patches, poke.Patch{Site: int32(i), Addr: at.Addr, Old: live.Arch.Disabled(at), New: call})
	}
	code.Complete()
	capable(t, code)
	u.Shape.Len = code.Len
	p := poke.Named("breakpoint", code.Traits)
	u.Settles = p.Settles(u.Shape)
	whole := func(yield func(poke.Range) bool) { yield(poke.Range{To: sites}) }
	if err := p.Compile(u.Shape, whole, func(st poke.Step) { u.Plan = append(u.Plan, st) }); err != nil {
		t.Fatal(err)
	}
	initial := func(i int) isa.Text { return u.Patches[i].Old }
	return Config{Code: code, Initial: initial, Roles: make([]cpus.Role, 2)}, u
}

// capable skips a test where threads cannot execute sites at all.
func capable(t *testing.T, code *cpus.Code) {
	t.Helper()
	m, err := live.Open(live.Config{Code: code, Initial: func(int) isa.Text { return 0 }, Threads: 1})
	if errors.Is(err, live.ErrOpen) { // one of this test's own
		return
	}
	if err != nil {
		t.Skip("skipped:", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func child(t *testing.T, cfg Config) *Child {
	t.Helper()
	c, err := NewChild(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestChildIsAMachine: an update by a child counts what one here counts.
func TestChildIsAMachine(t *testing.T) {
	cfg, u := machineOf(t, 6)
	c := child(t, cfg)
	out, err := c.Update(t.Context(), u)
	if err != nil || out.Total != 0 || out.Stores != 18 || out.Counts.TotalRounds(cpus.Sync) != 3 ||
		out.Counts.TotalTaken(cpus.Sync) != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	for i, p := range u.Patches {
		if c.Peek(i) != p.New {
			t.Errorf("site %d: %s", i, c.Peek(i).Format(5))
		}
	}
	// A second one in this process would be refused; the child's is not this process's.
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg); !errors.Is(err, live.ErrOpen) {
		t.Errorf("a second machine: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeathIsAFinding: of a process that dies in the middle is told what it was at.
func TestDeathIsAFinding(t *testing.T) {
	cfg, u := machineOf(t, 2)
	c := child(t, cfg)
	if _, err := c.Update(t.Context(), u); err != nil { // its threads call
		t.Fatal(err)
	}
	if err := c.cmd.Process.Signal(unix.SIGSEGV); err != nil { // as text makes it end
		t.Fatal(err)
	}
	out, err := c.Update(t.Context(), u)
	if err != nil || !out.Died || out.Total == 0 || len(out.Findings) == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, f := range out.Findings {
		if !strings.Contains(f.Why, "the process ended with ") {
			t.Errorf("%v", f)
		}
		if f.Site >= 0 && f.Bytes != u.Patches[f.Site].New.Format(5) {
			t.Errorf("%v: site %d holds %s", f, f.Site, u.Patches[f.Site].New.Format(5))
		}
	}
	if _, err := c.Update(t.Context(), u); !errors.Is(err, ErrDead) {
		t.Errorf("one more update: %v", err)
	}
}

// TestKilledIsNoFinding: somebody who kills the process has found nothing about the plan,
// be it that the next update still gets to it or that it does not.
func TestKilledIsNoFinding(t *testing.T) {
	signals := []unix.Signal{unix.SIGKILL, unix.SIGHUP, unix.SIGKILL}
	if signal.Ignored(unix.SIGHUP) { // under nohup, and a process that it starts keeps it so
		signals[1] = unix.SIGKILL
	}
	for i, sig := range signals {
		cfg, u := machineOf(t, 2)
		c := child(t, cfg)
		if _, err := c.Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			_ = c.in.Close()
		}
		out, err := c.Update(t.Context(), u)
		for err != nil && strings.Contains(err.Error(), "every site is all old") { // the process answered before the signal reached it
			out, err = c.Update(t.Context(), u)
		}
		if err == nil || out.Died || len(out.Findings) > 0 || !strings.Contains(err.Error(), "killed from outside") {
			t.Errorf("%v: %+v, %v", sig, out, err)
		}
	}
}

// TestStuckThreadIsAFinding: a thread that never passes a border holds up every round. Its
// process is ended, and what it was at is told; a finding, though nobody asked for an end.
func TestStuckThreadIsAFinding(t *testing.T) {
	cfg, u := machineOf(t, 2)
	forever := isa.TextOf(0xeb, 0xfe) // jmp to itself
	cfg.Initial = func(i int) isa.Text {
		if i == 1 {
			return forever
		}
		return u.Patches[i].Old
	}
	c := child(t, cfg)
	c.patience = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := c.Update(ctx, u)
	if err != nil || !out.Died || out.Total == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, f := range out.Findings {
		if f.Property != cpus.StuckCPU || f.Site != 1 || !strings.Contains(f.Why, "did not come back from a call") ||
			!strings.Contains(f.Why, "jmp") {
			t.Errorf("%+v", f)
		}
	}
}

// TestChildBeginsNothing: an update that is to end already is not begun, and the child makes the next one.
func TestChildBeginsNothing(t *testing.T) {
	cfg, u := machineOf(t, 2)
	c := child(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := c.Update(ctx, u); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := c.Update(t.Context(), u); err != nil {
		t.Error(err)
	}
}

// TestTrapsAreConserved: a trap that neither found its entry nor missed it is told.
func TestTrapsAreConserved(t *testing.T) {
	before := []live.Counts{{Traps: 5, Hits: 5}, {Traps: 3, Hits: 3}}
	for _, tt := range []struct {
		now  live.Counts
		good bool
	}{
		{live.Counts{Traps: 3, Hits: 3}, true},
		{live.Counts{Traps: 9, Hits: 6, Misses: 2, Unhandled: 1}, true},
		{live.Counts{Traps: 9, Hits: 8}, false},
		{live.Counts{Traps: 3, Hits: 4}, false},
	} {
		if err := conserved(before, []live.Counts{before[0], tt.now}); (err == nil) != tt.good {
			t.Errorf("%+v: %v", tt.now, err)
		}
	}
}
