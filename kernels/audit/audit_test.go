// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/binary"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Nothing here is slow; the flag lets go test ./... -long pass through.
var _ = flag.Bool("long", false, "run slow tests")

// verdicts are a kernel's, by defect, with their evidence.
func verdicts(k *vmlinux.Kernel) map[string]string {
	out := map[string]string{}
	for _, f := range Of(image.Of(k)) {
		out[f.Defect] = string(f.Verdict) + ": " + f.Evidence
	}
	return out
}

// hold compares verdicts with what they begin with and contain.
func hold(t *testing.T, what string, got map[string]string, want map[string]string) {
	t.Helper()
	for defect, text := range want {
		verdict, evidence, _ := strings.Cut(text, ": ")
		if !strings.HasPrefix(got[defect], verdict+": ") || !strings.Contains(got[defect], evidence) {
			t.Errorf("%s: %s %q, want %q", what, defect, got[defect], text)
		}
	}
}

// TestX86: every rule both ways, on functions whose calls stand in a file of C.
func TestX86(t *testing.T) {
	broken := fakekernel.Compile(t, "testdata/defects.c")
	broken.Banner = "Linux version 6.2 #1 SMP PREEMPT_DYNAMIC"
	hold(t, "broken", verdicts(broken), map[string]string{
		"try-get-desc":                   "has: text_poke_bp_batch touches bp_desc and no count",
		"kprobe-disarm":                  "has: arch_disarm_kprobe does not call text_poke_sync",
		"static-call-fixup":              "has: does not call mutex_lock",
		"hit-while-brought-up":           "has: call cpus_read_lock",
		"module-static-calls":            "has: static_call_module_notify calls arch_static_call_transform calls text_poke_bp",
		"bpf-detach-pokes-each":          "has: arch_bpf_trampoline_skip calls bpf_arch_text_poke",
		"direct-functions-moved":         "has: register_ftrace_direct calls dup_hash",
		"trampoline-freed-under-sleeper": "has: bpf_trampoline_update",
		"mismatched-ops":                 "has: (dynamic)",
		"multi-attach-free":              "cannot-tell: bpf_trampoline_multi_detach",
		"unsorted-array":                 "mended: no smp_text_poke_single",
		"walk-of-freed-table":            "has: __text_poke calls vmalloc_to_page and no down_read; pages of text are joined",
		"nop10-other-trampoline":         "has: arch_uprobe_optimize calls on_each_cpu_cond_mask",
	})
	mended := fakekernel.Compile(t, "testdata/defects.c", "-DMENDED")
	mended.Banner = "Linux version 6.2 #1 SMP"
	hold(t, "mended", verdicts(mended), map[string]string{
		"try-get-desc":                   "mended: text_poke_bp_batch touches bp_desc+12",
		"kprobe-disarm":                  "mended: arch_disarm_kprobe calls text_poke_sync",
		"static-call-fixup":              "mended: __static_call_fixup calls mutex_lock",
		"hit-while-brought-up":           "mended: ftrace_arch_code_modify_prepare calls cpus_read_lock",
		"module-static-calls":            "mended: does not lead to a single poke",
		"bpf-detach-pokes-each":          "mended: no arch_bpf_trampoline_skip",
		"direct-functions-moved":         "mended: register_ftrace_direct calls call_rcu_tasks",
		"trampoline-freed-under-sleeper": "mended: bpf_tramp_image_put",
		"mismatched-ops":                 "mended: not preempted",
		"multi-attach-free":              "mended: no bpf_trampoline_multi_detach",
		"walk-of-freed-table":            "mended: __text_poke calls down_read with init_mm's lock",
		"nop10-other-trampoline":         "mended: uprobe_write calls ptep_clear_flush",
	})
	for option, want := range map[string]string{
		"-DOTHER_LOCK": "cannot-tell: whose lock", "-DNO_WALK": "cannot-tell: does not call vmalloc_to_page",
		"-DNO_JOIN": "mended: nothing joins pages",
	} {
		hold(t, option, verdicts(fakekernel.Compile(t, "testdata/defects.c", option)), map[string]string{"walk-of-freed-table": want})
	}
	rt := fakekernel.Compile(t, "testdata/defects.c", "-DMENDED", "-Dmutex_lock=_mutex_lock") // as 5.10's kernel/locking/mutex-rt.c
	hold(t, "rt", verdicts(rt), map[string]string{"static-call-fixup": "mended: calls _mutex_lock"})
	var nothing vmlinux.Kernel
	nothing.Memory, nothing.Symbols = &vmlinux.Memory{Arch: broken.Arch, Segments: broken.Segments}, vmlinux.NewSymbols("", nil)
	hold(t, "without a symbol", verdicts(&nothing), map[string]string{
		"try-get-desc": "cannot-tell: no bp_desc", "kprobe-disarm": "cannot-tell: arch_disarm_kprobe is not in the image",
		"walk-of-freed-table":  "cannot-tell: __text_poke is not in the image",
		"hit-while-brought-up": "cannot-tell: not in the image", "mismatched-ops": "cannot-tell: no label ftrace_call",
	})
}

// TestSingle: the poke of a single place is executed, as it was in 6.16-rc1 and as it is.
func TestSingle(t *testing.T) {
	for _, c := range []struct{ option, want string }{
		{"-DBROKEN", "has: executed: smp_text_poke_single puts a lower address behind a higher one"},
		{"-DMENDED", "mended: executed: smp_text_poke_single ends the batch"},
	} {
		k := image.Of(fakekernel.Compile(t, "testdata/single.c", c.option))
		for i := range uint64(400) {
			k.Records.Sites = append(k.Records.Sites, 0xffffffff90000000+16*i)
		}
		for _, f := range Of(k) {
			if f.Defect == "unsorted-array" {
				hold(t, c.option, map[string]string{"x": string(f.Verdict) + ": " + f.Evidence}, map[string]string{"x": c.want})
			}
		}
	}
}

// assembled is a kernel of functions of words, each of which may end with a call of another.
func assembled(arch string, functions map[string][]uint32, calls map[string]string) *vmlinux.Kernel {
	const base, each = 0xffffffff80000000, 64
	data := make([]byte, each*(len(functions)+1))
	at := map[string]uint64{}
	var all []vmlinux.Symbol
	for i, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range functions {
			if !yield(name) {
				return
			}
		}
	}) {
		at[name] = uint64(each * i)
		all = append(all, vmlinux.Symbol{Addr: base + at[name], Type: 'T', Name: name})
	}
	for name, words := range functions {
		if to, ok := calls[name]; ok {
			distance := uint32(at[to] - at[name] - uint64(4*len(words)))
			if arch == arm64.Name {
				words = append(words, 0x94000000|distance>>2&0x3ffffff) // bl
			} else {
				words = append(words, 0xef|distance&0xff000|distance>>11&1<<20|distance&0x7fe<<20|distance>>20&1<<31) // jal ra
			}
		}
		for i, w := range words {
			binary.LittleEndian.PutUint32(data[at[name]+uint64(4*i):], w)
		}
	}
	k := &vmlinux.Kernel{Memory: &vmlinux.Memory{Segments: []vmlinux.Segment{{Addr: base, Data: data}}},
		Symbols: vmlinux.NewSymbols("", append(all, vmlinux.Symbol{Addr: base + uint64(len(data)) - each, Type: 'T', Name: "end"}))}
	head := map[string]string{arm64.Name: "ARM\x64", riscv64.Name: "RSC\x05"}[arch]
	k.Arch = vmlinux.ArchOf(append(append(make([]byte, 0x38), head...), make([]byte, 64)...))
	return k
}

// TestOthers: the rules of arm64 and riscv64 both ways.
func TestOthers(t *testing.T) {
	nop := []uint32{0x13}
	functions := map[string][]uint32{"smp_callin": nop, "patch_text_nosync": nop, "flush_icache_all": nop, "mutex_lock": nop,
		"ftrace_arch_code_modify_prepare": nop}
	hold(t, "broken", verdicts(assembled(riscv64.Name, functions, nil)), map[string]string{
		"online-before-fetch": "has: smp_callin executes no fence.i", "local-fence-only": "has: does not lead to flush_icache_all",
		"late-store": "has: no fence", "lost-text-mutex": "has: does not call mutex_lock",
	})
	functions["smp_callin"] = []uint32{0x13, 0x0000100f}
	functions["flush_icache_all"] = []uint32{0x13, 0x13, 0x0140000f}
	calls := map[string]string{"patch_text_nosync": "flush_icache_all", "ftrace_arch_code_modify_prepare": "mutex_lock"}
	hold(t, "mended", verdicts(assembled(riscv64.Name, functions, calls)), map[string]string{
		"online-before-fetch": "mended: fence.i", "local-fence-only": "mended: patch_text_nosync calls flush_icache_all",
		"late-store": "mended: fence w,o", "lost-text-mutex": "mended: calls mutex_lock",
	})
	hold(t, "riscv64 without a symbol", verdicts(assembled(riscv64.Name, nil, nil)), map[string]string{
		"online-before-fetch": "cannot-tell: smp_callin", "local-fence-only": "cannot-tell: ", "late-store": "cannot-tell: ",
		"lost-text-mutex": "cannot-tell: ",
	})
	const each, kick = "arch_jump_label_transform", "kick_all_cpus_sync"
	functions = map[string][]uint32{each: nop, "arch_jump_label_transform_apply": nop, kick: nop}
	hold(t, "arm64", verdicts(assembled(arm64.Name, functions, nil)), map[string]string{"arm64-jump-label": "has: kick_all_cpus_sync",
		"init-text-plt": "cannot-tell: no type information"})
	calls = map[string]string{"arch_jump_label_transform_apply": kick}
	hold(t, "arm64", verdicts(assembled(arm64.Name, functions, calls)), map[string]string{"arm64-jump-label": "mended: " + kick})
}

// TestRulesHaveCases: each rule goes by the name of a case of the museum, or of a finding that
// has none.
func TestRulesHaveCases(t *testing.T) {
	findings := []string{"module-static-calls", "bpf-detach-pokes-each", "walk-of-freed-table"}
	for _, r := range Rules {
		cases, err := filepath.Glob("../../check/museum/cases/*-" + r.Name + ".case")
		if err != nil || (len(cases) != 1) != slices.Contains(findings, r.Name) {
			t.Errorf("%s: %v, %v", r.Name, cases, err)
		}
	}
}

// TestColumns: findings and rules as rows.
func TestColumns(t *testing.T) {
	row, err := Columns.Row(Finding{"6.12", "arm64", "late-store", Has, "flush_icache_all"})
	if want := []string{"6.12", "arm64", "late-store", "has", "flush_icache_all"}; err != nil || fmt.Sprint(row) != fmt.Sprint(want) {
		t.Errorf("%v, %v", row, err)
	}
	row, err = RuleColumns.Row(image.Rule{Name: "late-store", Arch: "riscv64", Doc: "overtaken"})
	if want := []string{"late-store", "riscv64", "overtaken"}; err != nil || fmt.Sprint(row) != fmt.Sprint(want) {
		t.Errorf("%v, %v", row, err)
	}
	if row, err = RuleColumns.Row(image.Rule{Name: "x", Doc: "y"}); err != nil || fmt.Sprint(row) != "[x  y]" {
		t.Errorf("%v, %v", row, err)
	}
}

// TestAnswer: the line above a table names each defect once, and counts kernels, not findings.
func TestAnswer(t *testing.T) {
	all := []Finding{
		{"6.1", "arm64", "late-store", Has, ""}, {"6.1", "arm64", "poke-walks-freed-table", Has, ""},
		{"6.12", "arm64", "late-store", Has, ""},
		{"6.12", "x86_64", "late-store", Mended, ""}, {"6.12", "x86_64", "try-get-desc", CannotTell, ""},
	}
	for from, want := range map[int]string{
		0: "ANSWER: kernels with a known defect: 2 of 3 (late-store, poke-walks-freed-table); verdicts that the code does not tell: 1",
		3: "ANSWER: kernels with a known defect: 0 of 3; verdicts that the code does not tell: 1",
	} {
		if line, clean := Answer(all[from:], 3); line != want || clean != (from == 3) {
			t.Errorf("%s, clean %v; want\n%s", line, clean, want)
		}
	}
}
