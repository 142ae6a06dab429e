// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
)

// Machine is threads of this process that execute a text, and one that patches it.
type Machine struct {
	cfg     Config
	live    *live.Machine
	cpus    []*cpu     // those online, in the order of the threads
	home    int        // of these, where the patcher sits
	sites   *live.List // all of them
	driver  poke.Driver
	closed  bool
	running sync.WaitGroup
	procs   int // GOMAXPROCS before
}

// cpu is one CPU and the thread that is on it. Between updates the thread waits, and the CPU is free.
type cpu struct {
	id   int // in the Config's roles
	on   int // of the machine below
	role cpus.Role
	*live.Thread
	err error // why the thread could not begin

	enough  atomic.Uint64 // calls begun with which it waits again; 0 for never
	begins  chan struct{} // tells it to go on
	waits   chan struct{} // tells that it waits
	waiting bool          // who updates has been told
}

// begin lets the thread go on.
func (c *cpu) begin() {
	c.enough.Store(0)
	c.waiting = false
	c.Continue()
	c.begins <- struct{}{}
}

// await waits until the thread waits.
func (c *cpu) await(ctx context.Context) error {
	if c.waiting {
		return nil
	}
	select {
	case <-c.waits:
		c.waiting = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stretch is how many calls a thread makes before it looks whether they are enough:
// nothing preempts it meanwhile.
const stretch = 1000

// New makes the machine and starts its threads. Close must follow. There can be one in a
// process at a time: live.ErrOpen refuses another.
func New(cfg Config) (m *Machine, err error) {
	allowed, err := threads.Allowed()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if err := Fits(cfg.Roles, len(allowed)); err != nil {
		return nil, err
	}
	m = &Machine{cfg: cfg, driver: poke.Driver{Code: cfg.Code}}
	for id, role := range cfg.Roles {
		if role == cpus.Offline {
			continue
		}
		if id == cpus.Housekeeper(cfg.Roles) {
			m.home = len(m.cpus)
		}
		m.cpus = append(m.cpus, &cpu{id: id, on: allowed[len(m.cpus)], role: role,
			begins: make(chan struct{}), waits: make(chan struct{}, 1), waiting: true})
	}
	m.live, err = live.Open(live.Config{
		Code: cfg.Code, Initial: cfg.Initial, Threads: len(m.cpus), Seed: cfg.Seed, Pads: cfg.Broken,
		Unforgiving: unforgiving(cfg.Code.Path), Borderless: cfg.Borderless,
		Blocks: cfg.blocks, Text: cfg.text,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	m.procs = runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), len(m.cpus)+2)) // threads that never rest need one each
	all := make([]int32, len(cfg.Code.Sites))
	for i := range all {
		all[i] = int32(i)
	}
	m.sites = m.live.List(all)
	for i, c := range m.cpus {
		c.Thread = m.live.Threads()[i]
		m.running.Go(func() { m.run(c) })
	}
	for _, c := range m.cpus {
		if <-c.waits; c.err != nil {
			_ = m.Close()
			return nil, fmt.Errorf("CPU %d: %w", c.on, c.err)
		}
	}
	return m, nil
}

// run is a thread's life.
func (m *Machine) run(c *cpu) {
	unpin, err := threads.Pin(c.on)
	if c.err = err; err != nil {
		close(c.waits)
		return
	}
	defer unpin()
	for {
		c.waits <- struct{}{}
		if _, more := <-c.begins; !more {
			return
		}
		for enough := uint64(0); enough == 0 || c.role == cpus.Busy && c.Counts().Begun < enough; enough = c.enough.Load() {
			if c.role == cpus.Isolated {
				live.Spin(stretch)
			} else {
				c.Stretch(stretch, m.sites)
			}
		}
	}
}

// Fault makes stores of the following updates fail as f says; nil for none. No update may
// be running.
func (m *Machine) Fault(f func(st poke.Step, patch int32) error) { m.driver.Fault = f }

// Close ends the threads. No update may be running. Twice is as good as once.
func (m *Machine) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	for _, c := range m.cpus {
		close(c.begins)
	}
	m.running.Wait()
	runtime.GOMAXPROCS(m.procs)
	return m.live.Close()
}

// Peek is what stands at a site.
func (m *Machine) Peek(site int) isa.Text { return m.live.Peek(site) }

// aftermath is how many calls every busy CPU makes after an update, so that it can break
// what the update promised.
const aftermath = 8 * stretch

// Update carries an update out and lets the CPUs go on for a while. An update that does
// not get through is an error, a *poke.Error; findings are not.
func (m *Machine) Update(ctx context.Context, u *poke.Update) (out Outcome, err error) {
	home := m.cpus[m.home]
	unpin, err := threads.Pin(home.on)
	if err != nil {
		return out, fmt.Errorf("CPU %d: %w", home.on, err)
	}
	defer unpin()
	if err := m.rest(ctx); err != nil {
		return out, err
	}
	m.live.Recycle()
	before, err := m.read(true)
	if err != nil {
		return out, err
	}
	out.Pace = m.pace(home)
	if err := m.call(ctx); err != nil {
		m.end()
		return out, err
	}
	begun := m.begun()
	g := m.live.Ground(m.cfg.Slots, m.cfg.Filling, m.home)
	g.Aim = !m.cfg.Even
	waited, told := queued()
	start := time.Now()
	err = m.driver.Run(ctx, g, u)
	out.Elapsed = time.Since(start)
	if now, still := queued(); told && still {
		out.Waited = new(now - waited)
	}
	out.Called = m.begun() - begun
	home.begin()
	m.end()
	if err == nil {
		err = m.rest(ctx)
	}
	m.live.Forget()
	after, failed := m.read(false)
	if failed == nil {
		m.fill(&out, g, before, after)
	}
	return out, errors.Join(err, failed)
}

// rest waits until all threads wait.
func (m *Machine) rest(ctx context.Context) error {
	for _, c := range m.cpus {
		if err := c.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end lets all threads that go on end after the aftermath.
func (m *Machine) end() {
	for _, c := range m.cpus {
		c.enough.Store(c.Counts().Begun + aftermath)
	}
}

// call lets all threads but the patcher's call, and waits until they are at it: each has made some calls.
func (m *Machine) call(ctx context.Context) error {
	for i, c := range m.cpus {
		if i != m.home {
			c.begin()
		}
	}
	for i, c := range m.cpus {
		for from := c.Counts().Begun; i != m.home && c.role == cpus.Busy && c.Counts().Begun-from < stretch; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			time.Sleep(time.Microsecond)
		}
	}
	return nil
}

// begun is how many calls those have begun who go on while one CPU patches.
func (m *Machine) begun() (sum uint64) {
	for i, c := range m.cpus {
		if i != m.home {
			sum += c.Counts().Begun
		}
	}
	return sum
}

// paces is how often the pace is looked at: whatever disturbs some of them, the best counts.
const paces = 8

// pace is the time of a thousand undisturbed calls on the patcher's CPU, which is leased and makes
// them itself: they are no thread's.
func (m *Machine) pace(home *cpu) (best time.Duration) {
	for range paces {
		start := time.Now()
		home.Practise(stretch, m.sites)
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
	}
	return best
}

// read reads each CPU's counts while it stands between two calls; fresh: it also forgets the
// findings.
func (m *Machine) read(fresh bool) (list []live.Counts, err error) {
	err = m.live.Standing(func() {
		for _, c := range m.cpus {
			list = append(list, c.Counts())
			if fresh {
				c.ForgetFound()
			}
		}
	})
	return list, err
}

// fill writes down what an update did.
func (m *Machine) fill(out *Outcome, g *live.Ground, before, after []live.Counts) {
	n := len(m.cfg.Roles)
	out.Stores, out.Took = g.Stores, g.Times
	out.Counts, out.Tallies = cpus.NewCounts(n), make([]cpus.Tally, n)
	home := m.cpus[m.home].id
	others := uint64(len(m.cpus) - 1)
	out.Counts.Rounds[home][cpus.Sync], out.Counts.Rounds[home][cpus.Stop] = uint64(g.Rounds), uint64(g.Stops)
	out.Counts.Sent[cpus.Sync], out.Counts.Sent[cpus.Stop] = uint64(g.Rounds)*others, uint64(g.Stops)*others
	for i, c := range m.cpus {
		if i != m.home && c.role == cpus.Busy {
			out.Callers++
		}
		if i != m.home {
			out.Counts.Taken[c.id][cpus.Sync], out.Counts.Taken[c.id][cpus.Stop] = uint64(g.Answers[i]), uint64(g.Halts[i])
		}
		did := after[i].Sub(before[i])
		broken := did.Wrong + did.Unhandled + did.Faults
		out.Tallies[c.id] = cpus.Tally{
			cpus.Begun: did.Begun, cpus.Traced: did.Traced, cpus.Untraced: did.Untraced - did.Lost, cpus.Lost: did.Lost,
			cpus.Broken: broken, cpus.Trap: did.Traps, cpus.Miss: did.Misses + did.Unhandled,
		}
		out.Compared += did.Comparisons
		out.Total += broken + did.Lost + did.Stale
		m.findings(out, c, did)
	}
	out.Total += uint64(len(g.Broken))
	out.Findings = append(out.Findings, g.Broken...)
	if err := conserved(before, after); err != nil {
		out.Total++
		out.Findings = append(out.Findings, cpus.Violation{Property: cpus.Conservation, CPU: -1, Site: -1, Why: err.Error()})
	}
}

// conserved holds traps against what became of them.
func conserved(before, after []live.Counts) error {
	for i := range after {
		if d := after[i].Sub(before[i]); d.Traps != d.Hits+d.Misses+d.Unhandled {
			return fmt.Errorf("thread %d: %d traps, %d that found an entry and %d that found none", i, d.Traps, d.Hits,
				d.Misses+d.Unhandled)
		}
	}
	return nil
}

// findings tells of the first finding of each kind, where an update has brought some.
func (m *Machine) findings(out *Outcome, c *cpu, did live.Counts) {
	for _, k := range []struct {
		kind     live.Kind
		n        uint64
		property cpus.Property
		why      string
	}{
		{live.Fault, did.Faults, cpus.TornFetch, ""},
		{live.Landed, did.Wrong, cpus.TornFetch, "the call landed where no instruction of the plan leads"},
		{live.Missed, did.Unhandled, cpus.UnhandledBreakpoint, "no entry for it, and it was not forgiven"},
		{live.Broken, did.Lost, cpus.LostCall, "the update had promised a tracer, and the call came back without"},
		{live.Broken, did.Stale, cpus.StaleAfterCompletion, "the update had promised that no tracer is called, and the call " +
			"reached the tracer"},
	} {
		f, any := c.Found(k.kind)
		if k.n == 0 || !any {
			continue
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], f.Bytes)
		text := isa.TextOf(b[:m.cfg.Code.Len]...)
		v := cpus.Violation{
			Property: k.property, CPU: c.id, Site: slices.Index(m.cfg.Code.Sites, records.Addr(f.Site)),
			Addr: records.Addr(f.Site), Bytes: text.Format(m.cfg.Code.Len), Why: k.why,
		}
		if k.kind == live.Fault {
			v.Why = fmt.Sprintf("%s at %s; the bytes were %s by then", unix.SignalName(unix.Signal(f.Signal)),
				records.Addr(f.PC), disassembled(b[:]))
		}
		if k.n > 1 {
			v.Why += fmt.Sprintf(" (%d such calls on this CPU)", k.n)
		}
		out.Findings = append(out.Findings, v)
	}
}

// disassembled is the instruction that bytes begin with.
func disassembled(b []byte) string {
	insn, err := x86asm.Decode(b, 64)
	if err != nil {
		return "no instruction"
	}
	return x86asm.GNUSyntax(insn, 0, nil)
}
