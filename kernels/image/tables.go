// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// Keys are the branches of static keys (include/linux/jump_label.h).
type Keys struct {
	Entries  int                 // of the table
	Init     int                 // of them, in text that is thrown away after boot
	Branches map[uint64][]uint64 // by key: the others' addresses, ascending
}

// Sites are the call sites of static calls (include/linux/static_call_types.h).
type Sites struct {
	Entries int
	Init    int
	Of      map[uint64][]uint64 // by key, in the order of the table
}

// Sizes of the tables' entries: place-relative, as CONFIG_HAVE_ARCH_JUMP_LABEL_RELATIVE
// has them on all three instruction sets.
const (
	jumpBytes = 16 // s32 code, s32 target, s64 key, whose low two bits are flags
	siteBytes = 8  // s32 site, s32 key, whose low two bits are flags
)

// byKey sorts the places that a table of entries of size bytes names, each relative to
// itself, by their keys. It counts the entries, and those that are gone after boot.
func (k *Kernel) byKey(at uint64, table []byte, size int, places map[uint64][]uint64,
	key func(at uint64, entry []byte) uint64) (entries, gone int) {
	for ; len(table) >= size; at, table = at+uint64(size), table[size:] {
		entries++
		place := at + signed(le.Uint32(table), 32)
		if !k.Stays(place) {
			gone++
			continue
		}
		of := key(at, table)
		places[of] = append(places[of], place)
	}
	return entries, gone
}

func (k *Kernel) readKeys() {
	k.Keys.Branches = map[uint64][]uint64{}
	if !k.Has("__start___jump_table") {
		k.findJumps()
	}
	at, b := k.Between("__start___jump_table", "__stop___jump_table", jumpBytes)
	k.Keys.Entries, k.Keys.Init = k.byKey(at, b, jumpBytes, k.Keys.Branches, func(at uint64, entry []byte) uint64 {
		return at + 8 + le.Uint64(entry[8:])&^3
	})
	for _, branches := range k.Keys.Branches { // jump_label_sort_entries
		slices.Sort(branches)
	}
}

func (k *Kernel) readSites() {
	k.Sites.Of = map[uint64][]uint64{}
	if !k.Has("__start_static_call_sites") {
		return
	}
	at, b := k.Between("__start_static_call_sites", "__stop_static_call_sites", siteBytes)
	k.Sites.Entries, k.Sites.Init = k.byKey(at, b, siteBytes, k.Sites.Of, func(at uint64, entry []byte) uint64 {
		return at + 4 + signed(le.Uint32(entry[4:])&^3, 32)
	})
}

// KeyNames are the keys by name: the symbol, with the distance from it where the key
// lies inside of something larger. A key without any symbol goes by its address.
func (k *Kernel) KeyNames() map[uint64]string {
	out := make(map[uint64]string, len(k.Keys.Branches))
	for key := range k.Keys.Branches {
		out[key] = k.Name(key)
	}
	return out
}

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

// Without CONFIG_KALLSYMS_ALL only text is named. The tables are then found by what
// they hold, and get the names that they would have had.

// Limits below which a run is no kernel's table.
const (
	minJumps = 100
	farJump  = 1 << 18 // bytes between a branch and its target, at the most
	farData  = 1 << 27 // bytes between the start of a kernel and its last data
)

// Unnamed tells whether the image names no data, so that keys cannot be told apart.
func (k *Kernel) Unnamed() bool { return !k.Has("__start___jump_table") || k.unnamed }

// findJumps takes the longest run of entries whose code and target lie in text and near
// each other, and whose key is an aligned place that is no text.
func (k *Kernel) findJumps() {
	best, most := k.Longest(jumpBytes, k.isJump)
	k.unnamed = true
	if most >= minJumps {
		k.Add("__start___jump_table", best)
		k.Add("__stop___jump_table", best+uint64(jumpBytes*most))
		k.Note("the table of branches is not named: %d entries at %#x by their contents", most, best)
	}
}

func (k *Kernel) isJump(at uint64, b []byte) bool {
	branch, target := at+signed(le.Uint32(b), 32), at+4+signed(le.Uint32(b[4:]), 32)
	key := at + 8 + le.Uint64(b[8:])&^3
	apart := int64(branch - target)
	low := k.Segments[0].Addr
	return apart > -farJump && apart < farJump && key&7 == 0 && key >= low && key < low+farData &&
		k.IsText(branch) && k.IsText(target) && !k.IsText(key)
}

var identifier = regexp.MustCompile(`^[a-z_][a-zA-Z0-9_]{2,60}$`)

// findTracepoints finds a key with a pointer to a name right before it and functions behind it: a
// tracepoint. A structure that points to one, with a class before it, is an event.
func (k *Kernel) findTracepoints() {
	for key := range k.Keys.Branches {
		at := key - k.layouts.key
		name := k.Text(k.Pointer(at))
		if identifier.MatchString(name) &&
			(k.Stays(k.Pointer(key+16)) || k.Stays(k.Pointer(key+24)) || k.Stays(k.Pointer(key+32)) || k.Stays(k.Pointer(key+40))) {
			k.tracepoints[at] = name
			k.Add(tracepointSymbol+name, at)
		}
	}
	if len(k.tracepoints) == 0 {
		return
	}
	k.Note("tracepoints are not named: %d by their contents", len(k.tracepoints))
	if k.Has("__start_ftrace_events") {
		return
	}
	k.findSyscalls()
	back := k.layouts.event - k.layouts.class
	for _, s := range k.Segments {
		for o := int(k.layouts.event); o+8 <= len(s.Data); o += 8 {
			tp, ok := k.tracepoints[le.Uint64(s.Data[o:])]
			if !ok {
				continue
			}
			class := k.Pointer(s.Addr + uint64(o) - back)
			if group := k.Text(k.Pointer(class + k.layouts.system)); identifier.MatchString(group) && !k.IsText(class) &&
				!k.IsText(k.Pointer(class)) {
				k.Events = append(k.Events, Event{Group: group, Name: tp, Tracepoint: tp})
			}
		}
	}
}

// wrappers are what functions of system calls are called (SYSCALL_DEFINE's wrappers).
var wrappers = []string{"__x64_sys_", "__arm64_sys_", "__riscv_sys_"}

// findSyscalls names the events of system calls after the functions.
func (k *Kernel) findSyscalls() {
	for _, name := range sortedNames(k.Parts) {
		for _, w := range wrappers {
			if call, ok := strings.CutPrefix(name, w); ok {
				k.Events = append(k.Events, Event{Group: syscallGroup, Name: "sys_enter_" + call},
					Event{Group: syscallGroup, Name: "sys_exit_" + call})
			}
		}
	}
}

const syscallGroup = "syscalls"
