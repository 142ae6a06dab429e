// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"encoding/csv"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/results/interrupts"
)

// TestBoot boots a kernel of Linux 6.1 or later for x86 (the file that TEXTPOKE_KERNEL names; .ci/vm fetches
// one) and counts around three actions what is known of every such kernel: a static key costs its receivers three
// interrupts, both ways, and nothing else calls functions meanwhile (arch/x86/kernel/jump_label.c,
// text_poke_bp_batch); the tracer's own trampoline gets its function when it is switched on, for three more than when
// it is switched off; a static key interrupts isolated CPUs as well.
func TestBoot(t *testing.T) {
	image := os.Getenv("TEXTPOKE_KERNEL")
	if !*long || image == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with -long; .ci/vm does so")
	}
	_, e, err := bootable(image, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(e.QEMU); err != nil {
		t.Skipf("skipped: %s is not installed: nothing is booted", e.QEMU)
	}
	roles, err := ParseCPUs("idle=3,isolated=1")
	if err != nil {
		t.Fatal(err)
	}
	// A guest's CPUs call each other for reasons of their own, and few readings of a switch show nothing else.
	m, err := Measure(t.Context(), Config{Image: image, CPUs: roles, Repetitions: 24, Progress: func(string) {},
		Actions: []string{"static-key:sched_schedstats", "function-tracer:vfs_read", "tracepoint:no_such_event"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Skips) != 1 || m.Skips[0].Action != "tracepoint:no_such_event" {
		t.Errorf("skipped: %v", m.Skips)
	}
	predicted, notes, err := Predict(Config{Image: image, CPUs: roles,
		Actions: []string{"static-key:sched_schedstats", "function-tracer:vfs_read"}})
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, %q", err, notes)
	}
	if exact, _, wrong := Verdict(m.Compare(predicted)); len(wrong) > 0 || exact < 4 {
		t.Errorf("%d predictions are exact, wrong are %q", exact, wrong)
	}
	clean := 0
	for _, r := range m.Readings {
		if r.Action == "static-key:sched_schedstats" && r.Direction != Control {
			i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Name == "CAL" })
			if i < 0 {
				t.Fatalf("no row CAL in %+v", r)
			}
			delta := make([]int64, len(roles))
			for cpu, n := range r.Rows[i].Interrupts {
				delta[cpu] = int64(n)
			}
			if e := interrupts.Explain(delta); e.Known && e.Rounds == 3 && e.Sent[0] == 3 {
				clean++
			}
		}
	}
	if clean == 0 {
		t.Error("in no reading the counts are exactly three rounds that CPU 0 sent")
	}
	took := map[string]float64{}
	for _, s := range m.Summaries() {
		if s.Row == "CAL" {
			took[s.Action+" "+s.Direction] = s.Isolated
			if s.Quietest > s.Isolated {
				t.Errorf("%s %s: the quietest took %g, an isolated one %g", s.Action, s.Direction, s.Quietest, s.Isolated)
			}
		}
	}
	on, off := took["static-key:sched_schedstats enable"], took["static-key:sched_schedstats disable"]
	if on != 3 || off != 3 {
		t.Errorf("a static key: %g and %g, want 3 and 3", on, off)
	}
	on, off = took["function-tracer:vfs_read enable"], took["function-tracer:vfs_read disable"]
	if on-off != 3 || off < 16 {
		t.Errorf("the function tracer: %g and %g, want 3 apart and more than 16", on, off)
	}
}

// TestWatch: textpoke kernel watch, run in a machine in which it is known what happens. A static key is switched on
// and off twice, at three rounds each, and CPU 0 sends all of them. The isolated CPU takes these, and hardly another;
// the budget of two an interval is exceeded. Boots the kernel that TEXTPOKE_KERNEL names.
func TestWatch(t *testing.T) {
	kernel, program := textpoke(t)
	roles, err := ParseCPUs("idle=3,isolated=1")
	if err != nil {
		t.Fatal(err)
	}
	const repetitions, rounds = 2, 3
	steps := []string{"start kernel watch --interval 100ms --row CAL --budget isolated=2 --format csv", "await isolated"}
	for range repetitions {
		for _, on := range []string{"1", "0"} {
			steps = append(steps, "write /proc/sys/kernel/sched_schedstats "+on)
		}
	}
	steps = append(steps, "await isolated", "stop")
	m, err := scripting(t, Config{Image: kernel, CPUs: roles, Actions: []string{"script:" + strings.Join(steps, ";")},
		Progress: func(s string) { t.Log(s) }}, map[string]string{"/textpoke": program})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Watched) != 1 {
		t.Fatalf("%d watched, %v", len(m.Watched), m.Skips)
	}
	t.Log(m.Watched[0].Text)
	how, said, _ := strings.Cut(m.Watched[0].Text, "\n")
	said, over, _ := strings.Cut(said, "over the budget\n")
	if !strings.Contains(over, "over the budget of 2\n") {
		t.Errorf("%q: want the intervals that were over the budget", over)
	}
	rows, err := csv.NewReader(strings.NewReader(said)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	taken, sent := 0, 0
	for _, r := range rows[1:] {
		cell := func(name string) string { return r[slices.Index(rows[0], name)] }
		n, err := strconv.Atoi(cell("isolated"))
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		taken += n
		if strings.HasPrefix(cell("sent_by"), "CPU 0") {
			found, err := strconv.Atoi(cell("rounds"))
			if err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			sent += found
		}
	}
	// A scheduler may send the isolated CPU a call of its own now and then.
	// Where others call too, or an interval ends within a switch, the watcher does not say who sent.
	if want := 2 * repetitions * rounds; sent == 0 || sent > want || taken < want || taken > want+rounds {
		t.Errorf("CPU 0 sent %d rounds, want 1 to %d; the isolated one took %d interrupts, want %d", sent, want, taken, want)
	}
	if how != "exit status 1" {
		t.Errorf("%s: want 1, over the budget", how)
	}
}

// TestStress boots the kernel that TEXTPOKE_KERNEL names, has tracers come and go 200 times beside a CPU that goes down and
// up and a module (TEXTPOKE_MODULES names one) that comes and goes, and sees the kernel warn of nothing. What lockdep finds
// is a warning: a kernel that was built with it must still have it on at the end.
func TestStress(t *testing.T) {
	kernel, file := os.Getenv("TEXTPOKE_KERNEL"), os.Getenv("TEXTPOKE_MODULES")
	if !*long || kernel == "" || file == "" || strings.Contains(file, ",") {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with the module of TEXTPOKE_MODULES, with -long")
	}
	times := cmp.Or(os.Getenv("TEXTPOKE_TOGGLES"), "200")
	roles, err := ParseCPUs("3")
	if err != nil {
		t.Fatal(err)
	}
	m, err := scripting(t, Config{Image: kernel, CPUs: roles, Memory: 2048,
		Actions:  []string{"together:0:stress:" + times + "&reload:" + file + "&hotplug", "script:show /proc/lockdep_stats"},
		Progress: func(s string) { t.Log(s) }}, nil)
	if m != nil {
		for _, w := range m.Watched {
			if t.Log(w.Text); w.Code < 0 {
				t.Errorf("the kernel warns")
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Skips {
		if strings.HasPrefix(s.Action, "together") {
			t.Errorf("%s: %s", s.Action, s.Why)
		}
		t.Log(s)
	}
	for _, w := range m.Watched {
		if strings.Contains(w.Text, "debug_locks:") && !regexp.MustCompile(`debug_locks: +1`).MatchString(w.Text) {
			t.Error("lockdep was switched off")
		}
	}
}

// TestUprobes boots the kernel that TEXTPOKE_KERNEL names, has probes on 20 sites come and go 200 times (or as often as
// TEXTPOKE_TOGGLES says) while two threads each of two processes execute the sites, and sees every site executed every time
// and the kernel warn of nothing.
func TestUprobes(t *testing.T) {
	kernel := os.Getenv("TEXTPOKE_KERNEL")
	if !*long || kernel == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with -long")
	}
	toggles := cmp.Or(os.Getenv("TEXTPOKE_TOGGLES"), "200")
	roles, err := ParseCPUs("3")
	if err != nil {
		t.Fatal(err)
	}
	m, err := scripting(t, Config{Image: kernel, CPUs: roles, Actions: []string{"probes:" + toggles + ":20"},
		Progress: func(s string) { t.Log(s) }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Watched {
		if t.Log(w.Text); w.Code != 0 {
			t.Errorf("%d: the kernel warns", w.Code)
		}
	}
	if len(m.Watched) != 1 || len(m.Skips) > 0 {
		t.Errorf("%d told, skipped %v", len(m.Watched), m.Skips)
	}
}
