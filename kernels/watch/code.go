// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Where a program keeps what it hands to the kernel, below its frame: a key, a zero, and a CPU.
const (
	keySize = 40
	keyAt   = -keySize
	zeroAt  = keyAt - 8
	cpuAt   = zeroAt - 8

	pidAt, isolatedAt, eventAt, taskAt = keyAt + 8, keyAt + 12, keyAt + 16, keyAt + 24
)

// remoteShootdown is TLB_REMOTE_SHOOTDOWN, the reason of a flush that interrupts (include/linux/mm_types.h).
const remoteShootdown = 1

// code is the program of an event, by the event's format. It makes the key, finds its count or begins one, and adds 1;
// when the table is full, to the count of all senders of that name, and when there is no such, to what is lost.
func (p *programs) code(hook int, format string) (ins asm.Instructions, err error) {
	e := hooks[hook]
	at := func(name string) (offset int16) {
		if err == nil {
			offset, err = field(format, name)
		}
		return offset
	}
	add := func(more ...asm.Instruction) { ins = append(ins, more...) }
	add(asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R0, 0)) // R6: the event
	for offset := int16(cpuAt); offset < 0; offset += 8 {
		add(asm.StoreMem(asm.RFP, offset, asm.R0, asm.DWord))
	}
	// The CPU that is interrupted, and whether it is isolated.
	if e.kind == "" {
		add(asm.LoadMem(asm.R0, asm.R6, at("cpu"), asm.Word))
	} else {
		add(asm.FnGetSmpProcessorId.Call())
	}
	add(asm.StoreMem(asm.RFP, cpuAt, asm.R0, asm.Word))
	add(lookup(p.isolated, cpuAt)...)
	add(asm.JEq.Imm(asm.R0, 0, "known"), asm.LoadMem(asm.R0, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.RFP, isolatedAt, asm.R0, asm.Word).WithSymbol("known"))
	switch e.kind {
	case "timer":
		add(asm.JEq.Imm(asm.R0, 0, "out"))
	case flushes.kind:
		add(asm.LoadMem(asm.R1, asm.R6, at("reason"), asm.Word), asm.JNE.Imm(asm.R1, remoteShootdown, "out"))
	}
	// What it is asked for, and by whom.
	add(asm.StoreImm(asm.RFP, eventAt, int64(hook), asm.Word))
	if e.function != "" {
		add(asm.LoadMem(asm.R1, asm.R6, at(e.function), asm.DWord), asm.StoreMem(asm.RFP, keyAt, asm.R1, asm.DWord))
	}
	if e.kind == "" {
		add(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.RFP, pidAt, asm.R0, asm.Word),
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, taskAt), asm.Mov.Imm(asm.R2, 16), asm.FnGetCurrentComm.Call())
	}
	add(p.find()...)
	add(asm.StoreImm(asm.RFP, pidAt, noPID, asm.Word))
	add(p.find()...)
	add(asm.StoreImm(asm.RFP, cpuAt, 0, asm.Word))
	add(lookup(p.lost, cpuAt)...)
	add(asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1).WithSymbol("count"), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())
	return ins, err
}

// find goes on at count with the key's count, which it begins where there is none; past itself where there is no room.
func (p *programs) find() asm.Instructions {
	ins := append(lookup(p.counts, keyAt), asm.JNE.Imm(asm.R0, 0, "count"),
		asm.LoadMapPtr(asm.R1, p.counts.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, keyAt),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, zeroAt),
		asm.Mov.Imm(asm.R4, int32(ebpf.UpdateNoExist)), // another CPU may begin it, too
		asm.FnMapUpdateElem.Call())
	return append(append(ins, lookup(p.counts, keyAt)...), asm.JNE.Imm(asm.R0, 0, "count"))
}

// lookup leaves in R0 where a table's value is, by a key that is kept below the frame; 0 where there is none.
func lookup(m *ebpf.Map, at int32) asm.Instructions {
	return asm.Instructions{asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, at),
		asm.FnMapLookupElem.Call()}
}
