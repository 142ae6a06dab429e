// SPDX-License-Identifier: Apache-2.0

package museum

import "slices"

// Omitted is a bug that cannot be told in this machine's words.
type Omitted struct {
	Name   string
	Number string // in the catalogue
	Title  string // what it was, with its source
	Reason string // what the machine does not have
}

// OmittedBugs are those of the catalogue that are no exhibits.
func OmittedBugs() []Omitted { return slices.Clone(omitted) }

var omitted = []Omitted{
	{
		"int3-frame", "A4", "an emulated call pushes its return address over the int3 frame (2700fefdb2d9, 5.2)",
		"there is no stack: a handler acts as an instruction, and what that pushes goes nowhere",
	},
	{
		"unoptimised-kprobe", "A6", "a kprobe's handler goes on behind the first byte of a site whose tail is still a " +
			"jump's (f66c0447cca1, 5.6; e4add247789e, 868a6fc0ca24)",
		"a site is executed as the instructions that it is made of: nobody goes on in the middle of one",
	},
	{
		"lazy-tlb", "A7", "a patcher in lazy TLB mode reloads page tables that were freed meanwhile (abee7c494d8c, 5.10)",
		"there are no page tables; patchers share one slot for a mapping, and that is all",
	},
	{
		"early-boot", "A8", "text_poke before its page tables exist, with ftrace=function on the command line (5.6-rc)",
		"the machine has no boot: whatever a patcher needs is there from the start",
	},
	{
		"softlockup", "A9", "patching all functions with debug options on takes longer than the watchdog waits " +
			"(9350a629e839, 6.5)",
		"a matter of time: every interleaving is looked at, however long it takes, and none is wrong",
	},
	{
		"refcount-contention", "A10", "every CPU that traps changes one counter of references, 2.66 s in the worst " +
			"case (4334336e769b, 6.16)",
		"a matter of time: what handlers can do is the same with either kind of count",
	},
	{
		"jump-label-double-decrement", "A13.2", "two decrements of a static key both see 1, outside of the mutex " +
			"(83ab38ef0a0b, 6.11-rc1)",
		"arithmetic on the key's counter; patchers tell each other that something was done, not how often",
	},
	{
		"jump-label-never-disabled", "A13.3", "a cmpxchg whose result is read the wrong way round: the key is never " +
			"disabled (6.11-rc2)",
		"arithmetic on the key's counter; no text is patched at all",
	},
	{
		"jump-label-spurious-warning", "A13.4", "a decrement that meets an increment warns, though nothing is wrong " +
			"(1d7f856c2ca4, 6.12-rc)",
		"arithmetic on the key's counter; the text is right throughout",
	},
	{
		"empty-group", "B16", "lookup_rec reads the record before the first of an empty group (ee92fa443358, 6.3)",
		"the records of ftrace are what tables of sites are made of; the machine does not search them while it runs",
	},
	{
		"ftrace-location-unload", "B17", "ftrace_location walks over the groups of a module that is being unloaded " +
			"(e60b613df8b6, 6.10)",
		"records are neither searched nor freed while the machine runs; torn-down-descriptor is the same race over a batch",
	},
	{
		"dangling-ops", "B18", "an ops stays in the list of ops when ftrace dies while it is registered, and is freed " +
			"by its owner (c3b0f72e805f, 6.0-rc2)",
		"ops are called through sites only: there is no list of them that anybody walks",
	},
	{
		"crossing-literal", "C24", "literals of functions that GCC does not align when it optimises for size " +
			"(b3f11af9b2ce, 6.3)",
		"no kernel called through one: such sites were refused from the first version on, and the warnings were reported; " +
			"literal-misaligned is the case of what that prevents",
	},
	{
		"fexit-with-livepatch", "B19", "a failed register_ftrace_direct leaves entries behind (56b3c85e153b), and a " +
			"modified trampoline calls the original instead of the livepatch (3e9a18e1c3e9; both 6.18-rc)",
		"what a trampoline does after the ops is called, and what BPF knows of livepatches, is bookkeeping outside of " +
			"the text",
	},
	{
		"tmp-ops-counts-all", "B21", "update_ftrace_direct_mod raises the count of all functions of an ops for a " +
			"change of one (fixed within the 7.0 cycle, March 2026)",
		"more sites are patched than need be; each of them rightly",
	},
	{
		"suspected", "B23", "reading the source makes one doubt: CALL_OPS flags after a detach, a lost error in " +
			"powerpc's make_call, riscv's range of jalr, equal addresses in one batch",
		"nobody has confirmed any of them; what is not known to break cannot be shown to",
	},
	{
		"fprobe-overrun", "E33", "fprobe's pool of entry data is allocated without room for each instance (a " +
			"regression of 4bbd93455659, 6.7; fixed in 6.8)",
		"there is no memory that tracers write to",
	},
}
