// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
)

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
		{live.Broken, did.Stale, cpus.StaleAfterCompletion, "the update had promised that nobody is called, and the call " +
			"reached the tracer"},
	} {
		if k.n == 0 {
			continue
		}
		f, any := c.Found(k.kind)
		if !any {
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
