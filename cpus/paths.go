// SPDX-License-Identifier: Apache-2.0

package cpus

import "github.com/textpoke/textpoke/cpus/isa"

// Variant is one of the ways in which kernels differ in one section of a path: the steps there.
type Variant struct {
	in    Section
	steps []PathStep
}

// The variants, and who does so.
var (
	// SiteCalls: the site's own call says whom; x86_64, and riscv64 until Linux 6.15, by auipc and jalr.
	SiteCalls = Variant{AtSite, []PathStep{DoFetch, DoCall}}
	// SiteCallOps is CALL_OPS: ftrace_caller loads the ops from the literal before the function
	// (arch/arm64/kernel/entry-ftrace.S since Linux 6.3, arch/riscv/kernel/mcount-dyn.S since 6.16).
	SiteCallOps = Variant{AtSite, []PathStep{DoFetch, DoLoadLiteral, DoCall}}
	// SiteApart is kernels without CALL_OPS: the site is the call inside ftrace_caller (ftrace_call), which has
	// loaded function_trace_op before; the function at Entry serves every ops (ftrace_ops_list_func), another
	// one its own.
	SiteApart = Variant{AtSite, []PathStep{DoLoadOps, DoFetch, DoCall}}
	// SiteApartMasked is no kernel: it is what a round would need to be enough where the two are apart.
	SiteApartMasked = Variant{AtSite, []PathStep{DoMask, DoLoadOps, DoFetch, DoUnmask, DoCall}}
	// SiteDirect is direct calls: a site calls a trampoline, or the common entry, which looks up whom to call in
	// direct_functions (ftrace_find_rec_direct, kernel/trace/ftrace.c, Linux 7.1) or in the direct_call of its one ops.
	SiteDirect = Variant{AtSite, []PathStep{DoFetch, DoLookUpDirect, DoCall}}
	// HandlerActs is poke_int3_handler (arch/x86/kernel/alternative.c), smp_text_poke_int3_handler since Linux 6.16.
	HandlerActs = Variant{InHandler, []PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoSync, DoAct}}
	// HandlerActsStale is the same where neither taking nor leaving a trap makes the CPU fetch afresh: riscv64.
	HandlerActsStale = Variant{InHandler, []PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoAct}}
	// HandlerSkips is Linux until 5.1 (9e298e860408): the site calls nobody meanwhile.
	HandlerSkips = Variant{InHandler, []PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoSync, DoSkip}}
	// MissForgives is kprobe_int3_handler until Linux 6.2 (removed by 8e791f7eba4c).
	MissForgives = Variant{OnMiss, []PathStep{DoLookAgain, DoSync, DoGoBack}}
	// MissFatal is Linux since 6.3 (8e791f7eba4c).
	MissFatal = Variant{OnMiss, []PathStep{DoFatal}}
	// EntryCatchesUp is Schneider, "context_tracking,x86: Defer some IPIs until a user->kernel transition",
	// linux-kernel, 2022 to 2025.
	EntryCatchesUp = Variant{OnEntry, []PathStep{DoEnter, DoCatchUp}}
	// EntryEarly is what must not be: traced code before the catching up.
	EntryEarly = Variant{OnEntry, []PathStep{DoCallEarly, DoEnter, DoCatchUp}}
)

// With is the path with a variant in place of the section that it is one of.
func (p Path) With(v Variant) Path {
	p.programs[v.in] = Program{}
	copy(p.programs[v.in][:], v.steps)
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
