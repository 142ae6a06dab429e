// SPDX-License-Identifier: Apache-2.0

package record

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/gdb/gdbtest"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// The fake kernel's functions and data, of riscv64.
const (
	begins   = 0xffffffff80001000 // arch_ftrace_update_code
	stores   = 0xffffffff80002000 // __patch_insn_write
	flushes  = 0xffffffff80003000 // flush_icache_all
	firmware = 0xffffffff80004000 // sbi_remote_fence_i
	answers  = 0xffffffff80005000 // ipi_remote_fence_i
	key      = 0xffffffff80006000 // riscv_sbi_for_rfence
	site     = 0xffffffff80007000
	back     = 0xffffffff80008000 // in another function: where all return to
)

// machine is a gdb server of a machine that runs as it is told: CPU 0's and 1's registers, and memory. Whenever it is
// let go, the next of its stops comes; behind the last one it ends.
type machine struct {
	gdbtest.Machine
	regs    [2][33]uint64 // x0 to x31, and pc
	memory  map[uint64]byte
	stops   []func() string
	done    []string // what changed it, and let it go
	refuses string   // how requests begin that it cannot do
	late    int      // so many steps end before they are made
}

func (m *machine) put(at uint64, b ...byte) {
	for i, c := range b {
		m.memory[at+uint64(i)] = c
	}
}

func (m *machine) answer(asked string) string {
	if strings.ContainsRune("ZzDGv", rune(asked[0])) {
		m.done = append(m.done, asked[:min(len(asked), 24)])
	}
	switch {
	case m.refuses != "" && strings.HasPrefix(asked, m.refuses):
		return "E01"
	case asked == "vCont;c" && len(m.stops) == 0:
		return "W00"
	case asked == "vCont;c":
		next := m.stops[0]
		m.stops = m.stops[1:]
		return next()
	case m.late > 0 && strings.HasPrefix(asked, "vCont;s:"):
		m.late--
	case strings.HasPrefix(asked, "vCont;s:"):
		m.regs[asked[len("vCont;s:")]-'1'][32] += 4
	}
	return m.Answer(asked)
}

func (m *machine) serve(t *testing.T, arch string) *gdb.Client {
	c, _, err := gdb.Dial(t.Context(), "unix", m.listen(t), gdb.LayoutOf(arch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// listen waits for one client. Memory that nothing was put into is zero.
func (m *machine) listen(t *testing.T) (socket string) {
	m.Registers = func(cpu int) (b []byte) {
		for _, r := range m.regs[cpu] {
			b = binary.LittleEndian.AppendUint64(b, r)
		}
		return b
	}
	m.Memory = func(at uint64) (byte, bool) { return m.memory[at], true }
	return gdbtest.Listen(t, func(asked string) (string, bool) { return m.answer(asked), true })
}

// jal is a call of riscv64.
func jal(from, to uint64) []byte {
	d := uint32(to - from)
	return binary.LittleEndian.AppendUint32(nil, d>>20&1<<31|d>>1&0x3ff<<21|d>>11&1<<20|d>>12&0xff<<12|1<<7|0x6f)
}

// recorderOf records a machine of the fake kernel.
func recorderOf(t *testing.T) (*recorder, *machine) {
	text := make([]byte, 0x8000)
	copy(text[flushes-begins:], jal(flushes, firmware))
	var symbols []vmlinux.Symbol
	for name, at := range map[string]uint64{"arch_ftrace_update_code": begins, "__patch_insn_write": stores,
		"flush_icache_all": flushes, "sbi_remote_fence_i": firmware, "ipi_remote_fence_i": answers,
		"riscv_sbi_for_rfence": key, "a": site, "b": back} {
		symbols = append(symbols, vmlinux.Symbol{Addr: at, Type: 'T', Name: name})
	}
	k := image.Of(&vmlinux.Kernel{Memory: &vmlinux.Memory{Arch: vmlinux.OfMachine(elf.EM_RISCV),
		Segments: []vmlinux.Segment{{Addr: begins, Data: text}}}, Symbols: vmlinux.NewSymbols("", symbols)})
	m := &machine{memory: map[uint64]byte{}}
	x := &recorder{Recording: &Recording{Arch: "riscv64", CPUs: 2}, Client: m.serve(t, "riscv64"), kernel: k,
		at: map[uint64]Watch{}, returns: map[uint64][]pending{},
		counts: map[uint64]Kind{}}
	for _, w := range []Watch{{Kind: Begin, Function: "arch_ftrace_update_code", At: begins},
		{Kind: Store, Function: "__patch_insn_write", At: stores, args: []string{at, from, length}},
		{Kind: Round, Function: "flush_icache_all", At: flushes}, {Kind: Answer, Function: "ipi_remote_fence_i", At: answers}} {
		x.at[w.At] = w
	}
	return x, m
}

// stop has a CPU come to a place, on a stack, with arguments.
func (x *recorder) stop(t *testing.T, m *machine, cpu int, pc, sp uint64, args ...uint64) {
	t.Helper()
	m.regs[cpu][1], m.regs[cpu][2], m.regs[cpu][32] = back, sp, pc
	copy(m.regs[cpu][10:], args)
	regs, err := x.Registers(cpu)
	if err == nil {
		err = x.stopped(gdb.Stop{CPU: cpu}, regs)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *Recording) told() (out []string) {
	for i := range r.Steps {
		out = append(out, r.Steps[i].String())
	}
	return out
}

// TestMoved: a task that has begun something is followed to another CPU, by its stack; another task there is another one.
func TestMoved(t *testing.T) {
	x, m := recorderOf(t)
	const stack, other = 0xff20000000004000, 0xff20000000008000
	m.put(other, 0x13, 0, 0, 0)
	x.stop(t, m, 0, begins, stack+0x1000)
	x.stop(t, m, 1, answers, other+0x800)
	x.stop(t, m, 1, stores, stack+0x800, site, other, 4)
	x.stop(t, m, 0, answers, other+0x800)
	x.stop(t, m, 1, back, stack+0x1000)
	want := []string{"CPU 0: begin arch_ftrace_update_code", "CPU 1: answer ipi_remote_fence_i", "CPU 1: move 0",
		"CPU 1: store 0xffffffff80007000 13 00 00 00 <- 00 00 00 00 b", "CPU 0: answer ipi_remote_fence_i",
		"CPU 1: end arch_ftrace_update_code"}
	if d := cmp.Diff(want, x.told()); d != "" {
		t.Error(d)
	}
}

// TestFirmware: CPUs of riscv64 answer remote fences themselves where the kernel does not ask the firmware, as with an
// IMSIC.
func TestFirmware(t *testing.T) {
	for enabled, want := range map[byte]string{1: Firmware, 0: "ipi_remote_fence_i"} {
		x, m := recorderOf(t)
		m.put(key, enabled)
		x.stop(t, m, 0, flushes, 0xff20000000004000)
		if got := x.Steps[0].Name; got != want {
			t.Errorf("%d: %s answers, want %s", enabled, got, want)
		}
	}
}
