// SPDX-License-Identifier: Apache-2.0

package record

import (
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/vmlinux"
)

const lastOfAll = 0xffffffff80006800 // where the machine's way ends

// course is a machine on which CPU 0 stores one word to a site in a batch, and is switched off then.
func course(t *testing.T) (*recorder, *machine) {
	x, m := recorderOf(t)
	var err error
	if x.arch, err = cpus.ParseArch("riscv64"); err != nil {
		t.Fatal(err)
	}
	x.last = lastOfAll
	x.kernel.File = "made"
	x.Text = Text{begins, site + 8}
	m.put(begins, 0x13, 0, 0, 0) // a nop
	m.put(oneTask, 1, 2, 3, 4)
	to := func(pc, sp uint64, args ...uint64) func() string {
		return func() string {
			m.CPU, m.regs[0][1], m.regs[0][2], m.regs[0][32] = 0, back, sp, pc
			copy(m.regs[0][10:], args)
			return "T05thread:01;"
		}
	}
	m.stops = []func() string{to(begins, oneTask+0x800), to(stores, oneTask+0x400, site, oneTask, 4), func() string {
		m.put(site, 1, 2, 3, 4) // it is stored
		return to(back, oneTask+0x800)()
	}, to(lastOfAll, oneTask+0x800)}
	return x, m
}

// follow records a machine, and tells what it said when the guest could begin.
func follow(t *testing.T, x *recorder, m *machine, c *Config) (begun int, err error) {
	t.Helper()
	err = x.run(t.Context(), m.listen(t), func() error {
		begun = len(m.done)
		return nil
	}, c)
	return begun, err
}

// TestRuns: all that is watched has a breakpoint before the guest begins; a CPU that has stopped goes over its
// instruction, a nop without running the machine, and steps again where a stop of before ended the step; where a function
// returns is watched until it has; at the end the machine goes on alone.
func TestRuns(t *testing.T) {
	x, m := course(t)
	m.late = 1
	mutated := 0
	begun, err := follow(t, x, m, &Config{Mutate: func(c *gdb.Client, k *image.Kernel) error {
		if c == nil || k != x.kernel {
			t.Error("another machine is changed")
		}
		mutated = 1 + len(m.done)
		return nil
	}})
	if err != nil || mutated != 1 {
		t.Fatal(err, mutated)
	}
	want := []string{"CPU 0: begin arch_ftrace_update_code",
		"CPU 0: store 0xffffffff80007000 01 02 03 04 <- 00 00 00 00 b",
		"CPU 0: end arch_ftrace_update_code"}
	if d := cmp.Diff(want, x.told()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"no rule finds what publishes a batch: it is not recorded"}, x.Watched); d != "" {
		t.Error(d)
	}
	point := func(kind string, at uint64) string { return fmt.Sprintf("%s,%x,1", kind, at) }
	slices.Sort(m.done[:4])
	all := []string{point("Z1", begins), point("Z1", stores), point("Z1", flushes), point("Z1", answers),
		point("Z1", lastOfAll)}
	if begun != len(all) {
		t.Errorf("the guest begins behind %q", m.done[:begun])
	}
	for i, asked := range m.done {
		if asked[0] == 'G' {
			m.done[i] = "G"
		}
	}
	all = append(all, "vCont;c", point("Z1", back), "G", "vCont;c", "vCont;s:1", "vCont;s:1", "vCont;c", point("z1", back),
		"vCont;s:1", "vCont;c", "D")
	if d := cmp.Diff(all, m.done); d != "" {
		t.Error(d)
	}
	if pc := m.regs[0][32]; pc != lastOfAll {
		t.Errorf("it ends at %#x", pc)
	}
}

// TestRunsSoManySteps: the recording ends with the first batch that ends when so many steps are there.
func TestRunsSoManySteps(t *testing.T) {
	for steps, early := range map[int]bool{0: false, 1: true, 2: true, 3: true, 4: false} {
		x, m := course(t)
		if _, err := follow(t, x, m, &Config{Steps: steps}); err != nil {
			t.Fatal(err)
		}
		note := slices.Contains(x.Watched, "nothing after step 3: no more were asked for")
		if note != early || len(x.Steps) != 3 || len(m.stops) != map[bool]int{true: 1, false: 0}[early] ||
			m.done[len(m.done)-1] != "D" {
			t.Errorf("%d: %q, %q, %d stops are left", steps, x.told(), x.Watched, len(m.stops))
		}
	}
}

// TestRunsRefuse: what fails ends the recording, with the step and the CPU where there are any.
func TestRunsRefuse(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		change func(x *recorder, m *machine)
		config Config
		want   string
	}{
		"changing it": {func(*recorder, *machine) {}, Config{Mutate: func(*gdb.Client,
			*image.Kernel) error {
			return no
		}}, "no"},
		"no breakpoints": {func(_ *recorder, m *machine) { m.refuses = "Z1" }, Config{}, "Z1"},
		"no last one": {func(_ *recorder, m *machine) { m.refuses = fmt.Sprintf("Z1,%x", uint64(lastOfAll)) },
			Config{}, "Z1"},
		"no going on": {func(_ *recorder, m *machine) { m.stops = m.stops[:2] }, Config{},
			"after 2 steps: gdb server: wait: W00: "},
		"no registers": {func(_ *recorder, m *machine) { m.refuses = "g" }, Config{}, "step 1, CPU 0: gdb server: g"},
		"no step":      {func(_ *recorder, m *machine) { m.refuses = "vCont;s" }, Config{}, "gdb server: "},
		"no skip":      {func(_ *recorder, m *machine) { m.refuses = "G" }, Config{}, "gdb server: G"},
		"no text": {func(x *recorder, _ *machine) { x.Text = Text{} }, Config{},
			"made: no _stext and _etext"},
		"unread text": {func(_ *recorder, m *machine) { m.refuses = fmt.Sprintf("m%x", uint64(begins)) }, Config{},
			"read the kernel's text: gdb server: m"},
		"another store": {func(_ *recorder, m *machine) {
			m.stops[1] = func() string { m.CPU = 1; return "T05thread:02;watch:1234;" }
		}, Config{}, "step 2, CPU 1: the machine stopped for a store to 0x1234, which is not watched"},
	} {
		x, m := course(t)
		c.change(x, m)
		begun, err := follow(t, x, m, &c.config)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) && !strings.HasPrefix(err.Error(),
			"gdb server: "+c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if name == "changing it" && (begun != 0 || len(m.done) != 0) {
			t.Errorf("%s: %q", name, m.done)
		}
	}
	x, m := course(t)
	if err := x.run(t.Context(), m.listen(t), func() error { return no }, &Config{}); !errors.Is(err, no) ||
		len(x.Steps) != 0 {
		t.Errorf("a guest that cannot begin: %v", err)
	}
}

// calling is a kernel of riscv64 with functions that call others.
func calling(calls map[string][]string) *image.Kernel {
	text, names := make([]byte, 0x2000), slices.Sorted(maps.Keys(calls))
	at := func(name string) uint64 { return begins + 0x80*uint64(slices.Index(names, name)) }
	var symbols []vmlinux.Symbol
	for _, name := range names {
		symbols = append(symbols, vmlinux.Symbol{Addr: at(name), Type: 'T', Name: name})
		for i, to := range calls[name] {
			from := at(name) + 4*uint64(i)
			copy(text[from-begins:], jal(from, at(to)))
		}
	}
	return image.Of(&vmlinux.Kernel{Memory: &vmlinux.Memory{Arch: vmlinux.OfMachine(elf.EM_RISCV),
		Segments: []vmlinux.Segment{{Addr: begins, Data: text}}}, Symbols: vmlinux.NewSymbols("", symbols)})
}

// TestWatchesBesideOthers: two functions of a kind are watched where neither does the other's work; a function
// that calls one of
// another kind is, too; and so are answers and what waits for tasks, whomever they call.
func TestWatchesBesideOthers(t *testing.T) {
	calls := map[string][]string{
		"arch_ftrace_update_code": {"patch_text_nosync"}, "patch_text_nosync": {"patch_insn_write", "flush_icache_all"},
		"patch_insn_write": {"__patch_insn_write"}, "patch_text_set_nosync": {"__patch_insn_set"},
		"__patch_insn_write": {"__set_fixmap"}, "__patch_insn_set": {"other"}, "other": {"__set_fixmap"},
		"__set_fixmap":     nil,
		"flush_icache_all": nil, "do_sync_core": nil, "ipi_remote_fence_i": {"do_sync_core"},
		"multi_cpu_stop":             {"__patch_insn_write"},
		"ftrace_shutdown":            {"synchronize_rcu_tasks", "synchronize_rcu_tasks_rude"},
		"synchronize_rcu_tasks_rude": {"synchronize_rcu_tasks"}, "synchronize_rcu_tasks": nil,
	}
	want := []string{"begin: patch_text_nosync is there",
		"store: patch_text_nosync calls patch_insn_write calls __patch_insn_write",
		"store: patch_text_set_nosync calls __patch_insn_set", "answer: do_sync_core is there",
		"answer: ipi_remote_fence_i is there",
		"round: patch_text_nosync calls flush_icache_all", "stand: multi_cpu_stop is there",
		"grace: ftrace_shutdown calls synchronize_rcu_tasks", "grace: ftrace_shutdown calls synchronize_rcu_tasks_rude",
		"no rule finds who handles breakpoints: it is not recorded",
		"no rule finds who stops the machine: it is not recorded"}
	k := calling(calls)
	if d := cmp.Diff(want, watched(t, k)); d != "" {
		t.Error(d)
	}
	list, _, err := Watches(k)
	if err != nil {
		t.Fatal(err)
	}
	barriers := []string{"__patch_insn_write calls __set_fixmap", "__patch_insn_set calls other calls __set_fixmap"}
	if d := cmp.Diff(barriers, fences(k, list)); d != "" {
		t.Error(d)
	}
	calls["__patch_insn_set"] = nil
	if got := fences(calling(calls), list); got != nil {
		t.Errorf("one that stores has no barrier: %q", got)
	}
}
