// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/records"
)

// Config is what is recorded.
type Config struct {
	vm.Config // its Debug is not to be set
	// Steps, where it is set, ends the recording with the first batch that ends after so many: the machine goes on without.
	Steps int
	// Mutate, where it is set, changes the machine before the first step.
	Mutate func(*gdb.Client, *image.Kernel) error
}

// powerOff is where a machine's way ends (kernel/reboot.c).
const powerOff = "kernel_power_off"

// Record boots a kernel and records its steps during the actions. If the machine fails, it returns the steps so far
// beside the error.
func Record(ctx context.Context, c Config) (*Recording, error) {
	k, err := image.Open(c.Image)
	if err != nil {
		return nil, err
	}
	arch, err := cpus.ParseArch(k.Arch.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Image, err)
	}
	watches, notes, err := Watches(k)
	if err != nil {
		return nil, err
	}
	r := &Recording{Image: k.Hash, Release: k.Release, Arch: k.Arch.Name, CPUs: len(c.CPUs), Actions: c.Actions,
		Protocol: k.Protocol(), Fences: fences(k, watches)}
	r.Text.From, r.Text.To, _ = k.Limits("_stext", "_etext")
	for _, w := range watches {
		r.Watched = append(r.Watched, fmt.Sprintf("%s %s (%s)", w.Kind, w.Function, w.Evidence))
	}
	r.Watched = append(r.Watched, notes...)
	x := &recorder{Recording: r, kernel: k, arch: arch, at: map[uint64]Watch{}, returns: map[uint64][]pending{},
		counts: map[uint64]Kind{}}
	for _, w := range watches {
		x.at[w.At] = w
	}
	var ok bool
	if x.last, ok = k.Addr(powerOff); !ok {
		return nil, fmt.Errorf("%s: no %s: nothing tells where the recording ends", c.Image, powerOff)
	}
	over := false
	c.Debug = func(ctx context.Context, socket string, begin func() error) error {
		err := x.run(ctx, socket, begin, &c)
		over = err == nil
		return err
	}
	m, err := vm.Measure(ctx, c.Config)
	if err != nil {
		return r, err
	}
	for _, s := range m.Skips {
		r.Watched = append(r.Watched, fmt.Sprintf("%s was skipped: %s", s.Action, s.Why))
	}
	if len(m.Skips) == len(c.Actions) {
		return nil, fmt.Errorf("%s: no action could be done: %s", c.Image, m.Skips[0].Why)
	}
	if !over {
		return nil, fmt.Errorf("%s: the guest was over before it began", c.Image)
	}
	return r, nil
}

// recorder follows a machine.
type recorder struct {
	*Recording
	*gdb.Client
	kernel  *image.Kernel
	arch    isa.Arch
	at      map[uint64]Watch
	returns map[uint64][]pending // by address: who is to return there
	last    uint64               // where the machine's way ends
	early   Watch                // what stores, if it is watched at a load
	stored  [4]uint64            // the CPU of the last such store, its stack, and two arguments
	refs    map[uint64]*count    // words by which handlers find a batch
	counts  map[uint64]Kind      // by the address behind an instruction: what it does to such a word
	text    []byte               // the kernel's text after the steps so far
}

// count is what a word of references held.
type count struct {
	size  int
	value uint64
	name  string // a CPU, where each has one
}

// pending is a watched function that has not returned.
type pending struct {
	cpu   int
	sp    uint64 // behind the return
	kind  Kind   // the step that its return is
	name  string
	frame uint64 // of Trap: where the registers lie
	site  uint64
	took  bool // its reference
}

// stackBits are those of an address within a task's stack of 16 KiB, which is aligned so (THREAD_SIZE, 5.10 to 7.3).
const stackBits = 14

// run records from where the guest begins to where the machine ends.
func (x *recorder) run(ctx context.Context, socket string, begin func() error, c *Config) error {
	client, stop, err := gdb.Dial(ctx, "unix", socket, gdb.LayoutOf(x.Arch))
	if err != nil {
		return err
	}
	defer client.Close()
	x.Client = client
	if c.Mutate != nil {
		if err := c.Mutate(client, x.kernel); err != nil {
			return err
		}
	}
	for at, w := range x.at {
		point := gdb.Breakpoint(at)
		if w.load.variable != 0 { // QEMU forgets all code that it has translated at every breakpoint
			point, x.early = gdb.Loads(w.load.variable, w.load.bytes), w
		}
		if err := x.Insert(point); err != nil {
			return err
		}
	}
	if err := errors.Join(x.watchReferences(stop.CPU), x.Insert(gdb.Breakpoint(x.last)), begin()); err != nil {
		return err
	}
	for {
		if err := x.Continue(); err != nil {
			return err
		}
		if stop, err = x.Wait(); err != nil {
			return fmt.Errorf("after %d steps: %w", len(x.Steps), err)
		}
		if x.text == nil {
			if err := x.readText(stop.CPU); err != nil {
				return err
			}
		}
		regs, err := x.Registers(stop.CPU)
		if err == nil {
			err = x.stopped(stop, regs)
		}
		switch {
		case err != nil:
			return fmt.Errorf("step %d, CPU %d: %w", len(x.Steps)+1, stop.CPU, err)
		case stop.Watched != 0:
		case regs.PC() == x.last:
			return x.finish(stop.CPU)
		case c.Steps > 0 && len(x.Steps) >= c.Steps && x.Steps[len(x.Steps)-1].Kind == End:
			x.Watched = append(x.Watched, fmt.Sprintf("nothing after step %d: no more were asked for", len(x.Steps)))
			return x.finish(stop.CPU)
		default:
			err = x.pass(stop.CPU, regs)
		}
		if err != nil {
			return err
		}
	}
}

// pass takes a CPU over the instruction at which a breakpoint has stopped it: many functions begin with a nop.
func (x *recorder) pass(cpu int, regs gdb.Registers) (err error) {
	if i, ok := x.offset(regs.PC(), maxSite); ok {
		insn := x.arch.Decode(records.Addr(regs.PC()), isa.TextOf(x.text[i:][:8]...), 0)
		if insn.Kind == isa.Nop {
			return x.Skip(cpu, regs, int(insn.Len))
		}
	}
	for now := regs; err == nil && now.PC() == regs.PC(); { // a stop that is told of late ends a step before it is made
		if err = x.Step(cpu); err == nil {
			now, err = x.Registers(cpu)
		}
	}
	return err
}

// readText reads the kernel's text before the first store, on a CPU that is in the kernel: others may not have it mapped.
func (x *recorder) readText(cpu int) (err error) {
	if x.Text == (Text{}) {
		return fmt.Errorf("%s: no _stext and _etext", x.kernel.File)
	}
	if x.text, err = x.Read(cpu, x.Text.From, int(x.Text.To-x.Text.From)); err != nil {
		return fmt.Errorf("read the kernel's text: %w", err)
	}
	return nil
}

// finish compares the kernel's text with the one that the recorded stores give.
func (x *recorder) finish(cpu int) error {
	now, err := x.Read(cpu, x.Text.From, len(x.text))
	if err != nil {
		return fmt.Errorf("read the kernel's text: %w", err)
	}
	for i := 0; i < len(now); i++ {
		n := 0
		for i+n < len(now) && now[i+n] != x.text[i+n] && n < 16 {
			n++
		}
		if n > 0 {
			x.Steps = append(x.Steps, Step{CPU: cpu, Kind: Change, At: x.Text.From + uint64(i), Old: x.text[i : i+n],
				New: now[i : i+n]})
			i += n
		}
	}
	return x.Detach()
}
