package museum

import (
	"errors"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// What went wrong on arm64.
var arm64Bugs = []Bug{
	{
		Name: "literal-misaligned", Number: "C24",
		Title:    "the pointer to a site's ops lies across its alignment",
		Versions: "the 6.3 cycle, when built by GCC for size",
		Source:   "b3f11af9b2ce \"arm64: ftrace: forbid CALL_OPS with CC_OPTIMIZE_FOR_SIZE\", Mark Rutland, 2023; relaxed for Clang by a743f26d03a9",
		Story: "GCC with -Os ignores -falign-functions: a function is not aligned, so its literal crosses an aligned doubleword and is stored in two halves. " +
			"A CPU that runs the call in between loads half of one pointer with half of the other, and calls through that.",
		Fix:    "b3f11af9b2ce: no literals where functions are not aligned; a site whose literal is misaligned is skipped",
		Want:   cpus.TornLiteral,
		Tracer: true,
		build:  literalMisaligned,
	},
	{
		Name: "init-text-plt", Number: "C25",
		Title:    "a module's init text is patched through the PLT of its core text, which it cannot reach",
		Versions: "arm64, to 6.16",
		Source:   "a7ed7b9d0ebb \"arm64: ftrace: fix unreachable PLT for ftrace_caller in init_module with CONFIG_DYNAMIC_FTRACE\", 6.17",
		Story: "A module's sections may lie over 128 MiB apart. A site in its init text is to call ftrace_caller through the PLT beside the core text; " +
			"no BL reaches that, and what the encoder returns for an error, a BRK, is written into the site. " +
			"Who executes it traps, and nobody knows the breakpoint.",
		Fix:   "a7ed7b9d0ebb: the init text has a PLT of its own",
		Want:  cpus.UnhandledBreakpoint,
		build: initTextPLT,
	},
}

func literalMisaligned(fixed bool) *scene {
	s := newScene(arm64.Arch, isa.Word, 2)
	site := s.site()
	site.starts(site.calling(entryAt), firstOps)
	s.m.Attached = []uint64{firstOps}
	store := write(poke.Literal)
	if !fixed {
		store = when(!fixed, write(poke.LiteralLow), write(poke.LiteralHigh))
	}
	s.program([]poke.Patch{site.to(s.m.Code.Arch.Disabled(site.Site), nopOps)},
		do(poke.Verify), store, do(poke.Fence), write(poke.Word), do(poke.Fence))
	return s
}

// Where a module's two parts lie: the sites in its init text reach the PLT beside
// them, and neither the one beside its core text nor ftrace_caller.
const (
	moduleInit    records.Addr = 0xffff_ffff_7000_0004
	moduleInitPLT records.Addr = 0xffff_ffff_7001_0000
	moduleCorePLT records.Addr = 0xffff_ffff_7a00_0000
)

func initTextPLT(fixed bool) *scene {
	s := newScene(arm64.Arch, isa.Word, 2)
	site := s.siteAt(moduleInit)
	plt := moduleCorePLT
	if fixed {
		plt = moduleInitPLT
	}
	call, _, err := s.m.Code.Arch.Enabled(site.Site, isa.Destination{Target: entryAt, Entry: entryAt, PLT: plt})
	if reach := (*isa.ReachError)(nil); errors.As(err, &reach) {
		call = s.m.Code.Arch.Breakpoint() // AARCH64_BREAK_FAULT is one
	} else {
		s.fail(err)
	}
	s.m.Attached = []uint64{firstOps}
	s.program([]poke.Patch{site.to(call, firstOps)}, s.update(poke.Native, 1))
	return s
}
