// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
)

// plots are what must happen in each shortest trace, in this order, for it to be
// the story that is told: pieces of "who: what".
var plots = map[string][]string{
	"torn-down-descriptor": {
		"patcher 0: Write head", "patcher 0: Sync 3: done", "patcher 0: Clear", "cpu 1: fetches site 1: a " +
			"breakpoint", "cpu 1: looks site 1 up",
	},
	"try-get-desc": {
		"patcher 0: Sync 3: done", "cpu 1: tries to take a reference", "patcher 0: Unpublish",
		"patcher 0: WaitHandlers: done", "cpu 1: looks site 1 up",
	},
	"unsorted-array": {"patcher 0: Publish 0..1", "cpu 1: fetches site 0: a breakpoint", "cpu 1: looks site 0 up"},
	"overfull-array": {"patcher 0: Publish 0..1"},
	"poke-walks-freed-table": {
		"patcher 0: Walk: the large page's entry leads to a table", "patcher 1: Collapse", "patcher 1: Sync 2: done",
		"patcher 1: Free", "patcher 0: Walk: reads that table",
	},
	"poke-sleeps-exposed": {"patcher 0: Write breakpoint", "patcher 1: Lock init_mm", "patcher 0: Lock init_mm: waits"},
	"nop-while-patching": {"patcher 0: Write breakpoint", "cpu 1: fetches site 0: a breakpoint", "cpu 1: looks site 0 up",
		"cpu 1: returns from the trap"},
	"kprobe-disarm": {
		"patcher 0: Write breakpoint", "patcher 0: Write head", "patcher 0: Unpublish", "cpu 1: fetches site 0: a " +
			"breakpoint", "cpu 1: looks whether",
	},
	"ghost-int3": {
		"cpu 1: fetches afresh", "cpu 1: fetches afresh", "cpu 1: fetches afresh", "patcher 0: Sync 3: done", "patcher " +
			"0: Unpublish",
		"cpu 1: fetches site 0: a breakpoint", "cpu 1: looks whether",
	},
	"static-call-fixup": {
		"patcher 0: Lock text_mutex", "patcher 0: Publish", "patcher 0: Write breakpoint of site 0", "patcher 1: Publish",
		"cpu 2: fetches site 0: a breakpoint", "cpu 2: looks site 0 up", "cpu 2: looks whether",
	},
	"jump-label-early-return": {"patcher 0: Raise", "patcher 1: Expect", "patcher 1: promises site 0",
		"cpu 1: fetches site 0"},
	"user-trap-after-membarrier": {
		"cpu 1: fetches site 0: a breakpoint", "cpu 1: answers the sender", "cpu 1: begins the signal's " +
			"handler", "cpu 1: looks whether",
	},
	"openjdk-slow-path": {
		"patcher 0: Write bytes 1-4", "cpu 1: comes to the guard of site 0: armed", "patcher 0: Write literal",
		"loads the guard of site 0: disarmed", "fetches site 0: b8 10",
	},
	"openjdk-guard-as-data": {
		"patcher 0: Write word",
		"patcher 0: Write literal",
		"comes to the guard of site 0: disarmed",
		"fetches site 0: 00 02",
	},
	"wasmtime-no-membarrier": {"patcher 0: Write word", "patcher 0: promises site 0", "fetches site 0: 1f"},
	"gvisor-usertrap": {
		"patcher 0: Write bytes 5-5", "patcher 0: Write bytes 1-6", "cpu 1: fetches site 0: b8 24 25 " +
			"80 02", "cpu 1: fetches site 0+5: 0f 05",
	},
	"chimera-spliced":     {"patcher 0: Write bytes 0-0 of site 1", "fetches site 1: e9 48"},
	"chimera-link-torn":   {"patcher 0: Write bytes 1-4", "fetches site 0: e9 11 22 33 00"},
	"dragonos-static-key": {"patcher 0: Write word", "fetches site 0: e9 37 42 ff 00"},
	"fex-load-to-branch":  {"patcher 0: Write word", "fetches site 0: "},
	"dynamorio-stub":      {"patcher 0: Write word", "fetches site 0: "},
	"livepatch-without-tasks": {
		"cpu 1: fetches site 0: call", "cpu 1: stands still", "patcher 0: Write word", "patcher 0: Release",
		"goes on with the task that was preempted on CPU", "calls ops ",
	},
	"nop10-restored-whole": {
		"cpu 1: fetches site 0: 48 89 e5", "cpu 1: answers", "patcher 0: Write tail", "cpu 1: fetches site 0+3: 00 00",
	},
	"nop10-other-trampoline": {"patcher 0: Sync 1: done", "patcher 0: Write word", "cpu 1: fetches site 0: e8"},
	"optprobe-inside": {
		"cpu 1: fetches site 0: 55",
		"cpu 1: answers",
		"patcher 0: Write tail",
		"cpu 1: fetches site 0+1: 37",
	},
	"two-nops":            {"cpu 1: fetches site 0: 90", "patcher 0: Write tail", "cpu 1: fetches site 0+1: 20"},
	"arm64-jump-label":    {"patcher 0: Write word", "patcher 0: promises site 0", "cpu 1: fetches site 0"},
	"direct-address-kept": {"patcher 0: Verify site 0", "patcher 0: Verify site 0"},
	"mismatched-ops": {
		"patcher 0: Write word", "cpu 1: loads the ops before site 0", "patcher 0: Write literal", "patcher 0: Sync 2: " +
			"done", "patcher 0: Write word",
		"cpu 1: fetches site 0",
	},
	"literal-misaligned": {"patcher 0: Write literal-low", "cpu 1: fetches site 0: call", "cpu 1: loads the ops of site 0",
		"cpu 1: calls"},
	"init-text-plt": {"patcher 0: Write word", "cpu 1: fetches site 0: a breakpoint", "cpu 1: looks whether"},
	"auipc-preempted": {
		"cpu 1: fetches site 0: 97 02 ff ff", "cpu 1: a timer interrupt: the task is preempted inside " +
			"site 0", "cpu 1: stands still",
		"patcher 0: Write word", "patcher 0: Resume", "goes on with the task", "fetches site 0+4: e7 82 02 24",
	},
	"ipi-in-stop-machine": {"patcher 0: StopMachine: asks", "cpu 1: stands still", "patcher 0: Write word",
		"patcher 0: Sync 1: asks", "patcher 0: Sync 1: waits"},
	"patcher-runs-stale": {"patcher 0: Write word", "cpu 0: fetches site 0: 13 00 01 00"},
	"local-fence-only": {"patcher 0: Write word", "patcher 0: Fence", "patcher 0: promises site 0",
		"cpu 1: fetches site 0"},
	"lost-text-mutex": {"patcher 0: Map", "patcher 1: Lock text_mutex", "patcher 1: Map",
		"patcher 0: Write word of site 0"},
	"late-store": {
		"patcher 0: Write word of site 0, into the store buffer", "patcher 0: Sync 1: asks", "cpu 1: fetches " +
			"afresh", "patcher 0: a buffered store becomes visible",
		"patcher 0: Sync 1: done", "patcher 0: promises site 0", "cpu 1: fetches site 0",
	},
	"trampoline-freed-under-sleeper": {
		"cpu 0: fetches site 0: call", "patcher 0: Write head", "patcher 0: SynchronizeRCU: done", "patcher 0: Release",
		"goes on with the task that was preempted on CPU 0", "calls ops 1 for site 0",
	},
	"direct-functions-moved": {"patcher 0: promises site 0", "patcher 0: Write direct call of site 0",
		"cpu 1: looks up whom to call directly for site 0: nobody", "cpu 1: asks what was promised"},
	"pair-without-sync": {
		"patcher 0: Sync 1: done", "cpu 1: loads the ops before site 0: ops ", "patcher 0: Write literal", "patcher 0: " +
			"Write word", "cpu 1: fetches site 0",
	},
	"pair-behind-rcu": {
		"cpu 0: loads the ops before site 0: ops ", "patcher 0: Write literal", "patcher 0: SynchronizeRCU: done",
		"patcher 0: Write word of site 0", "goes on with the task that was preempted on CPU 0", "fetches site 0",
	},
	"branch-before-literal": {"patcher 0: Release", "patcher 0: Write word", "cpu 1: fetches site 0: call",
		"cpu 1: loads the ops of site 0", "cpu 1: calls"},
	"nop-before-literal": {
		"patcher 0: Write word", "cpu 1: answers the grace period", "patcher 0: GracePeriod: done", "patcher 0: Release",
		"cpu 1: fetches site 0: call", "cpu 1: loads the ops of site 0", "cpu 1: calls",
	},
	"ops-freed-at-once": {"cpu 1: loads the ops of site 0", "patcher 0: Write literal", "patcher 0: Release",
		"cpu 1: calls"},
	"ops-freed-behind-rcu": {
		"cpu 0: loads the ops of site 0", "patcher 0: Write literal", "patcher 0: SynchronizeRCU: done", "patcher 0: Release",
		"goes on with the task that was preempted on CPU 0", "calls ops",
	},
	"direct-without-detour": {"patcher 0: Write direct call", "patcher 0: Release", "fetches site 0: call", "calls ops"},
	"direct-gap": {"patcher 0: Write breakpoint", "cpu 1: fetches site 0: a breakpoint",
		"cpu 1: returns from the trap"},
	"direct-grace-too-early": {
		"patcher 0: GracePeriod: done", "cpu 1: looks up whom to call directly for site 0: ops ", "patcher 0: Write " +
			"direct call",
		"patcher 0: Write head", "patcher 0: Release", "cpu 1: calls ops ",
	},
	"direct-freed-behind-rcu": {
		"cpu 0: fetches site 0: call", "patcher 0: Write direct call", "patcher 0: SynchronizeRCU: done", "patcher 0: " +
			"Release",
		"goes on with the task that was preempted on CPU 0", "calls ops ",
	},
	"direct-call-torn": {"patcher 0: Write lower half of the direct call", "cpu 1: looks up whom",
		"cpu 1: calls"},
	"direct-table-late": {"patcher 0: Write head", "patcher 0: promises site 0",
		"cpu 1: looks up whom to call directly for site 0: nobody", "cpu 1: asks what was promised"},
	"direct-entry-removed-first": {"patcher 0: promises site 0", "patcher 0: Write direct call",
		"cpu 1: looks up whom to call directly for site 0: nobody", "cpu 1: asks what was promised"},
	"deferral-flag-late": {
		"cpu 1: says that it is in user space", "cpu 1: fetches afresh", "patcher 0: Write breakpoint",
		"patcher 0: Sync 1 lazy: done", "patcher 0: Write tail", "cpu 1: says that it is in the kernel", "cpu 1: fetches " +
			"site 0: 0f",
	},
	"deferral-nmi-on-exit": {
		"cpu 1: says that it is in user space", "cpu 1: an NMI comes", "cpu 1: looks which page tables", "patcher 0: " +
			"Sync 1 lazy: done",
		"patcher 0: Write tail", "cpu 1: fetches site 0: 0f",
	},
	"deferral-nmi-on-entry": {
		"cpu 1: says that it is in the kernel", "cpu 1: an NMI comes", "cpu 1: looks which page tables",
		"cpu 1: says that it is in user space; the NMI is over", "cpu 1: fetches afresh", "patcher 0: Sync 1 lazy: done",
		"patcher 0: Write tail", "cpu 1: fetches site 0: 0f",
	},
	"nmi-in-stop-machine": {
		"cpu 1: stands still",
		"patcher 0: Write word",
		"cpu 1: an NMI comes",
		"cpu 1: fetches site 0: e8",
	},
	"stop-machine-skips": {"patcher 0: StopMachine lazy", "patcher 0: Write word", "cpu 1: fetches site 0: "},
	"pin-never-set": {
		"cpu 1: goes to user space", "patcher 0: StopMachine lazy", "patcher 0: Release", "cpu 1: fetches site 0: " +
			"call", "cpu 1: calls",
	},
	"queued-key-early": {"patcher 0: Raise", "patcher 1: promises site 0", "fetches site 0: 0f"},
	"queued-key-twice": {"patcher 0: Verify site 0", "patcher 0: Verify site 0"},
	"hit-while-brought-up": {
		"patcher 0: Sync 2: done", "cpu 2: is being brought up", "patcher 0: Sync 3: done", "patcher 0: Unpublish",
		"cpu 2: tries to take a reference",
	},
	"online-before-fetch": {
		"cpu 1: is being brought up", "patcher 0: Write word", "patcher 0: Sync 1: done", "patcher 0: promises " +
			"site 0", "cpu 1: is online",
		"cpu 1: fetches site 0",
	},
	"kprobe-over-jump-label": {"patcher 1: Write breakpoint", "patcher 1: Unlock text_mutex", "patcher 0: Verify site 0"},
	"multi-attach-free": {"patcher 0: GracePeriod: done", "patcher 0: Release", "fetches site 0: call",
		"calls ops"},
}

// TestPlots: every bug breaks in the way that its report says.
func TestPlots(t *testing.T) {
	for _, b := range All() {
		plot := plots[b.Name]
		if len(plot) == 0 {
			t.Errorf("%s has no plot", b.Name)
		}
		_, r := search(t, &b, false, explore.Options{Reduce: explore.Reductions{Symmetry: true, Order: true}})
		if r.Trace == nil {
			t.Errorf("%s: no trace", b.Name)
			continue
		}
		at := 0
		for _, s := range r.Trace.Steps {
			if at < len(plot) && strings.Contains(s.Who+": "+s.What, plot[at]) {
				at++
			}
		}
		if at < len(plot) {
			t.Errorf("%s: %q does not happen, or too early:\n%s", b.Name, plot[at], r.Trace.ExplainIn(0))
		}
	}
}
