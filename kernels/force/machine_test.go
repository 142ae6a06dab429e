// SPDX-License-Identifier: Apache-2.0

package force

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/gdb/gdbtest"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// The fake kernel's functions and variables.
const (
	fAt      = 0xffffffff81001000
	gAt      = 0xffffffff81002000
	onlineAt = 0xffffffff82000000 // __cpu_online_mask
	mutexAt  = 0xffffffff82000100
	wordAt   = 0xffffffff82000200
	baseAt   = 0xffffffff82000300 // page_offset_base
	tablesAt = 0xffffffff82001000 // init_top_pgt
	siteAt   = 0xffffffff81003004
)

// Registers of x86-64 as a gdb server sends them.
const (
	rdi, rsi, rdx, rsp, rip = 5, 4, 3, 7, 16
)

// server is a gdb server of a machine that runs as it is told: whenever it is let go, the next of its stops comes, or
// what the caller does about it.
type server struct {
	gdbtest.Machine
	regs   [2][17]uint64
	flags  [2]uint32
	memory map[uint64]byte
	stops  []string // "" for a machine that goes on until it is interrupted
	asked  []string
	moves  uint64 // the stack that CPU 1 has once it has stopped for the first time; 0 for its own
}

func (s *server) word(at, v uint64) {
	for i, b := range binary.LittleEndian.AppendUint64(nil, v) {
		s.memory[at+uint64(i)] = b
	}
}

func (s *server) answer(asked string) (string, bool) {
	if !strings.ContainsRune("mgH", rune(asked[0])) {
		s.asked = append(s.asked, asked)
	}
	if !strings.HasPrefix(asked, "vCont;c") {
		return s.Answer(asked), true
	}
	if len(s.stops) == 0 || s.stops[0] == "" {
		s.stops = s.stops[min(1, len(s.stops)):]
		return "", false
	}
	stop := s.stops[0]
	s.stops = s.stops[1:]
	if was := s.moves; was != 0 && asked == "vCont;c:2" {
		s.regs[1][rsp] = was
	}
	return stop, true
}

// stands is the machine behind a server, of a fake kernel.
func stands(t *testing.T) (*machine, *server) {
	t.Helper()
	k, s, socket := serves(t)
	client, _, err := gdb.Dial(t.Context(), "unix", socket, gdb.LayoutOf(arch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s.asked = nil
	return &machine{Client: client, image: k, tell: func(string) {}}, s
}

// serves is a server and the fake kernel of its machine.
func serves(t *testing.T) (k *image.Kernel, s *server, socket string) {
	var symbols []vmlinux.Symbol
	for name, at := range map[string]uint64{"f": fAt, "g": gAt, "__cpu_online_mask": onlineAt, "text_mutex": mutexAt,
		"a_word":           wordAt,
		"page_offset_base": baseAt, "init_top_pgt": tablesAt, "traced": siteAt - 4, "untraced": siteAt + 64,
		"at_once": siteAt - 100, "too_early": siteAt - 116} {
		symbols = append(symbols, vmlinux.Symbol{Addr: at, Type: 'T', Name: name})
	}
	slices.SortFunc(symbols, func(a, b vmlinux.Symbol) int { return int(int64(a.Addr - b.Addr)) })
	k = image.Of(&vmlinux.Kernel{Memory: &vmlinux.Memory{Arch: vmlinux.OfMachine(elf.EM_X86_64)},
		Symbols: vmlinux.NewSymbols("", symbols)})
	k.Release = "7.2.0"
	k.Records = &records.Kernel{Sites: []uint64{siteAt - 100, siteAt, siteAt + 8}}
	s = &server{memory: map[uint64]byte{}}
	s.Registers = func(cpu int) (b []byte) {
		for _, r := range s.regs[cpu] {
			b = binary.LittleEndian.AppendUint64(b, r)
		}
		return binary.LittleEndian.AppendUint32(b, s.flags[cpu])
	}
	s.Memory = func(at uint64) (byte, bool) { b, ok := s.memory[at]; return b, ok }
	return k, s, gdbtest.Listen(t, s.answer)
}

// asking is whether conditions hold for a CPU.
func asking(t *testing.T, m *machine, cpu int, text string) (bool, error) {
	t.Helper()
	w := words(strings.Fields(text))
	when, err := w.conditions()
	if err != nil {
		t.Fatal(err)
	}
	return m.all(when, cpu)
}

// TestConditions: what each asks of a machine that stands still.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		text   string
		change func(m *machine, s *server)
		want   bool
	}{
		{"cpu 1", nil, true}, {"cpu 0", nil, false}, {"cpu 1 and cpu 0", nil, false}, {"cpu 1 and cpu 1", nil, true},
		{"online 1", func(_ *machine, s *server) { s.word(onlineAt, 2) }, true}, {"online 0", func(_ *machine,
			s *server) {
			s.word(onlineAt, 2)
		}, false},
		{"offline 0", func(_ *machine, s *server) { s.word(onlineAt, 2) }, true}, {"offline 1", func(_ *machine,
			s *server) {
			s.word(onlineAt, 2)
		}, false},
		{"interruptible 0", func(_ *machine, s *server) { s.flags[0] = 0x200 }, true}, {"interruptible 0",
			func(_ *machine, s *server) { s.flags[0] = 0xdff }, false},
		{"from f", func(_ *machine, s *server) { s.regs[1][rsp] = 0x5000; s.word(0x5000, fAt+7) }, true},
		{"from g", func(_ *machine, s *server) { s.regs[1][rsp] = 0x5000; s.word(0x5000, fAt+7) }, false},
		{"from f", func(_ *machine, s *server) { s.regs[1][rsp] = 0x5000; s.word(0x5000, 7) }, false},
		{"given a_word", func(_ *machine, s *server) { s.regs[1][rdi] = wordAt }, true},
		{"given a_word", func(_ *machine, s *server) { s.regs[1][rdi] = wordAt + 8 }, false},
		{"copies 9 and used", func(_ *machine, s *server) {
			s.regs[1][rdi], s.regs[1][rdx] = wordAt-6, 9
			s.word(wordAt, 1<<32)
		}, true},
		{"copies 9", func(_ *machine, s *server) { s.regs[1][rdi], s.regs[1][rdx] = wordAt-6, 8 }, false},
		{"copies 15", func(_ *machine, s *server) { s.regs[1][rdx] = 15 }, true},
		{"listed a_word", func(_ *machine, s *server) { s.word(wordAt, wordAt) }, false},
		{"listed a_word", func(_ *machine, s *server) { s.word(wordAt, wordAt+8) }, true},
		{"zero a_word", func(_ *machine, s *server) { s.word(wordAt, 0) }, true}, {"zero a_word", func(_ *machine,
			s *server) {
			s.word(wordAt, 1<<40)
		}, false},
		{"set a_word", func(_ *machine, s *server) { s.word(wordAt, 1<<40) }, true}, {"set a_word", func(_ *machine,
			s *server) {
			s.word(wordAt, 0)
		}, false},
		{"points a_word and used", func(_ *machine, s *server) { s.word(wordAt, 0x7000); s.word(0x7008, 1<<32) }, true},
		{"points a_word and used", func(_ *machine, s *server) { s.word(wordAt, 0x7000); s.word(0x7008, 1<<32-1) }, false},
		{"points a_word", func(_ *machine, s *server) { s.word(wordAt, 0) }, false},
		{"waited-for text_mutex", func(_ *machine, s *server) { s.word(mutexAt, 0x1001); s.word(mutexAt+8, 0) }, true},
		{"waited-for text_mutex", func(_ *machine, s *server) { s.word(mutexAt, 0x1000); s.word(mutexAt+8, 1<<32) }, true},
		{"waited-for text_mutex", func(_ *machine, s *server) { s.word(mutexAt, 0x1000); s.word(mutexAt+8, 1<<32-1) }, false},
		{"breakpoint", func(m *machine, s *server) { m.site = siteAt; s.memory[siteAt] = 0xcc }, true},
		{"breakpoint", func(m *machine, s *server) { m.site = siteAt; s.memory[siteAt] = 0xe8 }, false},
		{"clear", func(m *machine, s *server) { m.site = siteAt; s.memory[siteAt] = 0xe8 }, true},
		{"clear", func(m *machine, s *server) { m.site = siteAt; s.memory[siteAt] = 0xcc }, false},
		{"tail and breakpoint", func(_ *machine, s *server) { s.regs[1][rsi] = siteAt + 1; s.memory[siteAt] = 0xcc }, true},
		{"tail", func(_ *machine, s *server) { s.regs[1][rsi] = siteAt + 1; s.memory[siteAt] = 0x90 }, false},
		{"tail", func(_ *machine, s *server) { s.regs[1][rsi] = 0x9000 }, false}, // nothing is mapped there
		{"large", func(m *machine, s *server) { m.entry = 0x6000; s.word(0x6000, present|largeBit) }, true},
		{"large", func(m *machine, s *server) { m.entry = 0x6000; s.word(0x6000, present) }, false},
		{"large", func(m *machine, s *server) { m.entry = 0x6000; s.word(0x6000, largeBit) }, false},
		{"no-page", func(m *machine, s *server) { m.slot = 0x6000; s.word(0x6000, 6) }, true},
		{"no-page", func(m *machine, s *server) { m.slot = 0x6000; s.word(0x6000, 5) }, false},
	} {
		m, s := stands(t)
		if c.change != nil {
			c.change(m, s)
		}
		if got, err := asking(t, m, 1, c.text); got != c.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"online 1", "from f", "set nobody", "set a_word", "given nobody", "listed nobody", "listed a_word", "waited-for nobody",
		"waited-for text_mutex", "breakpoint", "clear",
		"no-page", "large", "used", "split 0", "writable"} {
		m, _ := stands(t) // nothing is mapped
		if got, err := asking(t, m, 1, text); got || err == nil {
			t.Errorf("%s of what cannot be read: %v, %v", text, got, err)
		}
	}
}

// TestPageTables: an argument is looked up through four levels of tables or five, as the map of all memory lies; a
// large page is not split, and an entry that is not there ends the way.
func TestPageTables(t *testing.T) {
	const direct4, direct5, page = 0xffff888000000000, 0xff11000000000000, 0xffffffffc0a03123
	index := func(level int) uint64 { return page >> (12 + 9*level) & 511 * 8 }
	for name, c := range map[string]struct {
		base   uint64
		levels int
		change func(s *server, entry, slot uint64)
		want   bool
	}{
		"four":           {direct4, 4, func(*server, uint64, uint64) {}, true},
		"five":           {direct5, 5, func(*server, uint64, uint64) {}, true},
		"a large page":   {direct4, 4, func(s *server, entry, _ uint64) { s.word(entry, 0x3000|present|largeBit) }, false},
		"none":           {direct4, 4, func(s *server, entry, _ uint64) { s.word(entry, 0x3000) }, false},
		"no page":        {direct4, 4, func(s *server, _, slot uint64) { s.word(slot, 0x9000) }, false},
		"bits beside it": {direct4, 4, func(s *server, _, slot uint64) { s.word(slot, 1<<63|0x9000|present) }, true},
	} {
		m, s := stands(t)
		s.word(baseAt, c.base)
		table, entry, slot := uint64(tablesAt), uint64(0), uint64(0)
		for level := c.levels - 1; level >= 0; level-- {
			at := table + index(level)
			next := uint64(0x10000 * (level + 1))
			s.word(at, 1<<63|next|present)
			switch level {
			case 1:
				entry = at
			case 0:
				slot = at
			}
			table = c.base + next
		}
		c.change(s, entry, slot)
		s.regs[1][rsi] = page
		got, err := asking(t, m, 1, "split 1")
		if got != c.want || err != nil || m.entry != entry || c.want && m.slot != slot {
			t.Errorf("%s: %v, %v, entry %#x, slot %#x, want %#x and %#x", name, got, err, m.entry, m.slot, entry, slot)
		}
		if s.word(slot, 6); c.want {
			if got, err := asking(t, m, 1, "no-page"); !got || err != nil {
				t.Errorf("%s: no page %v, %v", name, got, err)
			}
		}
	}
	for bits, want := range map[uint64]bool{present | writeBit: true, present: false, writeBit: false} {
		m, s := stands(t)
		for i := range uint64(512) {
			s.word(0x40000+8*i, present)
		}
		s.word(0x40000+8*511, bits)
		m.slot = 0x40000 + 8*17
		if got, err := asking(t, m, 1, "writable"); got != want || err != nil {
			t.Errorf("%#x: writable %v, %v", bits, got, err)
		}
	}
}

// TestSteps: who runs, up to which place, and what is asked there; a place that is not reached is told with where the
// CPUs stand.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		steps string
		stops []string
		at    int
		err   string
		asked []string
	}{
		{"all to f\ngo", []string{"T05thread:02;"}, 2, "", []string{"Z1,ffffffff81001000,1", "vCont;c",
			"z1,ffffffff81001000,1"}},
		{"cpu 1 to nobody|g when cpu 1\ngo", []string{"T05thread:01;", "T05thread:02;"}, 2, "",
			[]string{"Z1,ffffffff81002000,1", "vCont;c:2", "vCont;s:1", "vCont;c:2", "z1,ffffffff81002000,1"}},
		{"cpu 0 for 1ms\ngo", []string{""}, 2, "", []string{"vCont;c:1"}},
		{"cpu 0 to f within 1ms\ngo", []string{""}, 1, "not within 1ms; CPU 0 stands in f; CPU 1 stands in g+0x3",
			[]string{"Z1,ffffffff81001000,1", "vCont;c:1", "z1,ffffffff81001000,1"}},
		{"cpu 0 to read of a_word\ngo", []string{"T05thread:01;rwatch:ffffffff82000200;"}, 2, "",
			[]string{"Z3,ffffffff82000200,8", "vCont;c:1", "z3,ffffffff82000200,8"}},
		{"cpu 0 to write of slot\ngo", []string{"T05thread:01;watch:6000;"}, 2, "", []string{"Z2,6000,8", "vCont;c:1",
			"z2,6000,8"}},
		{"cpu 0 to write of entry\ngo", []string{"T05thread:01;watch:7000;"}, 2, "", []string{"Z2,7000,8", "vCont;c:1",
			"z2,7000,8"}},
		{"cpu 0 to nobody|no_one\ngo", nil, 1, "the image has no nobody nor no_one", nil},
		{"look zero a_word\ngo", nil, 2, "", nil}, {"look set a_word\ngo", nil, 1, errOtherwise.Error(), nil},
		{"all to f\ncpu 0 to g within 1ms or again\ngo", []string{"T05thread:01;", "", "", "T05thread:01;", "T05thread:01;"},
			3, "",
			[]string{"Z1,ffffffff81001000,1", "vCont;c", "z1,ffffffff81001000,1", "Z1,ffffffff81002000,1",
				"vCont;c:1", "z1,ffffffff81002000,1", "vCont;c",
				"Z1,ffffffff81001000,1", "vCont;c", "z1,ffffffff81001000,1", "Z1,ffffffff81002000,1", "vCont;c:1",
				"z1,ffffffff81002000,1"}},
		{"all to f\nall for 1ms\ncpu 0 to g within 1ms or again\ngo", []string{"T05thread:01;", "", "", "",
			"T05thread:01;", "", "T05thread:01;"}, 4, "",
			[]string{"Z1,ffffffff81001000,1", "vCont;c", "z1,ffffffff81001000,1", "vCont;c", "Z1,ffffffff81002000,1",
				"vCont;c:1", "z1,ffffffff81002000,1",
				"vCont;c", "Z1,ffffffff81001000,1", "vCont;c", "z1,ffffffff81001000,1", "vCont;c",
				"Z1,ffffffff81002000,1", "vCont;c:1",
				"z1,ffffffff81002000,1"}},
		{"cpu 0 to g within 60s unless zero a_word\ngo", []string{""}, 1, "a_word is zero; CPU 0 stands in f; CPU 1 stands in g+0x3", nil},
		{"cpu 0 to g within 10s unless zero a_word\ngo", []string{"T05thread:02;", "T05thread:01;"}, 2, "", nil},
	} {
		m, s := stands(t)
		s.stops = c.stops
		s.word(wordAt, 0)
		s.regs[0][rip], s.regs[1][rip] = fAt, gAt+3
		m.slot, m.entry = 0x6000, 0x7000
		var steps []Step
		for line := range strings.SplitSeq(c.steps, "\n") {
			st, err := ParseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, st)
		}
		var told []string
		m.tell = func(line string) { told = append(told, line) }
		at, err := m.carry(t.Context(), steps, time.Now().Add(time.Minute))
		if at != c.at || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%q: step %d, %v, want %d, %s", c.steps, at, err, c.at, c.err)
		}
		if d := cmp.Diff(c.asked, s.asked); d != "" && c.asked != nil {
			t.Errorf("%q: %s", c.steps, d)
		}
		if want := "step 1: " + steps[0].Text; len(told) == 0 || told[0] != want {
			t.Errorf("%q: told %q, want %q", c.steps, told, want)
		}
	}
}
