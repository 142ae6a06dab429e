// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"reflect"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/go-cmp/cmp"
)

// table is a table of a kernel that is none: its file has a number that no process has.
func table(number int) *ebpf.Map {
	m := new(ebpf.Map)
	at := reflect.ValueOf(m).Elem().FieldByName("fd")
	file := reflect.New(at.Type().Elem())
	*(*int)(unsafe.Pointer(file.Elem().FieldByName("raw").UnsafeAddr())) = number
	*(*unsafe.Pointer)(unsafe.Pointer(at.UnsafeAddr())) = file.UnsafePointer()
	return m
}

// Where a processor without a kernel has a program's frame, an event, and the values of tables.
const (
	frameTop  = 0x10000
	eventFrom = 0x20000
	valueFrom = 0x30000

	countsTable, isolatedTable, lostTable = 101, 102, 103
)

// processor executes programs as Documentation/bpf/standardization/instruction-set.rst has it: what programs of this
// package use of that.
type processor struct {
	t      *testing.T
	memory map[uint64]byte
	r      [11]uint64
	cpu    uint32
	task   string
	pid    uint32
	room   int // for keys of counts
	values map[string]uint64
	labels map[string]int
}

func (p *processor) load(at uint64, n int) (v uint64) {
	for i := range n {
		b, ok := p.memory[at+uint64(i)]
		if !ok {
			p.t.Fatalf("%#x is read, and was never written", at)
		}
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (p *processor) store(at uint64, n int, v uint64) {
	for i := range n {
		p.memory[at+uint64(i)] = byte(v >> (8 * i))
	}
}

func (p *processor) bytes(at uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(p.load(at+uint64(i), 1))
	}
	return string(b)
}

// lookUp is where a table has the value of a key.
func (p *processor) lookUp(number, key uint64) uint64 {
	size := map[uint64]int{countsTable: keySize, isolatedTable: 4, lostTable: 4}[number]
	return p.values[fmt.Sprint(number, " ", p.bytes(key, size))]
}

// put adds a value, of so many bytes.
func (p *processor) put(number uint64, key string, n int, value uint64) {
	at := valueFrom + 16*uint64(len(p.values))
	p.values[fmt.Sprint(number, " ", key)] = at
	p.store(at, n, value)
}

func (p *processor) call(fn asm.BuiltinFunc) {
	result := uint64(0)
	switch fn {
	case asm.FnGetSmpProcessorId:
		result = uint64(p.cpu)
	case asm.FnGetCurrentPidTgid:
		result = 77<<32 | uint64(p.pid)
	case asm.FnGetCurrentComm:
		for i := range p.r[2] {
			b := byte(0)
			if i < uint64(len(p.task)) {
				b = p.task[i]
			}
			p.store(p.r[1]+i, 1, uint64(b))
		}
	case asm.FnMapLookupElem:
		result = p.lookUp(p.r[1], p.r[2])
	case asm.FnMapUpdateElem:
		if p.r[1] != countsTable || p.r[4] != uint64(ebpf.UpdateNoExist) {
			p.t.Fatalf("table %d is changed, flags %d", p.r[1], p.r[4])
		}
		if p.room--; p.room >= 0 && p.lookUp(p.r[1], p.r[2]) == 0 {
			p.put(countsTable, p.bytes(p.r[2], keySize), 8, p.load(p.r[3], 8))
		}
	default:
		p.t.Fatalf("function %d is called", fn)
	}
	for i := 1; i <= 5; i++ { // a call may leave anything there
		p.r[i] = 0xdead_dead_dead_dead
	}
	p.r[0] = result
}

// run executes a program of an event.
func (p *processor) run(code asm.Instructions) {
	p.labels = map[string]int{}
	for i := range code {
		if s := code[i].Symbol(); s != "" {
			p.labels[s] = i
		}
	}
	p.r = [11]uint64{1: eventFrom, 10: frameTop}
	maps.DeleteFunc(p.memory, func(at uint64, _ byte) bool { return at < frameTop }) // another call's frame
	for i, steps := 0, 0; ; i, steps = i+1, steps+1 {
		if i >= len(code) || steps > 1000 {
			p.t.Fatal("the program does not end")
		}
		in := &code[i]
		dst, src := &p.r[in.Dst], p.r[in.Src&0xf]
		size := in.OpCode.Size().Sizeof()
		switch in.OpCode.Class() {
		case asm.LdClass:
			*dst = uint64(in.Constant)
		case asm.LdXClass:
			*dst = p.load(src+uint64(int64(in.Offset)), size)
		case asm.StClass:
			p.store(*dst+uint64(int64(in.Offset)), size, uint64(in.Constant))
		case asm.StXClass:
			at := *dst + uint64(int64(in.Offset))
			if in.OpCode.Mode() == asm.AtomicMode {
				src += p.load(at, size)
			}
			p.store(at, size, src)
		case asm.ALU64Class:
			v := uint64(in.Constant)
			if in.OpCode.Source() == asm.RegSource {
				v = src
			}
			if in.OpCode.ALUOp() == asm.Add {
				v += *dst
			}
			*dst = v
		case asm.JumpClass:
			switch op := in.OpCode.JumpOp(); {
			case op == asm.Exit:
				return
			case op == asm.Call:
				p.call(asm.BuiltinFunc(in.Constant))
			case op == asm.JEq && *dst == uint64(in.Constant), op == asm.JNE && *dst != uint64(in.Constant):
				to, ok := p.labels[in.Reference()]
				if !ok {
					p.t.Fatalf("no place %q", in.Reference())
				}
				i = to - 1
			}
		}
	}
}

// counted are the counts by their keys.
func (p *processor) counted() map[key]uint64 {
	out := map[key]uint64{}
	for name, at := range p.values {
		var number uint64
		if _, err := fmt.Sscanf(name, "%d ", &number); err != nil || number != countsTable {
			continue
		}
		b := []byte(name[len("101 "):])
		k := key{Function: binary.LittleEndian.Uint64(b), PID: binary.LittleEndian.Uint32(b[8:]),
			Isolated: binary.LittleEndian.Uint32(b[12:]), Event: binary.LittleEndian.Uint32(b[16:]),
			No: binary.LittleEndian.Uint32(b[20:])}
		copy(k.Task[:], b[24:])
		out[k] = p.load(at, 8)
	}
	return out
}

// onProcessor is one with tables of three CPUs, of which the last is isolated, and so much room for causes.
func onProcessor(t *testing.T, room int) (*processor, *programs) {
	p := &processor{t: t, memory: map[uint64]byte{}, cpu: 2, task: "a task", pid: 12, room: room,
		values: map[string]uint64{}}
	for cpu, isolated := range []uint64{0, 0, 1} {
		p.put(isolatedTable, string(binary.LittleEndian.AppendUint32(nil, uint32(cpu))), 4, isolated)
	}
	p.put(lostTable, "\x00\x00\x00\x00", 8, 0)
	return p, &programs{counts: table(countsTable), isolated: table(isolatedTable), lost: table(lostTable)}
}

// TestProgramsCount: each event is counted by its key: the function that it names, who sends it, and whether the CPU
// that is interrupted is isolated: the one that the event names, or the one that it happens on. Timers count on
// isolated CPUs alone, and flushes of the kind that interrupts.
func TestProgramsCount(t *testing.T) {
	of := formats(t)
	task := [16]byte{'a', ' ', 't', 'a', 's', 'k'}
	for hook, c := range [][]struct {
		cpu, on uint64 // that the event names, and on which it happens
		reason  uint64
		want    key
		none    bool
	}{
		0: {{cpu: 1, on: 2, want: key{Function: 0xf1, PID: 12, Task: task}}, {cpu: 2, on: 0, want: key{Function: 0xf1,
			PID: 12, Isolated: 1, Task: task}},
			{cpu: 9, on: 0, want: key{Function: 0xf1, PID: 12, Task: task}}},
		1: {{cpu: 2, on: 1, want: key{Function: 0xf1, PID: 12, Isolated: 1, Event: 1, Task: task}}},
		2: {{on: 1, reason: remoteShootdown, want: key{Event: 2}}, {on: 2, reason: remoteShootdown, want: key{Event: 2,
			Isolated: 1}},
			{on: 1, reason: 0, none: true}, {on: 1, reason: 2, none: true}},
		3: {{on: 2, want: key{Function: 0xf1, Event: 3, Isolated: 1}}, {on: 1, none: true}},
		4: {{on: 2, want: key{Function: 0xf1, Event: 4, Isolated: 1}}, {on: 0, none: true}},
	} {
		format := of[path.Base(hooks[hook].name)]
		for _, e := range c {
			p, programs := onProcessor(t, 10)
			code, err := programs.code(hook, format)
			if err != nil {
				t.Fatal(err)
			}
			put := func(name string, size int, v uint64) {
				if at, err := field(format, name); err == nil {
					p.store(eventFrom+uint64(at), size, v)
				}
			}
			if p.cpu = uint32(e.on); hooks[hook].kind == "" {
				put("cpu", 4, e.cpu)
			}
			put("reason", 4, e.reason)
			put(hooks[hook].function, 8, 0xf1)
			p.run(code)
			want := map[key]uint64{e.want: 1}
			if e.none {
				want = map[key]uint64{}
			}
			if d := cmp.Diff(want, p.counted()); d != "" {
				t.Errorf("%s, %+v: %s", hooks[hook].name, e, d)
			}
			p.run(code)
			if n := p.counted()[e.want]; n != 2 && !e.none {
				t.Errorf("%s a second time: %d", hooks[hook].name, n)
			}
		}
	}
}

// TestProgramsWithoutRoom: a sender that there is no room for is counted with all of its name, and where there is none
// for these, as lost; what has room goes on to be counted.
func TestProgramsWithoutRoom(t *testing.T) {
	format := formats(t)["csd_queue_cpu"]
	p, programs := onProcessor(t, 1)
	code, err := programs.code(0, format)
	if err != nil {
		t.Fatal(err)
	}
	at, err := field(format, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	p.store(eventFrom+uint64(at), 4, 0)
	if at, err = field(format, "func"); err != nil {
		t.Fatal(err)
	}
	p.store(eventFrom+uint64(at), 8, 0xf1)
	lost := func() uint64 { return p.load(p.values[fmt.Sprint(lostTable, " \x00\x00\x00\x00")], 8) }
	task := [16]byte{'a', ' ', 't', 'a', 's', 'k'}
	first, all := key{Function: 0xf1, PID: 12, Task: task}, key{Function: 0xf1, PID: noPID, Task: task}
	p.run(code) // the room of the table is used up
	p.pid = 13
	p.run(code)
	if d := cmp.Diff(map[key]uint64{first: 1}, p.counted()); d != "" || lost() != 1 {
		t.Errorf("%s, %d lost", d, lost())
	}
	p.room = 2 // one is used by the sender's own
	p.pid = 14
	p.run(code)
	own := first
	own.PID = 14
	if d := cmp.Diff(map[key]uint64{first: 1, own: 1}, p.counted()); d != "" {
		t.Error(d)
	}
	p.put(countsTable, string(binary.LittleEndian.AppendUint64(nil,
		0xf1))+"\xff\xff\xff\xff"+"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"+
		string(task[:]), 8, 40)
	p.room, p.pid = 0, 15
	p.run(code)
	if got := p.counted(); got[all] != 41 || len(got) != 3 || lost() != 1 {
		t.Errorf("all of the name: %v, %d lost", got, lost())
	}
	p.pid = 12
	p.run(code)
	if got := p.counted(); got[first] != 2 {
		t.Errorf("%v", got)
	}
}
