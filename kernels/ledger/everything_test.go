// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/records"
)

// everyAction is each action, with arguments that kernels have and such as they do not, in states that some of them
// change.
var everyAction = []string{
	"function-tracer", "function-tracer:vfs_*", "function-tracer:no_such_function", "function-tracer-first",
	"function-graph",
	"function-graph:vfs_read", "instance", "instance:vfs_read", "filter-change:vfs_read>vfs_*",
	"filter-change:vfs_read>vfs_read",
	"filter-change:vfs_read", "setfilter:vfs_*", "set_ftrace_pid", "tracepoint:sched_switch",
	"tracepoint:sched/sched_switch",
	"tracepoint:sched_swicth", "perf-event:sched/sched_waking", "perf-event:sys_enter_openat",
	"raw-tracepoint:sched_switch",
	"raw-tracepoint:none", "record-cmd=0", "record-cmd=0:sched/sched_wakeup", "record-cmd=0:none", "event-group:irq",
	"event-group:all",
	"event-group:none", "static-key:sched_schedstats", "static-key:none", "kprobe", "kprobe:vfs_write",
	"kprobe:vfs_write+4", "kretprobe",
	"kretprobe:vfs_write", "perf-kprobe:vfs_write", "fentry", "fentry:vfs_write", "fexit:vfs_write", "kprobe-multi",
	"kprobe-multi:7",
	"kprobe-multi:vfs_*", "kprobe-multi:0", "tracing-multi", "tracing-multi:300", "tracing-multi:x", "function-call:3",
	"function-call:-1",
	"function-call:x", "uprobe:nop5", "uprobe:3xnop10@2", "uprobe:none", "module-load:none", "module-unload:none",
	"instance:", "none",
	"set_ftrace_pid:1", "tracepoint",
}

// everyKernel is one of each way to change records.
var everyKernel = []string{"x86_64-6.12", "arm64-6.12", "riscv64-7.2", "riscv64-6.12"}

var everyState = [][]string{nil, {"recording=on"}, {"action=function-tracer"}, {"action=instance",
	"action=tracepoint:sched/sched_switch"},
	{"action=function-graph"}, {"action=kprobe"}, {"action=fentry"}}

// TestEverything: the sums of the forecasts of every action on kernels of each kind, and all refusals. Where a
// sum changes, textpoke kernels predict tells of what.
func TestEverything(t *testing.T) {
	var out bytes.Buffer
	var raw []records.Raw
	for i, name := range strings.Fields("vfs_write vfs_read vfs_open schedule vfs_readv kfree d a b c") {
		raw = append(raw, records.Raw{Addr: records.Addr(16 * (i + 1)), Symbol: name})
	}
	table, err := records.New("some", "", raw)
	if err != nil {
		t.Fatal(err)
	}
	roles := []cpus.Role{cpus.Busy, cpus.Busy, cpus.Idle, cpus.Isolated, cpus.Offline}
	refusals, names := map[string][]string{}, []string(nil)
	for _, name := range everyKernel {
		for _, action := range everyAction {
			sum := sha256.New()
			for _, state := range everyState {
				k := mustKernel(t, name).In(state)
				rows, err := k.Predict(table, Once(action), roles)
				if err != nil {
					text := strings.ReplaceAll(err.Error(), name, "KERNEL")
					if refusals[text] == nil {
						names = append(names, text)
					}
					if !slices.Contains(refusals[text], name) {
						refusals[text] = append(refusals[text], name)
					}
				}
				for _, p := range rows {
					line := p.ofCause(func(l *Line) any { return fmt.Sprintf("%+v %d %v", l.Entry, l.Rounds(), l.Waits()) }, "total")
					fmt.Fprintln(sum, p.Name(), p.role, p.interrupts, p.within, p.bound(), p.Total(), line)
				}
				fmt.Fprintln(sum, Most(rows))
			}
			fmt.Fprintf(&out, "%.6x %s %s\n", sum.Sum(nil), name, action)
		}
	}
	for _, text := range names {
		fmt.Fprintf(&out, "%s\n\t%s\n", text, strings.Join(refusals[text], " "))
	}
	golden.Check(t, filepath.Join("testdata", "everything.txt"), out.Bytes())
}

// TestFactsTwice: the facts of each kernel, written and read again, are written the same.
func TestFactsTwice(t *testing.T) {
	for _, name := range everyKernel {
		k := mustKernel(t, name)
		if k.Facts == nil {
			continue
		}
		var first, second bytes.Buffer
		if err := WriteFacts(&first, k); err != nil {
			t.Fatal(err)
		}
		again, err := ReadFacts("f.csv", bytes.NewReader(first.Bytes()))
		if err == nil {
			err = WriteFacts(&second, again)
		}
		if err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: %d and %d bytes, %v", name, first.Len(), second.Len(), err)
		}
	}
}
