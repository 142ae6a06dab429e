// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/uprobes"
)

// taken is what a receiver takes for what a replay has noted.
func taken(t *testing.T, r *Replay) (n int) {
	t.Helper()
	lines, err := r.Take()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		n += l.Rounds()
	}
	return n
}

func mustReplay(t *testing.T, kernel string) *Replay {
	t.Helper()
	r, err := mustKernel(t, kernel).NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUprobes: what an isolated CPU took on 7.2 when so many processes hit so many sites
// of a nop10 for the first time, and again when the probes went; nothing on a nop5. On
// 6.12 a probe that goes cost one.
func TestUprobes(t *testing.T) {
	for _, c := range []struct{ sites, processes, want int }{{1, 1, 3}, {1, 2, 6}, {1, 4, 12}, {10, 1, 30}, {10, 2, 60},
		{10, 4, 120}, {100, 1, 300}, {100, 2, 600}, {100, 4, 1200}} {
		for insn, want := range map[uprobes.Insn]int{uprobes.Nop10: c.want, uprobes.Nop5: 0} {
			r := mustReplay(t, "x86_64-7.2")
			b, err := uprobes.Of("7.2.13", insn)
			if err != nil {
				t.Fatal(err)
			}
			for _, on := range []bool{true, false} {
				r.uprobes(b, insn, c.sites, c.processes, on)
				if got := taken(t, r); got != want {
					t.Errorf("%d sites of %v, %d processes, on %v: %d, measured %d", c.sites, insn, c.processes, on, got, want)
				}
			}
		}
	}
	r := mustReplay(t, "x86_64-6.12")
	b, err := uprobes.Of("6.12", uprobes.Nop5)
	if err != nil {
		t.Fatal(err)
	}
	r.uprobes(b, uprobes.Nop5, 10, 4, true)
	if got := taken(t, r); got != 0 {
		t.Errorf("6.12, on: %d", got)
	}
	r.uprobes(b, uprobes.Nop5, 10, 4, false)
	if got := taken(t, r); got != 10 {
		t.Errorf("6.12, off: %d, measured 1 a probe", got)
	}
	for _, c := range []struct {
		kernel, program string
		on, off         int
	}{{"x86_64-6.12", "2xnop5@2", 0, 2}, {"x86_64-7.2", "2xnop10@2", 12, 12}, {"x86_64-7.2", "5xother", 0, 0},
		{"x86_64-7.1", "2xnop5@2", 12, 0}} {
		if on, off := switched(t, c.kernel, "uprobe:"+c.program, "CAL"); on != c.on || off != c.off {
			t.Errorf("%s, %s: %d and %d, want %d and %d", c.kernel, c.program, on, off, c.on, c.off)
		}
	}
	for spec, want := range map[string]string{"uprobe:/no/such": "no such " +
		"file", "uprobe:x@0": "processes", "uprobe": "want uprobe:"} {
		if _, err := mustReplay(t, "x86_64-7.2").Switch(spec, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	if _, err := mustReplay(t, "arm64-6.12").Switch("uprobe:x", true); err == nil ||
		!strings.Contains(err.Error(), "only x86-64") {
		t.Error(err)
	}
}

// TestFirstModule: on 7.2.13 (Debian's cloud kernel, 12 modules that no rule had seen), the least that receivers took
// while no other module was loaded: 18 with text for the start, 9 without, 31 of tee with four sites of static calls. Were
// the cache in use, two fewer would be.
func TestFirstModule(t *testing.T) {
	areas := func(all ...image.Area) map[image.Area]int {
		m := map[image.Area]int{}
		for _, a := range append(all, image.Data, image.InitData, image.Rodata, image.Text) {
			m[a] = 1
		}
		return m
	}
	for _, c := range []struct {
		name    string
		m       image.Module
		on, off int
	}{
		{"gf128mul", image.Module{Areas: areas()}, 9, 7},
		{"act_skbmod", image.Module{Areas: areas(image.InitText)}, 18, 7},
		{"tee", image.Module{Areas: areas(image.InitText, image.CallTable), Sites: 4}, 31, 8},
	} {
		for state, fewer := range map[string]int{"modules=none": 0, "record-cmd=off": 2} {
			r, err := mustKernel(t, "x86_64-7.2").In([]string{state}).NewReplay(nil)
			if err != nil {
				t.Fatal(err)
			}
			r.load(&c.m)
			on := taken(t, r)
			r.unload(&c.m)
			if off := taken(t, r); on != c.on-fewer || off != c.off {
				t.Errorf("%s, %s: %d and %d, want %d and %d", c.name, state, on, off, c.on-fewer, c.off)
			}
		}
	}
}

// TestAreaByArea: how much one more area of a module costs. Constants are protected (module_enable_rodata_ro,
// kernel/module/strict_rwx.c), those for the start freed, too; the table of calls becomes read-only with what else does so
// after the start in 7.2, and is data before.
func TestAreaByArea(t *testing.T) {
	base := []image.Area{image.Text, image.Data, image.InitData, image.Rodata}
	cost := func(name string, areas ...image.Area) (on, off int) {
		m := &image.Module{Areas: map[image.Area]int{}}
		for _, a := range areas {
			m.Areas[a] = 1
		}
		r := mustReplay(t, name)
		r.load(m)
		on = taken(t, r)
		r.unload(m)
		return on, taken(t, r)
	}
	for _, c := range []struct {
		kernel  string
		there   []image.Area
		more    image.Area
		on, off int
	}{
		{"x86_64-7.2", base, image.InitRodata, 2, 0},
		{"x86_64-6.12", base, image.InitRodata, 2, 0},
		{"x86_64-6.1", base, image.InitRodata, 1, 0}, // one block is freed
		{"x86_64-7.2", append(base, image.CallTable), image.AfterInit, 0, 0},
		{"x86_64-7.2", append(base, image.AfterInit), image.CallTable, 0, 0},
		{"x86_64-6.12", append(base, image.CallTable), image.AfterInit, 1, 1},
		{"x86_64-6.12", append(base, image.AfterInit), image.CallTable, 0, 0},
		{"arm64-7.2", base, image.Rodata, 0, 0},
		{"arm64-7.2", []image.Area{image.Text, image.Data, image.InitData}, image.Rodata, 1, 0},
	} {
		on, off := cost(c.kernel, c.there...)
		with, without := cost(c.kernel, append(c.there, c.more)...)
		if with-on != c.on || without-off != c.off {
			t.Errorf("%s: area %d beside %v: %d and %d more, want %d and %d", c.kernel, c.more, c.there, with-on, without-off,
				c.on, c.off)
		}
	}
}

// TestSecondModule: the first module that comes fills the cache of executable memory, and the next takes its text from there.
func TestSecondModule(t *testing.T) {
	r, err := mustKernel(t, "x86_64-7.2").In([]string{"modules=none"}).NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &image.Module{Areas: map[image.Area]int{image.Text: 1, image.Data: 1, image.InitData: 1}}
	r.load(m)
	first := taken(t, r)
	r.load(m)
	if second := taken(t, r); first-second != 2 {
		t.Errorf("%d and %d, want two fewer", first, second)
	}
}

// TestFences: riscv64's 6.12.107, booted, had its firmware flush translations 15 and 13 times for nls_cp866, whose
// constants take two pages, and fetch anew five times, once an area; libeth has no start and four places for Zbb.
func TestFences(t *testing.T) {
	const fetch = "FW_FENCE_I_RECVD"
	for _, c := range []struct {
		kernel  string
		m       *image.Module
		on, off map[string]int
	}{
		{"riscv64-6.12", &image.Module{Areas: map[image.Area]int{image.Text: 1, image.InitText: 1, image.Rodata: 4097,
			image.Data: 8192, image.InitData: 4096}}, map[string]int{fetch: 5, flushRow: 9 + 3 + 3}, map[string]int{flushRow: 3 + 5 + 5}},
		{"riscv64-6.12", &image.Module{Zbb: 4, Areas: map[image.Area]int{image.Text: 1, image.Rodata: 1, image.Data: 1,
			image.InitData: 1}}, map[string]int{fetch: 4 + 4, flushRow: 7 + 3}, map[string]int{flushRow: 3 * 3}},
		{"riscv64-7.2", &image.Module{Areas: map[image.Area]int{image.Text: 1, image.AfterInit: 1, image.Rodata: 1}},
			map[string]int{fetch: 3, flushRow: 2 + 2 + 2}, map[string]int{flushRow: 3 * 3}},
	} {
		r := mustReplay(t, c.kernel)
		for i, want := range []map[string]int{c.on, c.off} {
			if i == 0 {
				r.load(c.m)
			} else {
				r.unload(c.m)
			}
			lines, err := r.Take()
			got := map[string]int{}
			for _, l := range lines {
				got[l.Row] += l.Rounds()
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s, %+v, step %d: %v\n%s", c.kernel, c.m, i, err, diff)
			}
		}
	}
}

// TestLoad: a module takes three rounds a site: 7.2's ext4 has 432 sites, and 1308 were measured before what was for
// its start had gone, and while a large page was split; its kvm 808, and 2441. By the stacks of those who sent them,
// dummy takes 8 for two parts of text, 1 for its constants, 2 after the start and 6 when what was for the start goes,
// and 8 when it is unloaded. Keys that are on are told, and a tracer that is on traces the module too.
func TestLoad(t *testing.T) {
	areas := map[image.Area]int{}
	for _, a := range []image.Area{image.Text, image.InitText, image.Data, image.InitData, image.Rodata, image.CallTable} {
		areas[a] = 1
	}
	dummy := &image.Module{Sites: 1, Areas: areas}
	r := mustReplay(t, "x86_64-7.2")
	for sites, measured := range map[int]int{1: 3 + 8 + 1 + 2 + 6, 432: 1308 + 6 - 1, 808: 2441} {
		r.load(&image.Module{Sites: sites, Areas: areas})
		if got := taken(t, r); got != measured {
			t.Errorf("%d sites: %d, measured %d", sites, got, measured)
		}
	}
	r.unload(dummy)
	if got := taken(t, r); got != 8 {
		t.Errorf("dummy, unloaded: %d", got)
	}
	r.unload(&image.Module{Areas: areas, Caches: 5}) // each wakes the others, which a busy CPU counts elsewhere
	var row Range
	lines, err := r.Take()
	for _, l := range lines {
		row.Add(&l.Entry)
	}
	if row.Least != 8 || row.Most < 8+5 || !row.OrMore || err != nil {
		t.Errorf("ntfs, unloaded: %s, %v", row, err)
	}
	r.unload(&image.Module{Areas: areas, Caches: 5})
	if got := taken(t, r); got != 8+5 {
		t.Errorf("ntfs, unloaded: %d", got)
	}
	r = mustReplay(t, "x86_64-6.12") // where they do not
	r.load(dummy)
	on := taken(t, r)
	dummy.Caches = 5
	r.unload(dummy)
	if off := taken(t, r); on != 3+2+1+1+2 || off != 3 {
		t.Errorf("dummy on 6.12: %d and %d, the least that were measured are 9 and 3", on, off)
	}
	r = mustReplay(t, "x86_64-6.1") // which does not keep memory by area
	r.load(dummy)
	on = taken(t, r)
	r.unload(dummy)
	if off := taken(t, r); on != 3+2*2+1+1+1 || off != 1 {
		t.Errorf("dummy on 6.1: %d and %d, want a static call, two protections a text, one of constants, two frees, and one", on, off)
	}
	// Of arm64, crc7, dummy, ifb, nlmon and brd have five areas, and the quietest receiver took 5, on 6.12.117.
	delete(areas, image.CallTable)
	for name, want := range map[string]int{"arm64-6.12": 5, "arm64-7.2": 5, "arm64-6.1": 2} {
		r = mustReplay(t, name)
		r.load(&image.Module{Areas: areas})
		on = taken(t, r)
		r.unload(&image.Module{Areas: areas})
		if off := taken(t, r); on != want || off != 0 {
			t.Errorf("a module on %s: %d and %d, want %d and 0", name, on, off, want)
		}
	}
	m := &image.Module{Records: 300, Keys: map[string]int{"sched_schedstats": 2}}
	r = mustReplay(t, "x86_64-7.2")
	if r.load(m); taken(t, r) != 0 {
		t.Error("records and keys cost something though no key is on and nothing is traced")
	}
	if err := r.tellAll([]string{"sched_schedstats=on", "action=function-tracer"}); err != nil {
		t.Fatal(err)
	}
	r.load(m)
	if got := taken(t, r); got != 3+2*3 {
		t.Errorf("with a key on and a tracer: %d", got)
	}
	r = mustReplay(t, "riscv64-7.2")
	r.load(m)
	if lines, _ := r.Take(); len(lines) == 0 || lines[0].Pokes != 300 || lines[0].RoundsPerPoke != 1 {
		t.Errorf("riscv64-7.2: %v, want a fence a record", lines)
	}
	r = mustReplay(t, "riscv64-6.12") // which stops the machine for an update, and cuts none into batches
	if err := r.tellAll([]string{"action=function-tracer"}); err != nil {
		t.Fatal(err)
	}
	r.load(m)
	lines, _ = r.Take()
	for _, l := range lines {
		if strings.Contains(l.Source, "batches") {
			t.Errorf("riscv64-6.12: %+v", l)
		}
	}
}

// TestOwnProgram: a kernel that attaches a program while it boots changes no call in the
// common entries for the next one: Ubuntu's 6.5 and 6.8 took 39 and 36 for a kprobe
// event, where others took 52 and 49.
func TestOwnProgram(t *testing.T) {
	k := *mustKernel(t, "x86_64-6.12")
	facts := *k.Facts
	facts.Mechanisms = map[string]image.Mechanism{}
	for name, m := range k.Facts.Mechanisms {
		facts.Mechanisms[name] = m
	}
	facts.Mechanisms[image.DirectAtBoot] = image.Mechanism{Name: image.DirectAtBoot, Value: 1}
	k.Facts = &facts
	r, err := k.NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{39, 36} {
		lines, err := r.Switch("kprobe", i == 0)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, l := range lines {
			sum += l.Rounds()
		}
		if sum != want {
			t.Errorf("%d, measured %d", sum, want)
		}
	}
}
