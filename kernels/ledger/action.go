// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
)

// Action is something that can be switched on and off.
type Action struct {
	Name     string
	Argument string // what stands behind a colon; "" for nothing
	Must     bool   // the argument must stand there
	Doc      string

	do    func(a *asked, on bool) error
	picks func(a *asked) ([]records.Addr, error) // the records that it changes; nil where it changes none
}

// actions are all that the rules know.
var actions = []Action{
	{
		"function-tracer",
		"FILTER",
		false,
		"the function tracer, on all functions or on those of a filter",
		doFunction,
		pickFilter,
	},
	{
		"function-tracer-first",
		"FILTER",
		false,
		"likewise, the first time since boot: its trampoline is made",
		doFirst,
		pickFilter,
	},
	{"function-graph", "FILTER", false, "the function_graph tracer", doGraph, pickFilter},
	{
		"instance",
		"FILTER",
		false,
		"the function tracer of another instance, while nothing else is traced",
		doInstance,
		pickFilter,
	},
	{
		"filter-change",
		"FROM>TO",
		true,
		"the function tracer's filter is changed while it is on, and changed back",
		doFilter,
		pickChange,
	},
	{"tracepoint", "[GROUP/]NAME", true, "one trace event", doEvent, nil},
	{"event-group", "NAME", true, "all trace events of a group; \"all\" is all of all", doGroup, nil},
	{"static-key", "NAME", true, "a static key, by the symbol of it: sched_schedstats", doKey, nil},
	{"kprobe", "SYMBOL[+OFFSET]", false, "an event of a kprobe, at vfs_read without a symbol", doProbe, pickSymbol},
	{"kretprobe", "SYMBOL", false, "an event of a return probe, at vfs_read without a symbol", doProbe, pickSymbol},
	{"fentry", "SYMBOL", false, "a BPF program on a function's entry, vfs_read without a symbol", doFentry, pickSymbol},
	{"fexit", "SYMBOL", false, "a BPF program on a function's entry and end", doFexit, pickSymbol},
	{
		"kprobe-multi",
		"NUMBER",
		false,
		"one BPF link to the first so many functions, without a number 1",
		doMulti,
		pickFirst,
	},
	{
		"tracing-multi",
		"NUMBER",
		false,
		"one BPF link of fentry programs to the first so many functions",
		doTracingMulti,
		pickFirst,
	},
	{"module-load", "FILE", true, "a kernel module is loaded, and unloaded again", doModule, nil},
	{"module-unload", "FILE", true, "a kernel module that is there is unloaded, and loaded again", doUnload, nil},
	{
		"uprobe",
		"PROGRAM[@PROCESSES]",
		true,
		"probes on all USDT sites of a program, or on those of a sample such as 3xnop5 (nop1, nop5, nop10, other), " +
			"hit in so many processes, one unless given",
		doUprobes,
		nil,
	},
}

// Actions are all that can be predicted of a kernel with an image.
func Actions() []Action { return slices.Clone(actions) }

// asked is an action with its argument, on a kernel in some state.
type asked struct {
	*Replay
	arg   string
	table *records.Table // nil where only counts are known
}

// ParseAction finds an action, and parts it from its argument.
func ParseAction(spec string) (a Action, arg string, err error) {
	name, arg, given := strings.Cut(spec, ":")
	i := slices.IndexFunc(actions, func(a Action) bool { return a.Name == name })
	if i < 0 {
		return Action{}, "", fmt.Errorf("action %q: %w", spec, spelling.NotOneOf(name, actionNames()))
	}
	switch a = actions[i]; {
	case a.Must && arg == "":
		return Action{}, "", fmt.Errorf("action %q: want %s:%s", spec, a.Name, a.Argument)
	case given && arg == "":
		return Action{}, "", fmt.Errorf("action %q: nothing stands behind the colon", spec)
	}
	return a, arg, nil
}

func actionNames() (names []string) {
	for _, a := range actions {
		names = append(names, a.Name)
	}
	return names
}

// Switch does an action, or takes it back, and tells what that sends. The table's
// records are those that the action may choose of.
func (r *Replay) Switch(spec string, on bool, t *records.Table) ([]Line, error) {
	a, arg, err := ParseAction(spec)
	if err != nil {
		return nil, err
	}
	if err := a.do(&asked{r, arg, t}, on); err != nil {
		return nil, fmt.Errorf("kernel %s, action %s: %w", r.k.Name(), spec, err)
	}
	lines, err := r.Take()
	if err != nil {
		return nil, fmt.Errorf("action %s: %w", spec, err)
	}
	return lines, nil
}

// errNoTable is about a kernel whose records nobody has.
var errNoTable = errors.New("no table of its records: name one (--records)")

// chosen are the addresses of the records that a filter matches, as the kernel walks
// them; all without a filter.
func (a *asked) chosenBy(filter string) ([]records.Addr, error) {
	if a.table == nil {
		return nil, errNoTable
	}
	if filter == "" {
		return a.table.Addrs(), nil
	}
	f, err := records.ParseFilter(strings.Fields(filter))
	if err != nil {
		return nil, err
	}
	var out []records.Addr
	for _, i := range f.Match(a.table) {
		out = append(out, a.table.Addr(i))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("filter %q: no record matches", filter)
	}
	return out, nil
}

// batchesOf counts the batches of records in their order (text_poke_queue,
// smp_text_poke_batch_add): one ends when it is full, and before a lower address.
func (a *asked) batchesOf(addrs []records.Addr) int {
	slots := a.k.Facts.value(image.BatchSlots)
	if slots == 0 {
		return 0
	}
	batches, n := 0, slots
	for i, at := range addrs {
		if n == slots || at < addrs[i-1] {
			batches, n = batches+1, 0
		}
		n++
	}
	return batches
}

// chosen is how many records, and batches, a filter chooses.
func (a *asked) chosen(filter string) (n, batches int, err error) {
	if n := a.k.Facts.Records; a.table == nil && filter == "" && n > 0 {
		return n, a.ascending(n), nil
	}
	addrs, err := a.chosenBy(filter)
	return len(addrs), a.batchesOf(addrs), err
}

// ascending is how many batches so many records of the core kernel take: they ascend.
func (a *asked) ascending(n int) int {
	slots := a.k.Facts.value(image.BatchSlots)
	if slots == 0 {
		return 0
	}
	return (n + slots - 1) / slots
}

func doFunction(a *asked, on bool) error { return a.traceWith(globalOps, on) }

func doInstance(a *asked, on bool) error { return a.traceWith(anInstance, on) }

func (a *asked) traceWith(o *ops, on bool) error {
	n, batches, err := a.chosen(a.arg)
	if err == nil {
		a.function(o, on, n, batches)
	}
	return err
}

func doFirst(a *asked, on bool) error {
	a.FirstUse = on
	return doFunction(a, on)
}

func doGraph(a *asked, on bool) error {
	n, batches, err := a.chosen(a.arg)
	if err == nil {
		a.graph(on, n, batches)
	}
	return err
}

// doFilter is ftrace_hash_move_and_update_ops: one pass over the records that only one
// of the filters chooses.
func doFilter(a *asked, on bool) error {
	from, to, ok := strings.Cut(a.arg, ">")
	if !ok {
		return fmt.Errorf("argument %q: want two filters, as vfs_read>vfs_*", a.arg)
	}
	changed, old, err := a.changed(from, to)
	if err != nil {
		return err
	}
	if !a.attached(globalOps.name) {
		a.function(globalOps, true, len(old), a.batchesOf(old))
		if _, err := a.Take(); err != nil {
			return err
		}
	}
	a.update(len(changed), a.batchesOf(changed))
	return nil
}

// find is the event of a name, which may have its group in front.
func (a *asked) find() (image.Event, error) {
	var names []string
	for _, e := range a.k.Facts.Events {
		if e.Name == a.arg || e.Group+"/"+e.Name == a.arg {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return image.Event{}, fmt.Errorf("event %q is not in the image%s", a.arg, spelling.Hint(a.arg, names))
}

func doEvent(a *asked, on bool) error {
	e, err := a.find()
	if err == nil {
		a.event(e, on)
	}
	return err
}

// notSwitched is the group of the tracer's own entries, which nobody switches
// (TRACE_EVENT_FL_IGNORE_ENABLE).
const notSwitched = "ftrace"

func doGroup(a *asked, on bool) error {
	n := 0
	for _, e := range a.k.Facts.Events {
		if e.Group == notSwitched || a.arg != "all" && e.Group != a.arg {
			continue
		}
		n++
		a.event(e, on)
	}
	if n == 0 {
		return fmt.Errorf("no event of group %q is in the image", a.arg)
	}
	return nil
}

func doKey(a *asked, on bool) error {
	a.in("static-key", func() { a.use(a.arg, on) })
	return nil
}

// doProbe is an event of a kprobe, which records command lines as every event does.
func doProbe(a *asked, on bool) error {
	symbol, offset, _ := strings.Cut(a.arg, "+")
	where, err := strconv.ParseUint(cmp.Or(offset, "0"), 0, 64)
	if err != nil {
		return fmt.Errorf("offset %q: want a number", offset)
	}
	if a.table != nil {
		if _, _, err := a.chosen(cmp.Or(symbol, defaultSymbol)); err != nil {
			return err
		}
	}
	a.record(on)
	a.probe(where != 0, on)
	return nil
}

// defaultSymbol is what is probed where nothing else is said.
const defaultSymbol = "vfs_read"

func doFentry(a *asked, on bool) error { return a.program(on, false) }

func doFexit(a *asked, on bool) error { return a.program(on, true) }

// program is a BPF program on one function, also at its end.
func (a *asked) program(on, atEnd bool) error {
	symbol := cmp.Or(a.arg, defaultSymbol)
	if a.table != nil {
		if _, _, err := a.chosen(symbol); err != nil {
			return err
		}
	}
	a.directly(symbol, on, atEnd)
	return nil
}

// first is how many records the first so many are, and in how many batches.
func (a *asked) first() (n, batches int, err error) {
	if n, err = strconv.Atoi(cmp.Or(a.arg, "1")); err != nil || n < 1 {
		return 0, 0, fmt.Errorf("number %q: want 1 or more", a.arg)
	}
	if a.table == nil {
		return n, a.ascending(n), nil
	}
	if n > a.table.Len() {
		return 0, 0, fmt.Errorf("number %d: the table has %d records", n, a.table.Len())
	}
	return n, a.batchesOf(a.table.Addrs()[:n]), nil
}

func doMulti(a *asked, on bool) error {
	n, batches, err := a.first()
	if err == nil {
		a.multi(on, n, batches)
	}
	return err
}

func doTracingMulti(a *asked, on bool) error {
	n, batches, err := a.first()
	if err == nil {
		a.tracingMulti(on, n, batches)
	}
	return err
}
