// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/results/interrupts"
)

// scripted does steps in a machine, and tells what those said that say anything.
func scripted(t *testing.T, cpus string, steps []string) []Watched {
	t.Helper()
	return scriptedWith(t, cpus, steps, nil)
}

func scriptedWith(t *testing.T, cpus string, steps []string, files map[string]string) []Watched {
	t.Helper()
	kernel, program := textpoke(t)
	roles, err := ParseCPUs(cpus)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"/textpoke": program}
	maps.Copy(all, files)
	m, err := scripting(t, Config{Image: kernel, CPUs: roles, Memory: 2048,
		Actions: []string{"script:" + strings.Join(steps, ";")}}, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Skips) > 0 {
		t.Errorf("skipped: %.300v", m.Skips)
	}
	return m.Watched
}

const tracefsMount = "/sys/kernel/tracing/"

// calls is what CPUs took of function calls between two texts of /proc/interrupts, the least and the most of any but CPU 0.
func calls(t *testing.T, before, after string) (least, most int64) {
	t.Helper()
	var counts [2][]int64
	for i, text := range []string{before, after} {
		s, err := interrupts.Parse("interrupts", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		row, ok := s.Row("CAL")
		if !ok {
			t.Fatal("no row CAL")
		}
		counts[i] = row.Counts
	}
	for cpu := range counts[1] {
		counts[1][cpu] -= counts[0][cpu]
	}
	return slices.Min(counts[1][1:]), slices.Max(counts[1][1:])
}

// taken is what updates' receipts say: the least that a CPU but 0 took, each update of the text once.
func taken(t *testing.T, said []Watched) (least int64, batches int) {
	t.Helper()
	seen := map[string]int64{}
	for _, w := range said {
		rows, err := csv.NewReader(strings.NewReader(w.Text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%q: %v", w.Text, err)
		}
		state, batch, each := slices.Index(rows[0], "state"), slices.Index(rows[0], "batch"), slices.Index(rows[0], "taken")
		for _, row := range rows[1:] {
			if row[1] == "base" {
				continue
			}
			if row[state] != "live" {
				t.Errorf("%v", row)
			}
			var counts []int64
			for f := range strings.FieldsSeq(row[each]) {
				n, err := strconv.ParseInt(f, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				counts = append(counts, n)
			}
			if len(counts) < 2 {
				t.Fatalf("no receipt: %v", row)
			}
			seen[row[batch]] = slices.Min(counts[1:])
		}
	}
	for _, n := range seen {
		least += n
	}
	return least, len(seen)
}

// TestServeShares measures what eight tools take of an isolated CPU, with an instance of tracefs for each and with the
// service, whose tracer is on: small wishes together and one after the other, and large ones (docs/service.md). What it
// takes for small wishes together is a twentieth at most of what instances take, and a sixtieth of what these take one
// after the other; large wishes take the rounds of their batches, and a tenth more.
func TestServeShares(t *testing.T) {
	const clients = 8
	small := []string{"vfs_open", "vfs_write", "vfs_fstat", "vfs_statx", "vfs_mkdir", "vfs_rename", "vfs_fsync", "vfs_readlink"}
	large := []string{"vfs_*", "tcp_*", "sched_*", "kmem*", "dev_*", "ip_*", "do_sys*", "xfrm*"}
	show := "show /proc/interrupts"
	var steps []string
	// Instances: together on and off, one after the other.
	each := func(step func(i int) string) (all []string) {
		for i := range clients {
			all = append(all, step(i))
		}
		return all
	}
	tracer := func(to string) func(i int) string {
		return func(i int) string { return fmt.Sprintf("write %sinstances/i%d/current_tracer %s", tracefsMount, i, to) }
	}
	instances := func(filters []string) {
		steps = append(steps, each(func(i int) string {
			return fmt.Sprintf("write %sinstances/i%d/set_ftrace_filter %s", tracefsMount, i, filters[i])
		})...)
		steps = append(steps, show, "together "+strings.Join(each(tracer("function")), " & "), show,
			"together "+strings.Join(each(tracer("nop")), " & "), show)
		for i := range clients {
			steps = append(steps, tracer("function")(i), tracer("nop")(i))
		}
		steps = append(steps, show)
	}
	steps = append(steps, each(func(i int) string { return fmt.Sprintf("mkdir %sinstances/i%d", tracefsMount, i) })...)
	instances(small)
	instances(large)
	// The service.
	ask := func(verb string, chosen []string, flag string) []string {
		return each(func(i int) string {
			return fmt.Sprintf("run ctl %s --client c%d --%s %s --format csv", verb, i, flag, chosen[i])
		})
	}
	const serve = "start serve --machine kernel --data /data --log warn"
	const base = "until ctl enable --client base --record vfs_read --format csv"
	steps = append(steps, serve, base)
	for i := range clients {
		steps = append(steps, ask("enable", small, "record")[i], ask("disable", small, "record")[i])
	}
	// All have asked and gone when the update begins: what their programs send is none of it.
	steps = append(steps, "kill", serve+" --gather 15s", base)
	together := func(verb string, chosen []string, flag string) {
		all := strings.Join(ask(verb, chosen, flag), " & ")
		steps = append(steps, "together "+strings.ReplaceAll(all, "--format csv", "--no-wait"), base, // which ends behind them
			"run ctl status --newest --limit 9 --columns all --format csv")
	}
	together("enable", small, "record")
	together("disable", small, "record")
	together("enable", large, "filter")
	steps = append(steps, "show "+tracefsMount+"instances/textpoke/set_ftrace_filter")
	together("disable", large, "filter")
	steps = append(steps, "kill")
	told := scripted(t, "idle=3,isolated=1", steps)
	if want := 8 + 1 + 2*clients + 1 + 1 + 4*(clients+2) + 1 + 1; len(told) != want {
		t.Fatalf("%d answers, want %d", len(told), want)
	}
	next := func(n int) (some []Watched) {
		some, told = told[:n], told[n:]
		return some
	}
	type took struct{ on, off, after int64 }
	var apart [2]took
	for i := range apart {
		s := next(4)
		apart[i].on, _ = calls(t, s[0].Text, s[1].Text)
		apart[i].off, _ = calls(t, s[1].Text, s[2].Text)
		apart[i].after, _ = calls(t, s[2].Text, s[3].Text)
	}
	next(1)
	var shared [2]took
	var batches [4]int
	shared[0].after, _ = taken(t, next(2*clients))
	next(2)
	shared[0].on, batches[0] = taken(t, next(clients + 2)[clients+1:])
	shared[0].off, batches[1] = taken(t, next(clients + 2)[clients+1:])
	shared[1].on, batches[2] = taken(t, next(clients + 2)[clients+1:])
	functions := strings.Count(next(1)[0].Text, "\n") - 1
	shared[1].off, batches[3] = taken(t, next(clients + 2)[clients+1:])
	t.Logf("small: instances %+v, service %+v in %v updates", apart[0], shared[0], batches[:2])
	t.Logf("large, %d functions: instances %+v, service %+v in %v updates", functions, apart[1], shared[1], batches[2:])
	if batches != [4]int{1, 1, 1, 1} {
		t.Errorf("clients at the same time made %v updates, want one each", batches)
	}
	if a, s := apart[0].on+apart[0].off, shared[0].on+shared[0].off; a < 20*s {
		t.Errorf("small wishes at the same time: %d with instances, %d with the service: want 20 times fewer", a, s)
	}
	if a, s := apart[0].after, shared[0].on+shared[0].off; a < 60*s {
		t.Errorf("small wishes one after the other: %d with instances, %d with the service, merged: want 60 times fewer", a, s)
	}
	ideal := int64(3 * ((functions + 255) / 256))
	for _, n := range []int64{shared[1].on, shared[1].off} {
		if n < ideal || 10*n > 11*ideal {
			t.Errorf("%d functions took %d interrupts, want %d to a tenth more", functions, n, ideal)
		}
	}
}

// TestCauses: on Linux 6.5 and later, kernel watch --causes names who changed text, the service by its client, and how
// often an isolated CPU was interrupted for it: three rounds for a batch, twice three for a key that is switched on and
// off. Programs and trace events that watch at the same time count the same.
func TestCauses(t *testing.T) {
	const watch = "run kernel watch --causes --for 40s --interval 500ms --format csv --by "
	told := scripted(t, "idle=2,isolated=1", []string{
		"start serve --machine kernel --data /data --log warn --gather 20s",
		"until ctl enable --client base --record vfs_write --format csv",
		"together " + watch + "bpf --metrics /metrics & " + watch + "events & " +
			"run ctl enable --client late --record vfs_read --format csv",
		"show /metrics", "run kernel watch --causes --top --for 2s", "kill"})
	found := 0
	for _, w := range told {
		t.Logf("exit %d: %.2000s", w.Code, w.Text)
		found += strings.Count(w.Text, "\ntext,do_sync_core,textpoke for late,,6,3\n")
	}
	if found != 2 {
		t.Errorf("%d times three rounds of text to two CPUs, one of them isolated, by textpoke for late: want 2", found)
	}
}

// TestServeReceipts compares the receipts of fifty random updates with their forecasts, in a machine that has its kernel's
// image, on an isolated CPU, on which the server never runs: none is below its forecast. What is above in all is no more
// than the CPU takes besides, which is an interrupt a second: an update takes about one in an emulator that is busy.
func TestServeReceipts(t *testing.T) {
	kernel := os.Getenv("TEXTPOKE_KERNEL")
	const updates = 50
	rng := rand.New(rand.NewPCG(26, updates))
	patterns := []string{"vfs_*", "tcp_*", "ext4_*", "kmem*", "sched_*", "dev_*", "ip_*", "do_sys*", "xfrm*", "page_*"}
	on := make([]bool, len(patterns))
	steps := []string{"start serve --machine kernel --data /data --log warn --kernel /vmlinuz",
		"until ctl enable --client base --record security_file_open --format csv"}
	for range updates {
		i := rng.IntN(len(patterns))
		on[i] = !on[i]
		steps = append(steps, fmt.Sprintf("run ctl %s --client c%d --filter %s --format csv --columns all",
			map[bool]string{true: "enable", false: "disable"}[on[i]], i, patterns[i]))
	}
	told := scriptedWith(t, "idle=2,isolated=1", append(steps, "kill"), map[string]string{"/vmlinuz": kernel})
	equal, more, seconds := 0, 0, 0.0
	for i, w := range told[1 : 1+updates] {
		rows, err := csv.NewReader(strings.NewReader(w.Text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%s: %.200s", steps[2+i], w.Text)
		}
		cell := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
		forecast, err := strconv.Atoi(cell("forecast"))
		each := strings.Fields(cell("taken"))
		if err != nil || len(each) == 0 {
			t.Errorf("%s: no receipt: %v", steps[2+i], rows[1])
			continue
		}
		taken, _ := strconv.Atoi(each[len(each)-1])
		took, _ := strconv.Atoi(cell("took_ns"))
		switch {
		case taken == forecast:
			equal++
		case taken < forecast:
			t.Errorf("%s: the isolated CPU took %d, %d are forecast", steps[2+i], taken, forecast)
		}
		more, seconds = more+taken-forecast, seconds+float64(took)/1e9
	}
	t.Logf("%d of %d are equal; %d more than forecast in all, in %.0f s of updates", equal, updates, more, seconds)
	if float64(more) > 1.5*seconds {
		t.Errorf("%d more than forecast in %.0f s of updates", more, seconds)
	}
}

// TestServeHolds: a budget of the time holds on a kernel, too: what does not fit is refused, or waits until it does.
func TestServeHolds(t *testing.T) {
	image := os.Getenv("TEXTPOKE_KERNEL")
	told := scriptedWith(t, "idle=2,isolated=1", []string{
		"start serve --machine kernel --data /data --log warn --kernel /vmlinuz --budget isolated=60/2m",
		"until ctl enable --client base --record vfs_open --format csv", // some 52 of the 60
		"run ctl enable --client a --filter vfs_* --format csv", "run ctl enable --client b --ops event --filter irq/softirq_*",
		"run ctl enable --client b --ops event --filter irq/softirq_* --hold --format csv", "kill"},
		map[string]string{"/vmlinuz": image})
	for _, w := range told {
		t.Logf("exit %d: %.300s", w.Code, w.Text)
	}
	if refused := told[2]; refused.Code == 0 || !strings.Contains(refused.Text, "budget") {
		t.Errorf("not refused: %.300s", refused.Text)
	}
	if held := told[3]; held.Code != 0 || !strings.Contains(held.Text, "live") {
		t.Errorf("not held until it fits: %.300s", held.Text)
	}
}
