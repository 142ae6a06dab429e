// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// perfShared are options of all of perf's commands that take events (tools/perf/builtin-*.c).
const perfShared = "e/event= a/all-cpus C/cpu= p/pid= t/tid= u/uid= o/output= i/no-inherit v/verbose q/quiet /filter= " +
	"m/mmap-pages= G/cgroup= D/delay= g /call-graph= s T/timestamp "

// perfCommands are the commands, each with options of its own.
var perfCommands = map[string]struct {
	options string
	read    func(*course, perfOptions)
}{
	"probe": {},
	"record": {perfShared + "F/freq= c/count= d/data P/period n/no-samples R/raw-samples B/no-buildid N/no-buildid-cache " +
		"b/branch-any j/branch-filter= W/weight k/clockid= r/realtime= /no-bpf-event /overwrite /all-kernel /all-user " +
		"/per-thread", (*course).perfList},
	"stat": {perfShared + "r/repeat= n/null d/detailed B/big-num A/no-aggr x/field-separator= I/interval-print= " +
		"M/metrics= /timeout= /append", (*course).perfList},
	"trace": {perfShared + "S/with-summary /summary /duration= /no-syscalls /syscalls F/pf= /failure /max-events=", (*course).perfTrace},
	"ftrace": {"a/all-cpus C/cpu= p/pid= t/tracer= T/trace-funcs= N/notrace-funcs= G/graph-funcs= g/nograph-funcs= " +
		"m/buffer-size= v/verbose n/use-nsec D/delay= /func-opts= /graph-opts= /inherit", (*course).perfFtrace},
}

// perfOptions are the values of options; of "" the words behind them.
type perfOptions map[string][]string

// task tells whether events belong to tasks, and not to CPUs.
func (o perfOptions) task() bool {
	return len(o["all-cpus"])+len(o["cpu"]) == 0 && len(o[""])+len(o["pid"])+len(o["tid"]) > 0
}

func (c *course) perf(words []string) error {
	name := strings.Join(words[:min(1, len(words))], "")
	command, ok := perfCommands[name]
	switch {
	case !ok:
		return spelling.NotOneOf(name, []string{"record", "stat", "trace", "ftrace", "probe"})
	case command.read == nil: // defines an event; what switches it on patches text
		return nil
	case len(words) > 1 && slices.Contains([]string{"ftrace trace", "ftrace latency", "ftrace profile"}, name+" "+words[1]):
		words = words[1:]
	}
	o := perfOptions{}
	rest, err := options(command.options, words[1:], func(name, value string) { o[name] = append(o[name], value) })
	if err != nil {
		return err
	}
	o[""] = rest
	if o.task() && name != "ftrace" { // the first such event has the scheduler tell (account_event, kernel/events/core.c)
		c.both("static-key:perf_sched_events")
	}
	command.read(c, o)
	c.installed(name, o)
	return nil
}

// perfSoftware are the numbers of PERF_COUNT_SW_* with a static key (perf_swevent_init, kernel/events/core.c).
var perfSoftware = map[string]int{"page-faults": 2, "faults": 2, "context-switches": 3, "cs": 3, "cpu-migrations": 4,
	"migrations": 4, "minor-faults": 5, "major-faults": 6, "alignment-faults": 7, "emulation-faults": 8, "dummy": 9,
	"bpf-output": 10, "cgroup-switches": 11}

// software is an event with a key; where no branch asks the key there is nothing to patch.
func (c *course) software(name string) {
	const keySize = 16 // sizeof(struct static_key): perf_swevent_enabled is an array of these
	key := fmt.Sprintf("perf_swevent_enabled+%#x", keySize*perfSoftware[name])
	if c.Kernel.Facts.Keys[key] > 0 {
		c.both("static-key:" + key)
	}
}

var (
	// Braces group events; terms of a PMU stand between slashes.
	perfEvent = regexp.MustCompile(`[^,{}/]+(?:/[^/]*/[^,{}/]*)?`)
	modifiers = regexp.MustCompile(`^[a-zA-Z]{0,3}$`)
	probe     = regexp.MustCompile(`^probe:(\w+?)(?:__return)?(?:_\d+)?(?::\w*)?$`)
)

// perfEvents switches a list of events on. Events of hardware and breakpoints patch no text.
func (c *course) perfEvents(lists []string) {
	for _, e := range perfEvent.FindAllString(strings.Join(lists, ","), -1) {
		group, name, _ := strings.Cut(e, ":")
		name, _, _ = strings.Cut(name, ":")
		switch kprobe := probe.FindStringSubmatch(e); {
		case kprobe != nil:
			c.both("perf-kprobe:" + kprobe[1])
		case perfSoftware[group] > 0:
			c.software(group)
		case !strings.Contains(group, "/") && group != "mem" && !modifiers.MatchString(name):
			c.events("perf-event", group+":"+name)
		}
	}
}

// perfList is perf record and perf stat.
func (c *course) perfList(o perfOptions) { c.perfEvents(o["event"]) }

// installed is the function calls that install events on CPUs: one for a CPU's first event, and one for each that is not
// made disabled (perf_install_in_context, kernel/events/core.c, Linux 6.12). perf record has two such for itself
// (tools/perf/builtin-record.c: the tracking event, and the sideband thread's), the second also for tasks. perf stat goes
// to each CPU before it opens events there.
func (c *course) installed(command string, o perfOptions) {
	calls := map[string]int{"record": 3, "trace": 1}[command]
	if o.task() {
		calls = map[string]int{"record": 1}[command]
	}
	if calls > 0 {
		c.both(fmt.Sprint("function-call:", calls))
	}
}

// perfTrace is perf trace: all system calls, unless -e names only trace events.
func (c *course) perfTrace(o perfOptions) {
	named := perfEvent.FindAllString(strings.Join(o["event"], ","), -1)
	events := slices.DeleteFunc(slices.Clone(named), func(e string) bool { return !strings.Contains(e, ":") })
	if o["no-syscalls"] == nil && (len(events) == 0 || len(events) < len(named) || o["syscalls"] != nil) {
		c.perfEvents([]string{"raw_syscalls:sys_enter", "raw_syscalls:sys_exit"})
	}
	c.perfEvents(events)
	if o["pf"] != nil {
		c.unknown("-F: page faults")
	}
}

// perfFtrace is perf ftrace, which switches the tracer off before it empties its filter. A filter of processes hooks
// sched_switch (ftrace_filter_pid_sched_switch_probe, kernel/trace/ftrace.c).
func (c *course) perfFtrace(o perfOptions) {
	filter := strings.Join(o["trace-funcs"], " ")
	for _, f := range o["notrace-funcs"] {
		filter += " !" + f
	}
	tracer := "function_graph"
	if o["tracer"] != nil {
		tracer = o["tracer"][0]
	} else if filter != "" && o["graph-funcs"] == nil {
		tracer = "function"
	}
	if o.task() {
		c.both("raw-tracepoint:sched_switch")
	}
	c.tracer(tracer, "", strings.TrimSpace(filter))
}
