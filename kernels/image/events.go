// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// Event is one trace event.
type Event struct {
	Group, Name string // events/GROUP/NAME
	Tracepoint  string // that it hooks; "" for one of a class of its own, such as syscalls
}

// Names of symbols that the kernel's macros make (include/linux/tracepoint.h,
// include/trace/trace_events.h, include/linux/static_call_types.h).
const (
	tracepointSymbol = "__tracepoint_"
	iteratorSymbol   = "__traceiter_"
	stubSymbol       = "__probestub_"
	eventSymbol      = "event_"
	callKeySymbol    = "__SCK__"
	trampolineSymbol = "__SCT__"
	tpCall           = "tp_func_" // of the static call of a tracepoint
)

// readEvents finds the tracepoints by their symbols, and the events in the table of
// pointers to struct trace_event_call. Without names of data they are found by what
// they hold.
func (k *Kernel) readEvents() {
	k.tracepoints = map[uint64]string{}
	for name, addrs := range k.Names {
		tp, ok := strings.CutPrefix(name, tracepointSymbol)
		for _, at := range addrs {
			if ok && k.Text(k.Pointer(at)) == tp { // __tracepoint_ext_NAME is something else
				k.tracepoints[at] = tp
			}
		}
	}
	if len(k.tracepoints) == 0 {
		k.findTracepoints()
	}
	if !k.Has("__start_ftrace_events") {
		return
	}
	_, b := k.Between("__start_ftrace_events", "__stop_ftrace_events", 8)
	for ; len(b) >= 8; b = b[8:] {
		if e, ok := k.event(le.Uint64(b)); ok {
			k.Events = append(k.Events, e)
		}
	}
}

// event reads a struct trace_event_call.
func (k *Kernel) event(call uint64) (Event, bool) {
	e := Event{Group: k.Text(k.Pointer(k.Pointer(call+k.layouts.class) + k.layouts.system))}
	what := k.Pointer(call + k.layouts.event)
	if tp, ok := k.tracepoints[what]; ok {
		e.Tracepoint, e.Name = tp, tp
	} else {
		e.Name = k.Text(what)
	}
	// The symbol's name comes first: an event may be called otherwise than its tracepoint
	// (DEFINE_EVENT_FN and its kind).
	for _, y := range k.Starting(call) {
		if name, ok := strings.CutPrefix(y.Name, eventSymbol); ok && e.Tracepoint != "" {
			e.Name = name
		}
	}
	return e, e.Group != "" && e.Name != ""
}

// Tracepoint is a tracepoint's parts.
type Tracepoint struct {
	Name     string
	Key      uint64 // its static key
	RegFunc  string // called before its first user; "" for none
	Switches []uint64
}

// Tracepoints are all of them, by name.
func (k *Kernel) Tracepoints() (out []Tracepoint) {
	for at, name := range k.tracepoints {
		tp := Tracepoint{Name: name, Key: at + k.layouts.key}
		if reg := k.regFunc(at, name); reg != 0 {
			if y, offset, ok := k.Symbol(reg); ok && offset == 0 {
				tp.RegFunc, tp.Switches = vmlinux.Plain(y.Name), k.keysIn(vmlinux.Plain(y.Name))
			}
		}
		out = append(out, tp)
	}
	slices.SortFunc(out, func(a, b Tracepoint) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// regFunc is what a tracepoint calls before its first user. It follows the iterator and
// the stub of probes, where a kernel has them; since Linux 6.13 what points to it
// follows them, behind the list of probes, which is empty in an image (struct tracepoint
// and struct tracepoint_ext, include/linux/tracepoint-defs.h).
func (k *Kernel) regFunc(at uint64, name string) uint64 {
	slot := at + k.layouts.key + 16
	for p := slot; p < slot+48; p += 8 {
		y, offset, ok := k.Symbol(k.Pointer(p))
		if ok && offset == 0 && (y.Name == iteratorSymbol+name || y.Name == stubSymbol+name) {
			slot = p + 8
		}
	}
	v := cmp.Or(k.Pointer(slot), k.Pointer(slot+8))
	if !k.Stays(v) {
		v = k.Pointer(v)
	}
	if k.Stays(v) {
		return v
	}
	return 0
}

// keysIn are the static keys that a function's code names, where it switches any.
func (k *Kernel) keysIn(name string) (out []uint64) {
	calls := k.Calls(name)
	if !slices.ContainsFunc(sortedNames(calls), func(n string) bool { return strings.HasPrefix(n, "static_key_") }) {
		return nil
	}
	for _, ref := range k.Refs(name) {
		if _, ok := k.Keys.Branches[ref]; ok && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// TracepointsIn are the tracepoints that a function's code names.
func (k *Kernel) TracepointsIn(name string) (out []string) {
	for _, ref := range k.Refs(name) {
		if tp, ok := k.tracepoints[ref]; ok && !slices.Contains(out, tp) {
			out = append(out, tp)
		}
	}
	return out
}

// Name is the symbol of a place, with the distance from it where there is one.
func (k *Kernel) Name(at uint64) string {
	y, offset, ok := k.Symbol(at)
	switch {
	case !ok || offset > 1<<16:
		return fmt.Sprintf("%#x", at)
	case offset == 0:
		return y.Name
	}
	return fmt.Sprintf("%s+%#x", y.Name, offset)
}

// Call is a static call: its sites, and whether it has a trampoline.
type Call struct {
	Name       string
	Trampoline bool
	Sites      int
}

// StaticCalls are all of them, by name.
func (k *Kernel) StaticCalls() (out []Call) {
	seen := map[string]bool{}
	for name := range k.Names {
		for _, prefix := range []string{callKeySymbol, trampolineSymbol} {
			if call, ok := strings.CutPrefix(name, prefix); ok && !seen[call] {
				seen[call] = true
				key, _ := k.Addr(callKeySymbol + call)
				out = append(out, Call{call, k.Has(trampolineSymbol + call), len(k.Sites.Of[key])})
			}
		}
	}
	slices.SortFunc(out, func(a, b Call) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// CallOf is the name of a tracepoint's static call.
func CallOf(tracepoint string) string { return tpCall + tracepoint }
