// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// bit is a bit of a number, moved to another place.
func bit(v int64, from, to int) uint32 { return uint32(v>>from&1) << to }

// bitsOf are n bits of a number from one on, moved to another place.
func bitsOf(v int64, from, n, to int) (w uint32) {
	for i := range n {
		w |= bit(v, from+i, to+i)
	}
	return w
}

// reaching is how each instruction that is looked for says how far it reaches, as the manuals have it (Intel SDM,
// volume 2; Arm ARM, C6.2; RISC-V, volume 1, 2.5 and 16.8), with the least and the greatest distance, and its multiples.
var reaching = []struct {
	name, arch string
	low, high  int64
	step       int64
	refers     bool // it makes an address, and calls nothing
	page       bool // distances are from the page
	encode     func(d int64) []byte
}{
	{"call", x86_64.Name, -1<<31 + 5, 1<<31 - 1, 1, false, false,
		func(d int64) []byte { return le.AppendUint32([]byte{0xe8}, uint32(d-5)) }},
	{"lea", x86_64.Name, -1<<31 + 7, 1<<31 - 1, 1, true, false,
		func(d int64) []byte { return le.AppendUint32([]byte{0x4c, 0x8d, 0x2d}, uint32(d-7)) }},
	{"bl", arm64.Name, -1 << 27, 1<<27 - 4, 4, false, false,
		func(d int64) []byte { return words(0x94000000 | bitsOf(d, 2, 26, 0)) }},
	{"adr", arm64.Name, -1 << 20, 1<<20 - 1, 1, true, false,
		func(d int64) []byte { return words(0x10000007 | bitsOf(d, 0, 2, 29) | bitsOf(d, 2, 19, 5)) }},
	{"adrp and add", arm64.Name, -1 << 32, 1<<32 - 1, 1, true, true, func(d int64) []byte {
		return words(0x90000003|bitsOf(d, 12, 2, 29)|bitsOf(d, 14, 19, 5), 0xd503201f, 0x91000064|bitsOf(d, 0, 12, 10))
	}},
	{"auipc and jalr", riscv64.Name, -1<<31 + 0x800, 1<<31 - 0x801, 2, false, false, func(d int64) []byte {
		return words(0x00000317|uint32(d+0x800)&0xfffff000, 0x00030367|bitsOf(d, 0, 12, 20))
	}},
	{"jal", riscv64.Name, -1 << 20, 1<<20 - 2, 2, false, false, func(d int64) []byte {
		return words(0x6f | bit(d, 20, 31) | bitsOf(d, 1, 10, 21) | bit(d, 11, 20) | bitsOf(d, 12, 8, 12))
	}},
	{"c.j", riscv64.Name, -1 << 11, 1<<11 - 2, 2, false, false, func(d int64) []byte {
		return binary.LittleEndian.AppendUint16(nil, uint16(0xa001|bit(d, 11, 12)|bit(d, 4, 11)|bitsOf(d, 8, 2,
			9)|bit(d, 10, 8)|bit(d, 6, 7)|
			bit(d, 7, 6)|bitsOf(d, 1, 3, 3)|bit(d, 5, 2)))
	}},
	{"auipc and addi", riscv64.Name, -1<<31 + 0x800, 1<<31 - 0x801, 1, true, false, func(d int64) []byte {
		return words(0x00000517|uint32(d+0x800)&0xfffff000, 0x00050593|bitsOf(d, 0, 12, 20))
	}},
}

// TestDistances: every instruction that is looked for leads as far as it says, from wherever it stands; what is cut
// short by a byte leads nowhere.
func TestDistances(t *testing.T) {
	for _, r := range reaching {
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.OneOf(rapid.Int64Range(r.low/r.step, r.high/r.step), rapid.SampledFrom([]int64{r.low / r.step,
				r.high / r.step, 0, 1, -1})).
				Draw(t, "distance") * r.step
			at := uint64(madeBase) + 4*rapid.Uint64Range(0, 1<<20).Draw(t, "at")
			b := r.encode(d)
			want := at + uint64(d)
			if r.page {
				want = at&^0xfff + uint64(d)
			}
			behind := b
			if len(b) < 4 {
				behind = append(slices.Clone(b), 0, 0) // a word is looked at
			}
			for _, code := range []code{{at, behind}, {at, append(slices.Clone(behind), 0, 0, 0, 0, 0, 0, 0, 0)}} {
				var calls, refs []uint64
				decoders[r.arch].calls(code, func(to uint64) { calls = append(calls, to) })
				decoders[r.arch].refs(code, func(to uint64) { refs = append(refs, to) })
				got := calls
				if r.refers {
					got = refs
				}
				if !slices.Contains(got, want) {
					t.Fatalf("%s by %d at %#x, %x: %#x, want %#x", r.name, d, at, b, got, want)
				}
				if r.arch == arm64.Name && len(calls)+len(refs) != 1 { // others are looked for at every byte, or every second
					t.Fatalf("%s by %d at %#x, %x: also %#x, %#x", r.name, d, at, b, calls, refs)
				}
			}
			short := code{at, b[:len(b)-1]}
			none := func(to uint64) {
				if to == want {
					t.Fatalf("%s by %d, cut short: %#x", r.name, d, to)
				}
			}
			decoders[r.arch].calls(short, none)
			decoders[r.arch].refs(short, none)
		})
	}
}

// TestPairsOfInstructions: only an instruction about the same register completes an address, and only its own kind of
// word.
func TestPairsOfInstructions(t *testing.T) {
	for name, c := range map[string]struct {
		arch string
		code []byte
	}{
		"auipc ra, jalr of t1":   {riscv64.Name, words(0x00001097, 0x010300e7)},
		"auipc a0, addi of a1":   {riscv64.Name, words(0x00002517, 0xff858513)},
		"auipc ra alone":         {riscv64.Name, words(0x00001097)},
		"adrp x0, add of x1":     {arm64.Name, words(0x90000020, 0x91006020)},
		"c.li, no jump":          {riscv64.Name, words(0x00014501)},
		"c.bnez":                 {riscv64.Name, words(0x0001e511)},
		"mov $imm32, no rex":     {x86_64.Name, []byte{0x47, 0xc7, 0xc7, 1, 2, 3, 4}},
		"lea without %rip":       {x86_64.Name, []byte{0x48, 0x8d, 0x3c, 1, 2, 3, 4}},
		"mov to memory":          {x86_64.Name, []byte{0x48, 0xc7, 0x07, 1, 2, 3, 4}},
		"ret, and data as words": {arm64.Name, words(0xd65f03c0)},
	} {
		found := func(to uint64) { t.Errorf("%s: %#x", name, to) }
		decoders[c.arch].calls(code{0x1000, c.code}, found)
		decoders[c.arch].refs(code{0x1000, c.code}, found)
	}
}

// TestCodeOfFunctions: a function's code reaches to the next symbol, or 4096 bytes where none follows; what leads
// inside of it is no call, what a compiler split off belongs to it, and calls are counted by the functions that begin
// where they lead.
func TestCodeOfFunctions(t *testing.T) {
	m := newMade()
	m.name(0x100, 't', "f")
	m.name(0x120, 't', "f.cold")
	m.name(0x140, 't', "g")
	m.name(0x140, 't', "alias_of_g")
	m.name(0x160, 't', "h.isra.0")
	m.name(0x180, 'd', "data_in_text")
	m.put(0x100, call(0x100, 0x140), call(0x105, 0x140), call(0x10a, 0x110), call(0x10f, 0x120), call(0x114, 0x141),
		call(0x119, 0x180))
	m.put(0x120, call(0x120, 0x160), call(0x125, 0x100))
	m.put(0x140, call(0x140, 0x160))
	k := m.kernel()
	want := map[string]int{"g": 2, "alias_of_g": 2, "h": 1}
	got := k.Calls("f")
	if len(got) != len(want) || got["g"] != 2 || got["alias_of_g"] != 2 || got["h"] != 1 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := k.Calls("nobody"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		from, to string
		depth    int
		want     string
	}{{"f", "g", 1, "f g"}, {"f", "h", 1, "f h"}, {"g", "h", 1, "g h"}, {"g", "f", 3, ""}, {"f", "nobody", 4, ""}, {"f",
		"g", 0, ""}} {
		if got := strings.Join(k.Path(c.from, c.to, c.depth), " "); got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
	last := &made{data: make([]byte, 0x3000)}
	last.name(0, 'T', "_stext")
	last.name(0, 'T', "last")
	for at, want := range map[int]bool{maxBody - 4: true, maxBody - 3: false} {
		clear(last.data)
		last.put(at, uint32(0xcafe4242))
		if got := last.kernel().HoldsWord("last", 0xcafe4242); at%2 == 0 && got != want {
			t.Errorf("a word at %d: %v", at, got)
		}
	}
	last.names = append(last.names, vmlinux.Symbol{Addr: madeBase + 16, Type: 't', Name: "next"})
	for at, want := range map[int]bool{0: true, 10: true, 12: true, 14: false, 16: false} {
		clear(last.data)
		last.put(at, uint32(0xcafe4242))
		if got := last.kernel().HoldsWord("last", 0xcafe4242); got != want {
			t.Errorf("a word at %d of 16 bytes: %v", at, got)
		}
	}
	for end, want := range map[int]bool{0: true, 1: true, 4: true, 2: false, 3: false,
		5: false} { // bytes behind the distance
		clear(last.data)
		last.put(8, near(12+end, 0x2000))
		if got := last.kernel().Touches("last", madeBase+0x2000); got != want {
			t.Errorf("%d bytes behind a distance: %v", end, got)
		}
	}
}

// TestConfigurationInside: it stands packed behind its mark; what cannot be unpacked is told.
func TestConfigurationInside(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("CONFIG_A=y\nCONFIG_B=\"x\"\n# CONFIG_C is not set\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const cannot = "the configuration inside the image cannot be read"
	for name, c := range map[string]struct {
		b     []byte
		value string
		note  bool
	}{"whole": {packed.Bytes(), "y", false}, "cut": {packed.Bytes()[:20], "", true}, "none": {[]byte("nothing"), "", true}} {
		m := newMade()
		m.put(0x3000, []byte(configMagic), c.b)
		k := m.kernel()
		if got := ConfigValue(k.Config, "CONFIG_A"); got != c.value || slices.Contains(k.Notes, cannot) != c.note {
			t.Errorf("%s: %q, %q", name, k.Config, k.Notes)
		}
		if c.note {
			continue
		}
		for option, want := range map[string]string{"CONFIG_B": `"x"`, "CONFIG_C": "", "CONFIG": "", "A": ""} {
			if got := ConfigValue(k.Config, option); got != want {
				t.Errorf("%s: %q, want %q", option, got, want)
			}
		}
	}
	if k := newMade().kernel(); k.Config != "" || slices.Contains(k.Notes, cannot) {
		t.Errorf("without a mark: %q, %q", k.Config, k.Notes)
	}
}

// TestPreemptWords: as a banner says it, a whole word, the strongest first.
func TestPreemptWords(t *testing.T) {
	for banner, want := range map[string]string{"SMP PREEMPT_RT x": "rt", "SMP PREEMPT_DYNAMIC": "dynamic",
		"SMP PREEMPT_LAZY":   "lazy",
		"SMP PREEMPT Debian": "", "SMP": "", "NOPREEMPT_RT": "", "PREEMPT_RT PREEMPT_DYNAMIC": "rt"} {
		k := newMade().kernel()
		k.Banner = banner
		if got := k.Preempt(); got != want {
			t.Errorf("%q: %q, want %q", banner, got, want)
		}
	}
}

// TestProtocolsOfValues: a kernel that stops everybody, sends rounds for an update, or for a batch, or none.
func TestProtocolsOfValues(t *testing.T) {
	for want, values := range map[string]map[string]int{"stop-machine": {UpdateStops: 1, UpdateRounds: 3, BatchRounds: 3},
		"breakpoint-global": {UpdateRounds: 3, BatchRounds: 3}, "breakpoint": {BatchRounds: 3}, "native": {}} {
		if got := ProtocolOf(func(name string) int { return values[name] }); got != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
	k := newMade().kernel()
	if got := k.Protocol(); got != "" {
		t.Errorf("of a kernel without functions: %q", got)
	}
	if _, unknown := k.Mechanisms(); !slices.Contains(unknown,
		UpdateRounds+": no rule holds: ftrace_make_call is not there") {
		t.Errorf("%q", unknown)
	}
}

// TestPlacesInFiles: an address lies in the segment of an ELF file that holds it, and in a raw image as far from its
// start; what stands there is changed if it is what was there.
func TestPlacesInFiles(t *testing.T) {
	const off, from, size = 0x200, 0x1000, 16
	file := make([]byte, off+size)
	header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64,
		Ehsize: 64, Phentsize: 56, Phnum: 2}
	copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	var b bytes.Buffer
	for _, part := range []any{&header, &elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 8, Vaddr: from, Filesz: size},
		&elf.Prog64{Type: uint32(elf.PT_LOAD), Off: off, Vaddr: from, Filesz: size, Memsz: 4 * size}} {
		if err := binary.Write(&b, le, part); err != nil {
			t.Fatal(err)
		}
	}
	copy(file, b.Bytes())
	k := newMade().kernel()
	for addr, want := range map[uint64]uint64{from: off, from + size - 1: off + size - 1} {
		if at, err := k.offset(file, addr); at != want || err != nil {
			t.Errorf("%#x: %#x, %v", addr, at, err)
		}
	}
	for addr, want := range map[uint64]string{from - 1: "made: no segment holds 0xfff",
		from + size: "made: no segment holds 0x1010"} {
		if _, err := k.offset(file, addr); err == nil || err.Error() != want {
			t.Errorf("%#x: %v, want %s", addr, err, want)
		}
	}
	if _, err := k.offset(file[:20], from); err == nil || !strings.HasPrefix(err.Error(), "made: ") {
		t.Errorf("a file that is cut: %v", err)
	}
	if out, err := k.Apply(file, Change{At: from + 2, Old: []byte{0, 0}, New: []byte{7, 8}}); err != nil ||
		out[off+2] != 7 || out[off+3] != 8 ||
		file[off+2] != 0 {
		t.Errorf("%v", err)
	}
	for _, c := range []Change{{At: from + 2, Old: []byte{1}, New: []byte{2}}, {At: from + size - 1, Old: []byte{0,
		0}, New: []byte{2, 2}}} {
		if out, err := k.Apply(file, c); out != nil || err == nil || !strings.Contains(err.Error(), "does not hold") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	raw := []byte("raw")
	for at, ok := range map[uint64]bool{madeBase: true, madeBase + 3: true, madeBase + 4: false} {
		if _, err := k.Apply(raw, Change{At: at}); (err == nil) != ok {
			t.Errorf("%#x of three bytes: %v", at, err)
		}
	}
}

// TestCallsThatGo: the first direct call of a function is dropped, on x86-64 alone; where there is none, that is said.
func TestCallsThatGo(t *testing.T) {
	m := newMade()
	m.name(0x100, 't', "f")
	m.name(0x140, 't', "g.part.0")
	m.put(0x103, call(0x103, 0x140), call(0x108, 0x140))
	k := m.kernel()
	c, err := k.WithoutCall("f", "g")
	if err != nil || c.At != madeBase+0x103 || !bytes.Equal(c.Old, call(0x103, 0x140)) ||
		string(c.New) != "\x0f\x1f\x44\x00\x00" ||
		c.What != "f+0x3: no call of g" {
		t.Errorf("%+v, %v", c, err)
	}
	if b := k.with(c).At(c.At); string(b[:5]) != string(c.New) || bytes.HasPrefix(k.At(c.At), c.New) {
		t.Errorf("% x", b[:5])
	}
	if _, err := k.WithoutCall("f", "h"); err == nil || err.Error() != "made: f does not call h directly" {
		t.Error(err)
	}
	k.Arch = vmlinux.OfMachine(elf.EM_RISCV)
	if _, err := k.WithoutCall("f", "g"); err == nil ||
		err.Error() != "made: calls are dropped from kernels of x86_64 alone" {
		t.Error(err)
	}
	if _, err := k.RunBatch(); err != ErrNoBatch {
		t.Error(err)
	}
	if _, err := k.WithSlots(3); err == nil || !strings.HasPrefix(err.Error(),
		"made: no immediate says how many slots there are: the size of the vector is not known") {
		t.Error(err)
	}
}
