// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// object assembles a file; the test is skipped where there is no assembler for x86-64.
func object(t *testing.T, source string, options ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.o")
	out, err := exec.Command("gcc", append(options, "-c", "-m64", "-o", path, source)...).CombinedOutput()
	if err != nil {
		t.Skipf("skipped: gcc: %v: %s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestModule: what a module has in its tables, and which memory it takes.
func TestModule(t *testing.T) {
	whole := object(t, "testdata/module.S")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(whole); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// Data has two words, and 25 bytes and the name of the first symbol and of six others; InitData 25 bytes of each of 16,
	// 115 of names (another is the end of a longer one) and 40 for their table. Of three places one is for Zbb alone. The end destroys two caches, and calls
	// twice what destroys one.
	all := &Module{Name: "some_module", Arch: "x86_64", Records: 3, Sites: 3, SitesInit: 1,
		Calls: map[string]int{"__SCK__outer": 2, "__SCK__another": 1}, Branches: 3, Keys: map[string]int{"outer_key": 2},
		Areas: map[Area]int{Text: 24 + 21, Data: 2*8 + 7*25 + 1 + 7 + 6 + 8 + 6 + 8 + 15, Rodata: 16 + 3*16 + 8, AfterInit: 48, CallTable: 24,
			InitText: 1, InitData: 16*25 + 115 + 40, InitRodata: 8}, Zbb: 1, Caches: 4}
	small := &Module{Name: "some_module", Arch: "x86_64", Calls: map[string]int{}, Keys: map[string]int{},
		Areas: map[Area]int{Data: 25 + 1, InitData: 25 + 40}}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		b    []byte
		want *Module
	}{
		"some_module.ko": {whole, all}, "some_module.ko.gz": {packed.Bytes(), all},
		"sub/some_module.ko": {object(t, "testdata/module.S", "-DSMALL"), small},
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenModule(path)
		if diff := cmp.Diff(c.want, m); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	paths, err := Modules(dir)
	want := []string{filepath.Join(dir, "some_module.ko"), filepath.Join(dir, "some_module.ko.gz"),
		filepath.Join(dir, "sub/some_module.ko")}
	if diff := cmp.Diff(want, paths); diff != "" || err != nil {
		t.Errorf("modules: %v\n%s", err, diff)
	}
}

// TestPlaces: of two relocations at one place, such as riscv64's R_RISCV_ADD32 and R_RISCV_SUB32, the first counts.
func TestPlaces(t *testing.T) {
	var rela []byte
	for _, r := range [][3]uint64{{8, 1<<32 | 35, 7}, {8, 2<<32 | 39, 0}, {16, 2<<32 | 35, 0}, {24, 0, 0}, {32, 3<<32 | 35,
		0}} {
		for _, word := range r {
			rela = le.AppendUint64(rela, word)
		}
	}
	got := places(&elf.File{}, rela, []elf.Symbol{{Name: "first", Section: 3, Value: 5}, {Name: "second"}})
	want := map[uint64]place{8: {symbol: "first", spot: 3<<48 + 5 + 7}, 16: {symbol: "second"}}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRelocationsOfNothing: relocations for a section that there is not are passed over.
func TestRelocationsOfNothing(t *testing.T) {
	whole := object(t, "testdata/module.S")
	f, err := elf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	want, err := ReadModule("m.ko", whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []int{len(f.Sections), 1 << 20} {
		b := bytes.Clone(whole)
		for i, s := range f.Sections {
			if s.Type == elf.SHT_RELA && f.Sections[s.Info].Name == "__mcount_loc" {
				const header, place = 64, 44 // of sh_info in Elf64_Shdr
				le.PutUint32(b[le.Uint64(b[0x28:])+uint64(header*i+place):], uint32(info))
			}
		}
		m, err := ReadModule("m.ko", b)
		if err != nil || m.Records != want.Records-2 || m.Sites != want.Sites {
			t.Errorf("section %d: %+v, %v", info, m, err)
		}
	}
}

// TestNoModule: what is no module is refused in words.
func TestNoModule(t *testing.T) {
	whole := object(t, "testdata/module.S")
	other := bytes.Replace(whole, []byte(".modinfo\x00"), []byte(".madinfo\x00"), 1)
	program := bytes.Clone(whole)
	program[16] = 2 // ET_EXEC
	for want, b := range map[string][]byte{
		"not a kernel module: no ELF file":                         []byte("hello"),
		"ELF file: not a kernel module of x86_64, arm64, riscv64":  other,
		"ELF file: not a kernel module of x86_64, arm64, riscv64 ": program,
		"gzip data: cut short":                                     {0x1f, 0x8b},
	} {
		_, err := ReadModule("f.ko", b)
		if err == nil || err.Error() != "f.ko: "+strings.TrimSpace(want) {
			t.Errorf("%v, want f.ko: %s", err, want)
		}
	}
	dir := t.TempDir()
	if _, err := OpenModule(dir); err == nil || err.Error() != dir+": not a kernel module" {
		t.Error(err)
	}
	if _, err := Modules(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there has modules")
	}
}

// TestOlderRules: kernels of releases between those of testdata/calls.txt, by the calls that their
// sources have (arch/x86/kernel/ftrace.c and alternative.c of 5.0, arch/riscv/kernel/ftrace.c of
// 6.12, kernel/bpf/trampoline.c of 6.6).
func TestOlderRules(t *testing.T) {
	for text, want := range map[string]map[string]int{
		`kernel x86_64 5.0
text text_poke_bp ftrace_replace_code arch_jump_label_transform arch_arm_kprobe unregister_ftrace_function
calls text_poke_bp on_each_cpu*3
calls ftrace_replace_code run_sync*3
calls arch_jump_label_transform text_poke_bp*1
calls arch_arm_kprobe text_poke*1
calls unregister_ftrace_function ftrace_shutdown*1
calls ftrace_shutdown schedule_on_each_cpu*1`: {BatchRounds: 3, BatchSlots: 1, UpdateRounds: 3, UpdateStops: 0, KeyBatched: 0,
			BranchRounds: 3, CallRounds: 0, ProbeRounds: 0, ProbeStops: 0, DetachWakes: 1, ProbeOnRecord: 0},
		`kernel x86_64 two-phases
text text_poke_bp
calls text_poke_bp on_each_cpu*2`: {BatchRounds: -1, BatchSlots: -1, UpdateRounds: -1},
		`kernel riscv64 6.12
text ftrace_make_call arch_ftrace_update_code arch_jump_label_transform arch_arm_kprobe
calls ftrace_make_call patch_text_nosync*1
calls patch_text_nosync flush_icache_all*1
calls arch_ftrace_update_code stop_machine*1
calls arch_jump_label_transform patch_text_nosync*1
calls arch_arm_kprobe patch_text*1
calls patch_text stop_machine_cpuslocked*1`: {UpdateStops: 1, UpdateRounds: 0, RecordFences: 1, BranchFences: 1, KeyFences: 0,
			ProbeStops: 1, ProbeRounds: 0, BatchRounds: 0},
		`kernel x86_64 6.6
text bpf_trampoline_update
calls bpf_trampoline_update set_memory_rox*1`: {DirectFlushes: 1},
		`kernel x86_64 6.1
text bpf_trampoline_update
calls bpf_trampoline_update set_memory_ro*1 set_memory_x*1`: {DirectFlushes: 2},
		`kernel x86_64 another
text bpf_trampoline_update
calls bpf_trampoline_update set_memory_x*1`: {DirectFlushes: 1},
		"kernel x86_64 bare\ntext bpf_trampoline_update": {DirectFlushes: 1},
		"kernel x86_64 none\ntext":                       {DirectFlushes: 0, ProbeRounds: 0, DetachWakes: 0, UpdateRounds: -1},
		`kernel x86_64 6.4
text hid_bpf_init
calls hid_bpf_init hid_bpf_preload_skel*1`: {DirectAtBoot: 1},
	} {
		k, _ := kernelOf(t, text)
		found, _ := k.Mechanisms()
		got := map[string]int{}
		for name := range want {
			got[name] = -1 // not understood
			for _, m := range found {
				if m.Name == name {
					got[name] = m.Value
				}
				const rox = "set_memory_rox"
				if m.Name == DirectFlushes && strings.Contains(text, rox) != strings.Contains(m.Evidence, rox) {
					t.Errorf("%s\nshown by: %s", text, m.Evidence)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
}

// TestArea: sections go by flags and names; arm64's kernel makes code of two that a file has as data,
// as the crc7 of Debian's 6.12.117 shows, whose five areas took five rounds.
func TestArea(t *testing.T) {
	const alloc, code, data = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_EXECINSTR, elf.SHF_ALLOC | elf.SHF_WRITE
	const none = Area(99)
	for _, c := range []struct {
		elf.SectionHeader
		want Area
	}{
		{elf.SectionHeader{Name: ".text", Flags: code, Size: 48}, Text},
		{elf.SectionHeader{Name: ".plt", Flags: code, Size: 1}, Text},
		{elf.SectionHeader{Name: ".init.text", Flags: code, Size: 48}, InitText},
		{elf.SectionHeader{Name: ".init.plt", Flags: alloc, Size: 1}, InitText},
		{elf.SectionHeader{Name: ".init.text.ftrace_trampoline", Flags: alloc, Size: 1}, InitText},
		{elf.SectionHeader{Name: ".data", Flags: data, Size: 8}, Data},
		{elf.SectionHeader{Name: ".data", Flags: data}, none},
		{elf.SectionHeader{Name: ".data..percpu", Flags: data, Size: 8}, none},
		{elf.SectionHeader{Name: ".init.data", Flags: data, Size: 8}, InitData},
		{elf.SectionHeader{Name: ".data..ro_after_init", Flags: data, Size: 8}, AfterInit},
		{elf.SectionHeader{Name: "__jump_table", Flags: data, Size: 16}, AfterInit},
		{elf.SectionHeader{Name: ".static_call_sites", Flags: data, Size: 8}, CallTable},
		{elf.SectionHeader{Name: ".rodata", Flags: alloc, Size: 256}, Rodata},
		{elf.SectionHeader{Name: ".init.rodata", Flags: alloc, Size: 256}, InitRodata},
		{elf.SectionHeader{Name: ".modinfo", Flags: alloc, Size: 141}, none},
		{elf.SectionHeader{Name: "__versions", Flags: alloc, Size: 64}, none},
		{elf.SectionHeader{Name: ".symtab", Size: 64}, none},
	} {
		got, ok := area(&elf.Section{SectionHeader: c.SectionHeader})
		if !ok {
			got = none
		}
		if got != c.want {
			t.Errorf("%s, %d bytes, %v: area %d, want %d", c.Name, c.Size, c.Flags, got, c.want)
		}
	}
}
