// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/kernels/gdb"
)

// stopped makes steps of where a CPU has stopped.
func (x *recorder) stopped(stop gdb.Stop, regs gdb.Registers) error {
	x.moved(stop.CPU, regs.SP())
	if len(x.Steps) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	loads := stop.Watched != 0 && stop.Watched == x.early.load.variable
	if loads && x.early.load.has(regs.PC()) {
		return x.stores(stop.CPU, regs)
	}
	for cpu := range x.CPUs {
		if err := x.missed(cpu, stop.CPU); err != nil {
			return err
		}
	}
	switch {
	case loads: // another function's
		return nil
	case stop.Watched != 0:
		return x.referred(stop.CPU, stop.Watched, regs.PC())
	}
	if err := x.returned(regs); err != nil {
		return err
	}
	if w, ok := x.at[regs.PC()]; ok {
		return x.entered(stop.CPU, w, regs)
	}
	return nil
}

// moved tells whether a task has moved to another CPU inside a watched function. A stack belongs to one task.
func (x *recorder) moved(cpu int, sp uint64) {
	from := cpu
	for _, list := range x.returns {
		for i := range list {
			if p := &list[i]; p.sp>>stackBits == sp>>stackBits {
				from, p.cpu = p.cpu, cpu
			}
		}
	}
	if from != cpu {
		x.Steps = append(x.Steps, Step{CPU: cpu, Kind: Move, Name: fmt.Sprint(from)})
	}
}

// missed looks at a CPU while another one has the machine stopped: of two that stop for what is watched the server tells
// of one.
func (x *recorder) missed(cpu, by int) error {
	if cpu == by || x.early.At == 0 && len(x.refs) == 0 {
		return nil
	}
	regs, err := x.Registers(cpu)
	if err != nil {
		return err
	}
	for at, c := range x.refs {
		p := x.handler(cpu)
		if p != nil && !p.took && x.counts[regs.PC()] == Take && (c.name == "" || c.name == fmt.Sprint(cpu)) {
			return x.referred(cpu, at, regs.PC())
		}
	}
	return x.stores(cpu, regs)
}

// stores is a CPU that may be behind the load of what stores. The server may tell of one again that was missed.
func (x *recorder) stores(cpu int, regs gdb.Registers) error {
	now := [4]uint64{uint64(cpu), regs.SP(), regs.Arg(1), regs.Arg(2)}
	if !x.early.load.has(regs.PC()) || now == x.stored {
		return nil
	}
	x.stored = now
	return x.entered(cpu, x.early, regs)
}

// entered is a CPU that has entered a watched function: at its first instruction, or behind its load.
func (x *recorder) entered(cpu int, w Watch, regs gdb.Registers) error {
	s := Step{CPU: cpu, Kind: w.Kind, Name: w.Function}
	back := pending{cpu: cpu}
	behind, err := x.caller(cpu, regs, w, &back)
	if err != nil {
		return err
	}
	switch w.Kind {
	case Begin:
		back.kind, back.name = End, w.Function
	case Store:
		if y, _, ok := x.kernel.Symbol(behind); ok {
			s.Name = y.Name
		}
		err = x.store(&s, w, regs)
	case Round:
		back.kind = Done
		if s.Name, err = x.answers(cpu, w, regs); s.Name == "" {
			return err // it is about something else
		}
	case Trap:
		back.kind, back.frame = Leave, regs.Arg(0)
		var ip uint64
		if ip, err = x.Word(cpu, back.frame+trapIP); err == nil {
			s.At, s.Name = ip-1, ""
			back.site = s.At
		}
	case Stop:
		back.kind = Resume
		s.Name = x.kernel.Name(regs.Arg(0))
		back.name = s.Name
	case Grace:
		back.kind, back.name = Elapsed, w.Function
	case Stand:
		back.kind, s.Name = Go, ""
	}
	if err != nil || w.Kind == Store && len(s.New) == 0 {
		return err
	}
	x.Steps = append(x.Steps, s)
	if back.kind == "" {
		return nil
	}
	if len(x.returns[behind]) == 0 && x.at[behind].Function == "" {
		err = x.Insert(gdb.Breakpoint(behind))
	}
	x.returns[behind] = append(x.returns[behind], back)
	return err
}

// trapIP is where struct pt_regs of x86-64 has the instruction pointer (arch/x86/include/asm/ptrace.h). It lies behind
// the breakpoint, which has one byte.
const trapIP = 16 * 8

// caller is where a watched function returns to.
func (x *recorder) caller(cpu int, regs gdb.Registers, w Watch, p *pending) (uint64, error) {
	p.sp = regs.SP() + w.load.grown
	if link, ok := regs.Link(); ok {
		return link, nil
	}
	p.sp += 8
	return x.Word(cpu, p.sp-8)
}

// answers is the function by which CPUs answer a round; "" where it is no round of patchers, and firmware where no
// code of the kernel answers.
func (x *recorder) answers(cpu int, w Watch, regs gdb.Registers) (string, error) {
	for i, a := range w.args {
		if a == called {
			return x.at[regs.Arg(i)].Function, nil
		}
	}
	if x.kernel.Calls(w.Function)["sbi_remote_fence_i"] > 0 {
		// CPUs that interrupt each other without the firmware, as with an IMSIC, leave a static key off
		// (riscv_use_sbi_for_rfence, arch/riscv/include/asm/sbi.h, Linux 6.12 and 7.2).
		key, ok := x.kernel.Addr("riscv_sbi_for_rfence")
		if !ok {
			return Firmware, nil
		}
		if enabled, err := x.Word(cpu, key); err != nil || uint32(enabled) != 0 {
			return Firmware, err
		}
	}
	for _, of := range x.at {
		if of.Kind == Answer {
			return of.Function, nil
		}
	}
	return Firmware, nil
}

// Firmware answers rounds without the kernel: its answers are not seen.
const Firmware = "firmware"

// store reads what is about to be stored.
func (x *recorder) store(s *Step, w Watch, regs gdb.Registers) (err error) {
	n, source, repeat := 0, uint64(0), 0
	for i, a := range w.args {
		v := regs.Arg(i)
		switch a {
		case at:
			s.At = v
		case from:
			source = v
		case length:
			n = int(min(v, 1<<20))
		case word:
			n, s.New = 4, binary.LittleEndian.AppendUint32(nil, uint32(v))
		case long:
			n, s.New = 8, binary.LittleEndian.AppendUint64(nil, v)
		case fill:
			repeat, s.New = 1, []byte{byte(v)}
		case copier:
			// It repeats a byte where instructions begin anywhere, else a word (arch/arm64/kernel/patching.c, Linux 6.12).
			if set, ok := x.kernel.Addr("text_poke_memset"); ok && set == v {
				repeat = map[bool]int{false: 1, true: 4}[x.Words()]
			}
		}
	}
	if repeat > 0 && s.New == nil {
		s.New, err = x.Read(s.CPU, source, repeat)
	}
	if err == nil && repeat > 0 {
		s.New = bytes.Repeat(s.New, n/repeat)
	} else if err == nil && s.New == nil {
		s.New, err = x.Read(s.CPU, source, n)
	}
	if err != nil {
		return err
	}
	if s.Old, err = x.Read(s.CPU, s.At, len(s.New)); err != nil {
		return err
	}
	if i, ok := x.offset(s.At, len(s.New)); ok {
		copy(x.text[i:], s.New)
	}
	return nil
}

// offset is where an address lies in the kernel's text.
func (x *recorder) offset(at uint64, n int) (int, bool) {
	return int(at - x.Text.From), at >= x.Text.From && at+uint64(n) <= x.Text.From+uint64(len(x.text))
}

// returned is a CPU that may have come back from watched functions.
func (x *recorder) returned(regs gdb.Registers) error {
	pc := regs.PC()
	list := x.returns[pc]
	if list == nil {
		return nil
	}
	i := slices.IndexFunc(list, func(p pending) bool { return p.sp == regs.SP() })
	if i < 0 {
		return nil
	}
	p := list[i]
	s := Step{CPU: p.cpu, Kind: p.kind, Name: p.name}
	if p.kind == Leave {
		if err := x.acted(&s, p, regs); err != nil {
			return err
		}
	}
	x.Steps = append(x.Steps, s)
	if x.returns[pc] = slices.Delete(list, i, i+1); len(x.returns[pc]) > 0 {
		return nil
	}
	delete(x.returns, pc)
	if x.at[pc].Function != "" {
		return nil
	}
	return x.Remove(gdb.Breakpoint(pc))
}

// acted is what a breakpoint's handler has done: it returns 0 where the breakpoint is not its own.
func (x *recorder) acted(s *Step, p pending, regs gdb.Registers) error {
	result, _ := regs.Get("rax")
	if s.At = p.site; uint32(result) == 0 {
		s.Kind = Pass
		return nil
	}
	var err error
	s.At, err = x.Word(s.CPU, p.frame+trapIP)
	return err
}
