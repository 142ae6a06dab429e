// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Change is bytes of a kernel's code that are to be others.
type Change struct {
	At       uint64
	Old, New []byte
	What     string // for people
}

// queuers compare the number of queued patches with the size of the vector, over the releases.
var queuers = []string{"smp_text_poke_batch_add", "text_poke_queue", "text_poke_flush"}

// WithSlots is the change of one immediate after which a batch takes n patches. The code is
// executed with it: a change that does something else is none.
func (k *Kernel) WithSlots(n int) (Change, error) {
	now, how := k.Slots()
	room, _ := k.room()
	switch {
	case now == 0 || now == Unlimited:
		return Change{}, fmt.Errorf("%s: no immediate says how many slots there are: %s", k.File, how)
	case n < 1 || n == now || n > max(room, now):
		return Change{}, fmt.Errorf("%s: %d slots: want another number than %d, from 1 to the %d that the vector has room for",
			k.File, n, now, max(room, now))
	}
	old, to := le.AppendUint32(nil, uint32(now)), le.AppendUint32(nil, uint32(n))
	for _, f := range queuers {
		for _, c := range k.bodies(f) {
			for i := 0; i+4 <= len(c.bytes); i++ {
				change := Change{c.at + uint64(i), old, to, fmt.Sprintf("%s: %d slots, were %d", k.Name(c.at+uint64(i)), n, now)}
				if bytes.HasPrefix(c.bytes[i:], old) && k.with(change).slots() == n {
					return change, nil
				}
			}
		}
	}
	return Change{}, fmt.Errorf("%s: no immediate in %s decides the number of slots", k.File, strings.Join(queuers, ", "))
}

// slots is how many patches the code takes when it is executed; 0 where it cannot be.
func (k *Kernel) slots() int {
	b, err := k.RunBatch()
	if err != nil {
		return 0
	}
	return b.Slots
}

// nop5 takes the place of a call on x86-64.
const nop5 = "\x0f\x1f\x44\x00\x00"

// WithoutCall is the change that drops the first direct call from one function to another.
func (k *Kernel) WithoutCall(from, to string) (Change, error) {
	if k.Arch.Name != x86_64.Name {
		return Change{}, fmt.Errorf("%s: calls are dropped from kernels of %s alone", k.File, x86_64.Name)
	}
	for _, c := range k.bodies(from) {
		for i := 0; i+5 <= len(c.bytes); i++ {
			if c.bytes[i] != 0xe8 {
				continue
			}
			callee := c.at + uint64(i+5) + signed(le.Uint32(c.bytes[i+1:]), 32)
			for _, y := range k.Starting(callee) {
				if vmlinux.Plain(y.Name) == to {
					at := c.at + uint64(i)
					return Change{at, bytes.Clone(c.bytes[i : i+5]), []byte(nop5), fmt.Sprintf("%s: no call of %s", k.Name(at), to)}, nil
				}
			}
		}
	}
	return Change{}, fmt.Errorf("%s: %s does not call %s directly", k.File, from, to)
}

// with is the kernel with a change.
func (k *Kernel) with(c Change) *Kernel {
	changed := *k
	m := *k.Memory
	m.Segments = nil
	for _, s := range k.Segments {
		if c.At >= s.Addr && c.At-s.Addr+uint64(len(c.New)) <= uint64(len(s.Data)) {
			s.Data = bytes.Clone(s.Data)
			copy(s.Data[c.At-s.Addr:], c.New)
		}
		m.Segments = append(m.Segments, s)
	}
	linked := *k.Kernel
	linked.Memory = &m
	changed.Kernel, changed.batchRan = &linked, false
	return &changed
}

// Apply makes a change in the ELF file or raw image of a kernel ([vmlinux.Inside]).
func (k *Kernel) Apply(inside []byte, c Change) ([]byte, error) {
	at, err := k.offset(inside, c.At)
	if err != nil {
		return nil, err
	}
	if at > uint64(len(inside)) || !bytes.HasPrefix(inside[at:], c.Old) {
		return nil, fmt.Errorf("%s: %#x does not hold % x", k.File, c.At, c.Old)
	}
	out := bytes.Clone(inside)
	copy(out[at:], c.New)
	return out, nil
}

// offset is where an address lies in a file.
func (k *Kernel) offset(inside []byte, addr uint64) (uint64, error) {
	if !bytes.HasPrefix(inside, []byte(elf.ELFMAG)) {
		return addr - k.Segments[0].Addr, nil
	}
	f, err := elf.NewFile(bytes.NewReader(inside))
	if err != nil {
		return 0, vmlinux.InFile(k.File, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return p.Off + addr - p.Vaddr, nil
		}
	}
	return 0, fmt.Errorf("%s: no segment holds %#x", k.File, addr)
}
