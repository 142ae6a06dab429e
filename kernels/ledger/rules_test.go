// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
)

// with is a kernel one of whose mechanisms has another value.
func with(k *Kernel, name string, value int) *Kernel {
	changed, facts := *k, *k.Facts
	facts.Mechanisms = maps.Clone(facts.Mechanisms)
	facts.Mechanisms[name] = image.Mechanism{Name: name, Value: value, Evidence: "a test"}
	changed.Facts = &facts
	return &changed
}

// both is what a receiver takes in all rows, on and off, and the lines.
func both(t *testing.T, k *Kernel, action string) (sums [2]int, lines [2][]Line) {
	t.Helper()
	r, err := k.NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sums {
		if lines[i], err = r.Switch(action, i == 0); err != nil {
			t.Fatal(err)
		}
		for _, l := range lines[i] {
			sums[i] += l.Rounds()
		}
	}
	return sums, lines
}

// TestDetachBorder: both sides of the border between 7.2.9 and 7.2.11, as booted: an image
// with arch_bpf_trampoline_skip pays three rounds for each program that goes.
func TestDetachBorder(t *testing.T) {
	now := mustKernel(t, "x86_64-7.2")
	before := with(now, image.DirectCuts, 0)
	for _, c := range []struct {
		action      string
		before, now [2]int
	}{
		{"tracing-multi:5", [2]int{5 + 3 + 13, 16}, [2]int{5 + 3 + 13, 31}},
		{"fentry", [2]int{17, 16}, [2]int{17, 19}},
		{"fexit", [2]int{17, 19}, [2]int{17, 19}}, // the trampoline is cut off, or the program skipped
	} {
		if got, _ := both(t, before, c.action); got != c.before {
			t.Errorf("7.2.9, %s: %v, want %v", c.action, got, c.before)
		}
		if got, _ := both(t, now, c.action); got != c.now {
			t.Errorf("7.2.11, %s: %v, want %v", c.action, got, c.now)
		}
	}
}

// TestOtherArches: what BPF trampolines cost on arm64 and riscv64, by row: measured.
func TestOtherArches(t *testing.T) {
	for _, c := range []struct {
		kernel  string
		on, off map[string]int
	}{
		{"arm64-6.12", map[string]int{"IPI1": 2}, map[string]int{"IPI1": 1 + 1}}, // the order, and a wakeup
		{"arm64-7.2", map[string]int{"IPI1": 1}, map[string]int{"IPI1": 1}},
		{"riscv64-7.2", map[string]int{"FW_FENCE_I_RECVD": 3}, map[string]int{"FW_FENCE_I_RECVD": 2, "IPI1": 1, "IPI0": 1}},
	} {
		_, lines := both(t, mustKernel(t, c.kernel), "fentry")
		for i, want := range []map[string]int{c.on, c.off} {
			got := map[string]int{}
			for _, l := range lines[i] {
				if l.Rounds() > 0 {
					got[l.Row] += l.Rounds()
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s, on %v: %v, want %v", c.kernel, i == 0, got, want)
			}
		}
	}
}

// TestLines: how a key, a record and a wakeup are told: pokes and rounds of each, the row,
// and the basis.
func TestLines(t *testing.T) {
	_, lines := both(t, mustKernel(t, "x86_64-6.12"), "static-key:sched_schedstats")
	if l := lines[0][0]; l.Pokes != 1 || l.RoundsPerPoke != 3 || l.Cause != cpus.StaticKey || l.Basis != FromTables {
		t.Errorf("key %+v", l)
	}
	for kernel, row := range map[string]string{"x86_64-5.10": "RES", "x86_64-6.1": "CAL", "x86_64-6.12": "CAL"} {
		_, lines := both(t, mustKernel(t, kernel), "instance")
		i := slices.IndexFunc(lines[1], func(l Line) bool { return l.Part == "rcu" })
		if i < 0 || lines[1][i].Row != row || lines[1][i].Basis != Assumed {
			t.Errorf("%s: a wakeup is counted in %+v, want %s", kernel, lines[1], row)
		}
	}
	for kernel, want := range map[string]string{"x86_64-6.12": "168 batches; ", "arm64-6.12": "", "riscv64-7.2": ""} {
		_, lines := both(t, mustKernel(t, kernel), "function-tracer")
		i := slices.IndexFunc(lines[0], func(l Line) bool { return l.Records > 0 })
		l := lines[0][i]
		rec := mustKernel(t, kernel).Records.Source
		if l.Source != want+rec || l.Records != l.Pokes || l.Records != mustKernel(t, kernel).Facts.Records {
			t.Errorf("%s: %+v, want %q in front of %q", kernel, l, want, rec)
		}
	}
	one, _ := both(t, mustKernel(t, "x86_64-6.12"), "tracepoint:sched_switch")
	two, _ := both(t, mustKernel(t, "x86_64-6.12"), "tracepoint:sched/sched_switch")
	if one != two || one[0] == 0 {
		t.Errorf("an event with its group: %v, without %v", two, one)
	}
	if names := WayNames(); !slices.Equal(names, []string{"fentry", "global-trampoline", "tracing-multi", "kprobe-multi"}) ||
		len(ways) != len(names) || ways[2].Name != names[2] {
		t.Errorf("ways %v", names)
	}
}

// TestStates: no probe is no probe, one makes the next cheaper; what is no state is told.
func TestStates(t *testing.T) {
	k := mustKernel(t, "x86_64-6.12")
	none, _ := both(t, k, "function-tracer")
	for state, want := range map[string]int{"probe=sched_switch:0": 0, "probe=sched_switch": 3, "probe=sched_switch:1": 3,
		"probe=sched_switch:2": 3 + 6, "recording=on": 33} {
		if got, _ := both(t, k.In([]string{state}), "function-tracer"); none[0]-got[0] != want {
			t.Errorf("%s: %d fewer, want %d", state, none[0]-got[0], want)
		}
	}
	for state, want := range map[string]string{
		"probe": "want KEY=on", "probe=": "want KEY=on", "probe=sched_switch:-1": `"-1": want a number of probes up to 1000`,
		"probe=sched_switch:1001": `"1001": want a number`, "probe=sched_switch:x": `"x": want a number`,
		"probe=nothing": `tracepoint "nothing" is not in the image`, "recording=off": `value "off": want on`,
		"nokey=on": `static key "nokey" is not in the image`, "action=kprob": "did you mean kprobe?",
	} {
		_, err := k.In([]string{state}).NewReplay(nil)
		if err == nil || !strings.HasPrefix(err.Error(), `kernel `+k.Name()+`: state "`+state+`": `) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", state, err, want)
		}
	}
	if got := k.In([]string{"a=on"}).State(); !slices.Equal(got, []string{"a=on"}) {
		t.Errorf("state %v", got)
	}
}

// TestRefusals: what is refused, word by word.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ kernel, action, want string }{
		{"x86_64-6.12", "function-tracer:", `action "function-tracer:": nothing stands behind the colon`},
		{"x86_64-6.12", "tracing-multi:5", "tracing-multi: no rule holds: no bpf_trampoline_multi_attach"},
		{"x86_64-6.12", "kprobe-multi:42758", "number 42758: there are 42757 records"},
		{"x86_64-6.12", "kprobe-multi:0", `number "0": want 1 or more`},
		{"x86_64-6.12", "kprobe:vfs_read+x", `offset "x": want a number`},
		{"x86_64-6.12", "filter-change:vfs_read", `argument "vfs_read": want two filters, as vfs_read>vfs_*`},
		{"x86_64-6.12", "uprobe:2xnop10", "program 2xnop10: release 6.12 refuses probes on 2 sites of a nop10"},
		{"arm64-6.12", "uprobe:nop5", "kernel of arm64: only x86-64 replaces the breakpoints of probes"},
		{"x86_64-6.12", "module-load:/nothing.ko", "/nothing.ko"},
		{"x86_64-6.12", "event-group:nothing", `no event of group "nothing" is in the image`},
		{"arm64-5.10", "fexit", "direct calls: no rule holds: no register_ftrace_direct"},
	} {
		r, err := mustKernel(t, c.kernel).NewReplay(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Switch(c.action, true)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want+":") {
			t.Errorf("%s, %s: %v\nwant %s", c.kernel, c.action, err, c.want)
		}
	}
	if _, err := ParseWay("fenty"); err == nil || !strings.HasPrefix(err.Error(), `way "fenty": not one of fentry,`) {
		t.Error(err)
	}
	r, err := mustKernel(t, "x86_64-6.12").NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"fentry", "function-tracer", "kprobe-multi"} {
		if _, err := r.Switch(action, false); err == nil {
			t.Errorf("%s is detached and was not attached", action)
		}
	}
	if _, err := r.Switch("function-graph", true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Switch("function-graph", true); err == nil || !strings.Contains(err.Error(), "second user") {
		t.Error(err)
	}
}

// TestBook: facts are written with all that they hold, and read again.
func TestBook(t *testing.T) {
	for _, k := range Kernels() {
		var b strings.Builder
		if err := WriteFacts(&b, k); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"\nimage," + k.Facts.Hash + ",0,sha256,\n", "\nrelease," + k.Release + ",0,,\n"} {
			if k.Facts.Hash != "" && !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q", k.Name(), want)
			}
		}
		again, err := ReadFacts("f", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again.Facts, k.Facts) {
			t.Errorf("%s: facts are others once they were written", k.Name())
		}
	}
	long := strings.Repeat("x", 60)
	for value, want := range map[string]string{long: `"` + long + `"`, long + "y": `"` + long + `..."`} {
		_, err := ReadFacts("f", strings.NewReader(factsHeader+"\n"+value+",a,1,,\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestScenarios: the three, which grids and reports go through.
func TestScenarios(t *testing.T) {
	if got := Scenarios(); !slices.Equal(got, []Scenario{"function-tracer", "function-tracer-first", "function-graph"}) {
		t.Errorf("%v", got)
	}
}

// TestInside: a kprobe inside of a function takes one round for its breakpoint, three more
// when it is optimised, and two and one when it goes (arch/x86/kernel/kprobes/opt.c).
func TestInside(t *testing.T) {
	k := mustKernel(t, "x86_64-6.12").In([]string{"recording=on"})
	got, lines := both(t, k, "kprobe:vfs_read+0x8")
	if got != [2]int{1 + 3, 2 + 1} || len(lines[0]) != 2 || lines[0][1].Fewer != 3 || lines[1][0].Fewer != 2 {
		t.Errorf("%v\n%+v", got, lines)
	}
	if got, _ := both(t, k, "kprobe:vfs_read+0"); got != [2]int{19, 16} {
		t.Errorf("at the entry: %v", got)
	}
}

// TestBranches: before batches each branch of a key is poked by itself.
func TestBranches(t *testing.T) {
	k := mustKernel(t, "x86_64-5.0")
	for name, branches := range k.Facts.Keys {
		if branches < 4 {
			continue
		}
		got, lines := both(t, k, "static-key:"+name)
		if l := lines[0][0]; got[0] != 3*branches || l.Pokes != branches || l.RoundsPerPoke != 3 {
			t.Errorf("%s, %d branches: %v, %+v", name, branches, got, l)
		}
		return
	}
	t.Error("no key has four branches")
}

// TestMerge: pokes of one kind are one entry; what was sent in sum stays by itself.
func TestMerge(t *testing.T) {
	a := Entry{Part: "p", Row: "r", Pokes: 1, RoundsPerPoke: 3, Source: "a", More: 1}
	b := Entry{Part: "p", Row: "r", Pokes: 2, RoundsPerPoke: 3, Source: "b", Fewer: 2, OrMore: true}
	got := merge(merge(nil, a), b)
	if len(got) != 1 || got[0].Pokes != 3 || got[0].Source != "a; b" || got[0].Fewer != 2 || got[0].More != 1 || !got[0].OrMore {
		t.Errorf("%+v", got)
	}
	for _, change := range []func(e *Entry){
		func(e *Entry) { e.Sent = 1 }, func(e *Entry) { e.Part = "q" }, func(e *Entry) { e.Row = "s" },
		func(e *Entry) { e.RoundsPerPoke = 1 }, func(e *Entry) { e.AfterRecords = true },
		func(e *Entry) { e.Cause = cpus.Stop }, func(e *Entry) { e.Basis = Assumed },
	} {
		other := b
		if change(&other); len(merge([]Entry{a}, other)) != 2 {
			t.Errorf("%+v and %+v are one", a, other)
		}
		if len(merge([]Entry{other}, b)) != 2 {
			t.Errorf("%+v and %+v are one", other, b)
		}
	}
}

// TestRows: rows that the rules model, of kernels that are read from facts: calls, fences by
// firmware, and wakeups where every CPU stops for records.
func TestRows(t *testing.T) {
	for name, want := range map[string]map[string]bool{
		"x86_64-6.12": {"CAL": true, "RES": false}, "arm64-6.12": {"IPI1": true, "IPI0": false},
		"riscv64-6.12": {"IPI1": true, "IPI0": true, "FW_FENCE_I_RECVD": true, flushRow: false},
		"riscv64-7.2":  {"IPI1": true, "IPI0": false, "FW_FENCE_I_RECVD": true, flushRow: false},
	} {
		var b strings.Builder
		if err := WriteFacts(&b, mustKernel(t, name)); err != nil {
			t.Fatal(err)
		}
		k, err := ReadFacts("f", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, row := range k.Rows() {
			got[row.Name] = row.Modelled
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestUnmeasured: where no release was measured that does what the image shows, nothing is
// said of its uprobes.
func TestUnmeasured(t *testing.T) {
	k := with(mustKernel(t, "x86_64-7.2"), image.UprobeCalls, 5)
	k.Release = "7.1.5"
	r, err := k.NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Switch("uprobe:nop5", true)
	if err == nil || !strings.Contains(err.Error(), "mechanism uprobe-calls: no rule holds: no measurement shows how releases "+
		"such as 7.1.5 treat probes where the image says: a test") {
		t.Error(err)
	}
}

// TestStatesAndScenarios: a state that names a function does not need a table, and a kernel
// whose own program lies on none of the records has it all the same.
func TestStatesAndScenarios(t *testing.T) {
	k := mustKernel(t, "x86_64-6.12").In([]string{"action=fentry:b"})
	entries, err := k.Ledger(FunctionTracer, true, nil)
	if err != nil || rounds(entries) != 33+3 { // the entries call the list already
		t.Errorf("%d, %v", rounds(entries), err)
	}
	table, err := anyRecord()
	if err != nil {
		t.Fatal(err)
	}
	r, err := with(mustKernel(t, "x86_64-6.12"), image.DirectAtBoot, 1).NewReplay(table)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := r.Switch("kprobe:any", true)
	sum := 0
	for _, l := range lines {
		sum += l.Rounds()
	}
	if err != nil || sum != 39 {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestOpen: a file of facts is a kernel, read once; others are told from it.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "facts.csv")
	var b strings.Builder
	if err := WriteFacts(&b, mustKernel(t, "arm64-6.12")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Open(file)
	if err != nil || k.Name() != "arm64-"+k.Release || k.File != file || k.Facts.Records != 48048 {
		t.Fatalf("%+v, %v", k, err)
	}
	if again, err := Open(file); err != nil || again != k {
		t.Errorf("read twice: %v", err)
	}
	if named, err := Open("arm64-6.12"); err != nil || named.File != "" {
		t.Errorf("%+v, %v", named, err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte("fact"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxFacts+1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no"): "no file, and not one of", large: "not a kernel image, and not a kernel's facts", dir: "read " + dir,
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
