// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
)

// asked are the actions of the table, with arguments: more functions than a batch holds
// where there may be many. Modules and programs are files that nobody ships.
var asked = map[string][]string{
	"function-tracer": {"", ":vfs_*"}, "function-tracer-first": {""}, "function-graph": {"", ":vfs_read"},
	"instance": {":vfs_read"}, "filter-change": {":vfs_read>vfs_*"}, "setfilter": {":vfs_*"}, "record-cmd=0": {"", ":sched_wakeup"}, "tracepoint": {":sched_switch"},
	"event-group": {":sched"}, "static-key": {":sched_schedstats"}, "kprobe": {"", ":vfs_read+0x8"}, "kretprobe": {""},
	"fentry": {""}, "fexit": {""}, "kprobe-multi": {"", ":257", ":300"}, "tracing-multi": {"", ":257", ":300"},
	"perf-event": {":sched_switch"}, "perf-kprobe": {"", ":vfs_read+0x8"}, "raw-tracepoint": {":sched_switch"}, "function-call": {":3"}, "set_ftrace_pid": {""},
	"uprobe": {":2xnop10@2", ":5xother"}, "module-load": nil, "module-unload": nil,
}

const (
	vfsRead, vfsWrite, functionsThere = 3, 5, 600
	allThere                          = "busy=2,isolated=1,idle=1"
)

// sameTable is records whose addresses ascend and where every architecture accepts them.
func sameTable(t *testing.T, arch string) *records.Table {
	t.Helper()
	raw := make([]records.Raw, functionsThere)
	for i := range raw {
		raw[i] = records.Raw{Addr: 0xffffffff81000004 + records.Addr(64*i), Symbol: fmt.Sprint("function_", i)}
	}
	raw[vfsRead].Symbol, raw[vfsWrite].Symbol = "vfs_read", "vfs_write"
	table, err := records.New("same", arch, raw)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestOneAnswer: on every built-in kernel, every action sends the same by prediction, by
// the prediction that a measurement is held against, by the plan, on the timed engine and
// where attaching is counted; or each of them refuses it.
func TestOneAnswer(t *testing.T) {
	for _, a := range ledger.Actions() {
		if _, ok := asked[a.Name]; !ok {
			t.Errorf("action %s is not asked for", a.Name)
		}
	}
	told := 0
	for _, k := range ledger.Kernels() {
		table := sameTable(t, k.Arch)
		own := *k
		own.Own = table
		for _, a := range ledger.Actions() {
			for _, arg := range asked[a.Name] {
				t.Run(k.Name()+"/"+a.Name+arg, func(t *testing.T) {
					if oneAnswer(t, &own, a.Name+arg, table) {
						told++
					}
				})
			}
		}
	}
	if told < 170 {
		t.Errorf("only %d actions were told", told)
	}
}

// oneAnswer asks in every way, and says whether there is an answer.
func oneAnswer(t *testing.T, k *ledger.Kernel, action string, table *records.Table) bool {
	t.Helper()
	want, changed, err := predictedSums(k, action, table)
	cfg := timedConfig(t, k.Arch, k.Protocol, records.DefaultFor(k.Arch), allThere, plainCosts())
	cfg.Table, cfg.Scenario = table, &Scenario{Name: ledger.Scenario(action), Kernel: k}
	if slots := k.Facts.Mechanisms[image.BatchSlots].Value; slots > 0 {
		cfg.Buffer = sched.Buffer{Slots: slots}
	}
	switches, refused := Switches(&cfg)
	compared, notes := vm.Predicted(k, []string{action})
	if err != nil {
		if refused == nil || len(notes) == 0 {
			t.Errorf("%s, %s: %v, and others answer: %v, %v", k.Name(), action, err, refused, notes)
		}
		return false
	}
	if refused != nil || len(notes) > 0 {
		t.Errorf("%s, %s: predicted, and others refuse: %v, %v", k.Name(), action, refused, notes)
		return false
	}
	planned := totals(t, cfg)
	for i := range switches {
		direction := []string{vm.Enable, vm.Disable}[i]
		sum := 0
		for row, p := range compared[vm.Switched{Action: action, Direction: direction}] {
			sum += p.Rounds
			if modelled, ok := k.Row(row); !ok || !modelled.Modelled {
				t.Errorf("%s, %s: row %s is not modelled", k.Name(), action, row)
			}
		}
		if planned[i] != want[i] || sum > want[i] {
			t.Errorf("%s, %s, %s: predicted %d, planned %d, compared with %d", k.Name(), action, direction, want[i], planned[i],
				sum)
		}
	}
	if way, n, ok := wayOf(action); ok {
		attachedAs(t, k, way, n, want)
	}
	if changed && len(switches) == 2 {
		timedAs(t, k, cfg, want)
	}
	return true
}

// predictedSums is what a receiver takes in all rows, on and off, as kernel predict has it,
// and whether any records change.
func predictedSums(k *ledger.Kernel, action string, table *records.Table) (sums [2]int, changed bool, err error) {
	r, err := k.NewReplay(table)
	if err != nil {
		return sums, false, err
	}
	for i := range sums {
		lines, err := r.Switch(action, i == 0)
		if err != nil {
			return sums, false, err
		}
		for _, l := range lines {
			sums[i] += l.Rounds()
			changed = changed || l.Records > 0
		}
	}
	return sums, changed, nil
}

// wayOf is the way of attaching that an action is.
func wayOf(action string) (w ledger.Way, n int, ok bool) {
	name, arg, given := strings.Cut(action, ":")
	n = 1
	if given {
		if _, err := fmt.Sscan(arg, &n); err != nil {
			return w, 0, false
		}
	}
	w, err := ledger.ParseWay(name)
	return w, n, err == nil
}

func attachedAs(t *testing.T, k *ledger.Kernel, w ledger.Way, n int, want [2]int) {
	t.Helper()
	on, off, err := k.Attach(w, n, functionsThere)
	if err != nil || on.AllRounds() != want[0] || off.AllRounds() != want[1] {
		t.Errorf("%s, %s of %d: predicted %v, attaching takes %d and %d, %v", k.Name(), w.Name, n, want, on.AllRounds(),
			off.AllRounds(), err)
	}
}

func timedAs(t *testing.T, k *ledger.Kernel, cfg Config, want [2]int) {
	t.Helper()
	m := newTimedFor(t, cfg, timed.HotOnly)
	for i, row := range toggle(t, m) {
		for cpu := 1; cpu < len(cfg.Roles); cpu++ {
			sum := 0
			for cause := range cpus.NumCauses {
				sum += int(row.Counts.Taken[cpu][cause])
			}
			if sum != want[i] {
				t.Errorf("%s, %s, %s: predicted %d, on the timed engine cpu %d takes %d", k.Name(), cfg.Scenario.Name,
					row.Direction, want[i], cpu, sum)
			}
		}
	}
}
