// SPDX-License-Identifier: Apache-2.0

package image

import (
	"regexp"
	"strings"
)

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
		k.Note("the table of branches is not named: %d entries at %#x by what they hold", most, best)
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
	k.Note("tracepoints are not named: %d by what they hold", len(k.tracepoints))
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
