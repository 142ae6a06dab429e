// SPDX-License-Identifier: Apache-2.0

package cpus

import "github.com/textpoke/textpoke/cpus/isa"

// Variant is one of the ways in which kernels differ in one section of a path.
type Variant uint8

// The variants.
const (
	SiteCalls Variant = iota
	SiteCallOps
	SiteApart
	SiteApartMasked
	SiteDirect
	HandlerActs
	HandlerActsStale
	HandlerSkips
	MissForgives
	MissFatal
	EntryCatchesUp
	EntryEarly

	numVariants
)

// variants are the rows: what each is called, its steps, and who does so.
var variants = [numVariants]struct {
	name, source string
	in           Section
	steps        []PathStep
}{
	SiteCalls: {
		"calls",
		"x86_64: the site's own call says whom; riscv64 until Linux 6.15, by auipc and jalr",
		AtSite,
		[]PathStep{DoFetch, DoCall},
	},
	SiteCallOps: {
		"call-ops", "CALL_OPS: ftrace_caller loads the ops from the literal before the function, " +
			"arch/arm64/kernel/entry-ftrace.S since Linux 6.3, arch/riscv/kernel/mcount-dyn.S since 6.16", AtSite,
		[]PathStep{DoFetch, DoLoadLiteral, DoCall},
	},
	SiteApart: {
		"ops-apart", "kernels without CALL_OPS: the site is the call inside ftrace_caller (ftrace_call), " +
			"which has loaded function_trace_op before; the function at Entry serves every ops " +
			"(ftrace_ops_list_func), another one its own", AtSite,
		[]PathStep{DoLoadOps, DoFetch, DoCall},
	},
	SiteApartMasked: {
		"ops-apart-masked", "no kernel: what a round would need to be enough where the two are apart", AtSite,
		[]PathStep{DoMask, DoLoadOps, DoFetch, DoUnmask, DoCall},
	},
	SiteDirect: {
		"direct", "direct calls: a site calls a trampoline, or the common entry, which looks up whom to call " +
			"in direct_functions (ftrace_find_rec_direct, kernel/trace/ftrace.c, Linux 7.1) or in the " +
			"direct_call of its one ops", AtSite,
		[]PathStep{DoFetch, DoLookUpDirect, DoCall},
	},
	HandlerActs: {
		"acts", "poke_int3_handler, arch/x86/kernel/alternative.c; smp_text_poke_int3_handler since Linux 6.16", InHandler,
		[]PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoSync, DoAct},
	},
	HandlerActsStale: {
		"acts-stale", "the same where neither taking nor leaving a trap makes the CPU fetch afresh: riscv64", InHandler,
		[]PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoAct},
	},
	HandlerSkips: {
		"skips", "Linux until 5.1 (9e298e860408): the site calls nobody meanwhile", InHandler,
		[]PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoSync, DoSkip},
	},
	MissForgives: {
		"forgives", "kprobe_int3_handler until Linux 6.2 (removed by 8e791f7eba4c)", OnMiss,
		[]PathStep{DoLookAgain, DoSync, DoGoBack},
	},
	MissFatal: {"fatal", "Linux since 6.3 (8e791f7eba4c)", OnMiss, []PathStep{DoFatal}},
	EntryCatchesUp: {
		"catches-up", "Schneider, \"context_tracking,x86: Defer some IPIs until a user->kernel transition\", " +
			"linux-kernel, 2022 to 2025", OnEntry,
		[]PathStep{DoEnter, DoCatchUp},
	},
	EntryEarly: {
		"calls-early", "what must not be: traced code before the catching up", OnEntry,
		[]PathStep{DoCallEarly, DoEnter, DoCatchUp},
	},
}

func (v Variant) String() string { return variants[v].name }

// Source is who does so.
func (v Variant) Source() string { return variants[v].source }

// With is the path with a variant in place of the section that it is one of.
func (p Path) With(v Variant) Path {
	p.programs[variants[v].in] = Program{}
	copy(p.programs[variants[v].in][:], variants[v].steps)
	_ = p.compile() // sections know nothing of each other, and every variant is one that compiles
	return p
}

// NativePath is what CPUs of an instruction set do at sites of a length in bytes;
// lazy: where rounds leave out those in user space.
func NativePath(t isa.Traits, length int, lazy bool) Path {
	list := []Variant{SiteCalls, HandlerActs, MissForgives}
	if t.CallOps && length == t.FetchLen {
		list[0] = SiteCallOps
	}
	if !t.TrapSyncs {
		list[1] = HandlerActsStale
	}
	if lazy {
		list = append(list, EntryCatchesUp)
	}
	var p Path
	for _, v := range list {
		p = p.With(v)
	}
	return p
}

// Complete takes a Code that states no path for what its architecture does by itself.
func (c *Code) Complete() {
	if !c.Path.Stated() {
		c.Path = NativePath(c.Traits, c.Len, false)
	}
}
