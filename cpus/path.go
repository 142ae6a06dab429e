// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Path is what a CPU does, step by step: at a site, in the handler of a breakpoint,
// when the handler finds no entry, and on its ways: from user space into the kernel and
// back, through a non-maskable interrupt, and when it comes online or goes offline.
// It is a value: two that are equal do the same. The zero Path stands for the
// architecture's own; see NativePath.
type Path struct {
	programs [NumSections]Program
	table
}

// Section is one of the programs of a path.
type Section uint8

// The sections.
const (
	AtSite    Section = iota // from between two calls: the steps of a call
	InHandler                // poke_int3_handler, or what stands for it
	OnMiss                   // the handler found no entry
	OnEntry                  // from user space into the kernel; empty where no round leaves a CPU out
	OnExit                   // and back; empty: it says so, in the step in which it goes
	OnNMI                    // a non-maskable interrupt, at any step; empty: none comes
	OnUp                     // from offline to online; empty: no CPU does
	OnDown                   // from online to offline, between two calls; empty: no CPU does

	NumSections = int(OnDown) + 1
)

var sectionNames = [NumSections]string{"site", "handler", "miss", "entry", "exit", "nmi", "online", "offline"}

// SectionNames lists the sections as texts spell them.
func SectionNames() []string { return sectionNames[:] }

func (s Section) String() string { return sectionNames[s] }

// PathStep is one step of a path.
type PathStep uint8

// The steps. An interrupt that DoMask holds back is taken before the call, or behind DoUnmask.
const (
	noStep PathStep = iota
	DoMask
	DoUnmask
	DoLoadOps
	DoFetchGuard
	DoAwaitGuard
	DoFetch
	DoLoadLiteral
	DoLookUpDirect
	DoCall

	DoTakeReference
	DoLookUp
	DoGiveBack
	DoSync
	DoAct
	DoSkip

	DoLookAgain
	DoGoBack
	DoFatal

	DoCallEarly
	DoEnter
	DoCatchUp
	DoAwaitResume
	DoLeave
	DoLeaveAgain
	DoLookAtCR3
	DoLoadKernelCR3
	DoLoadUserCR3
	DoComeOnline
	DoGoOffline

	numPathSteps
)

// pathSteps are the steps' texts, their meanings, and the sections that they belong to,
// one bit each.
var pathSteps = [numPathSteps]struct {
	text, does string
	in         uint8
}{
	DoMask: {"mask interrupts", "interrupts are held back behind the next step", 1 << AtSite},
	DoUnmask: {
		"unmask interrupts", "and are taken again; a signal's handler, in user space, has them on from the trap on",
		1<<AtSite | 1<<InHandler,
	},
	DoLoadOps: {"load ops", "loads the ops that the function at the site is called with", 1 << AtSite},
	DoFetchGuard: {
		"fetch guard", "fetches the word that guards the site: disarmed, the fetches behind it are as new", 1 << AtSite,
	},
	DoAwaitGuard: {
		"await guard", "loads the word that guards the site, as data, until it is disarmed; not where it was " +
			"fetched so", 1 << AtSite,
	},
	DoFetch: {
		"fetch site",
		"fetches the site's instruction and executes it: one after the other where it has several",
		1 << AtSite,
	},
	DoLoadLiteral:  {"load literal", "loads the ops that the site's literal names", 1 << AtSite},
	DoLookUpDirect: {"look up direct call", "where the site calls the common entry: looks up whom to call", 1 << AtSite},
	DoCall:         {"call", "calls the ops, or the site's own target", 1 << AtSite},

	DoTakeReference: {"take reference", "takes a reference on the published batch; a miss where none is", 1 << InHandler},
	DoLookUp:        {"look up", "looks the address up; a miss where it has no entry", 1 << InHandler},
	DoGiveBack:      {"give back", "gives the reference back", 1 << InHandler},
	DoSync: {
		"sync", "makes the CPU fetch afresh; in a handler together with what follows, behind a guard with the look at it",
		1<<AtSite | 1<<InHandler | 1<<OnMiss | 1<<OnEntry | 1<<OnNMI | 1<<OnUp,
	},
	DoAct:  {"act", "goes on as the instruction that was found", 1 << InHandler},
	DoSkip: {"skip", "goes on behind the site, without its call", 1<<InHandler | 1<<OnMiss},

	DoLookAgain: {"look again", "reads the text; a breakpoint that is still there belongs to no batch", 1 << OnMiss},
	DoGoBack:    {"go back", "goes back to the site's first instruction", 1<<InHandler | 1<<OnMiss},
	DoFatal:     {"fatal", "no batch has the breakpoint: the end", 1 << OnMiss},

	DoCallEarly: {"call a site", "calls a traced function", 1<<OnEntry | 1<<OnNMI | 1<<OnUp | 1<<OnDown},
	DoEnter: {
		"enter", "says that the CPU is in the kernel, and reads what it said before and whether rounds have left it out",
		1<<OnEntry | 1<<OnNMI,
	},
	DoCatchUp: {
		"catch up", "makes the CPU fetch afresh, behind \"enter\" only where it was left out", 1<<OnEntry | 1<<OnNMI,
	},
	DoAwaitResume: {
		"await resume", "waits while the machine stands still, behind \"enter\" only where it was left out",
		1<<OnEntry | 1<<OnNMI,
	},
	DoLeave:      {"leave", "says that the CPU is in user space", 1<<OnExit | 1<<OnNMI},
	DoLeaveAgain: {"leave again", "says so only where the CPU had said it before \"enter\"", 1 << OnNMI},
	DoLookAtCR3: {
		"look at cr3", "leaves all but the call and \"sync\" out where the kernel's page tables are loaded " +
			"already", 1 << OnNMI,
	},
	DoLoadKernelCR3: {"load kernel cr3", "loads the kernel's page tables", 1<<OnEntry | 1<<OnNMI},
	DoLoadUserCR3:   {"load user cr3", "loads the page tables of user space", 1<<OnExit | 1<<OnNMI},
	DoComeOnline:    {"come online", "rounds reach the CPU from here on", 1 << OnUp},
	DoGoOffline:     {"go offline", "rounds pass over the CPU from here on, which owes no answer", 1 << OnDown},
}

func (s PathStep) String() string { return pathSteps[s].text }

// Does says what the step does.
func (s PathStep) Does() string { return pathSteps[s].does }

// ReadsLiteral tells whether the step reads data that belongs to the site.
func (s PathStep) ReadsLiteral() bool {
	return s == DoLoadOps || s == DoLoadLiteral || s == DoLookUpDirect
}

// in tells whether the step belongs to a section.
func (s PathStep) in(in Section) bool { return pathSteps[s].in>>in&1 != 0 }

// StepsOf lists the steps that a section may have.
func StepsOf(in Section) (steps []PathStep) {
	for s := noStep + 1; s < numPathSteps; s++ {
		if s.in(in) {
			steps = append(steps, s)
		}
	}
	return steps
}

// ParsePathStep reads a step of a section.
func ParsePathStep(in Section, text string) (PathStep, error) {
	return spelling.Find(in.String(), text, StepsOf(in), PathStep.String)
}

// maxProgram is the most steps that make sense in one section.
const maxProgram = 8

// Program is the steps of one section.
type Program [maxProgram]PathStep

// Steps are the program's steps.
func (p Program) Steps() []PathStep {
	n := slices.Index(p[:], noStep)
	if n < 0 {
		n = maxProgram
	}
	return p[:n]
}

func (p Program) String() string {
	return strings.Join(spelling.Each(p.Steps(), PathStep.String), "; ")
}

// PathError says what is wrong with a path, and where.
type PathError struct {
	Section Section
	At      int // the step's index; -1 for the section as a whole
	Reason  string
}

func (e *PathError) Error() string { return fmt.Sprintf("%s: %s", e.Section, e.Reason) }

// NewPath makes a path of its sections' steps, in the order of the sections. It is
// refused, with a *PathError, where a CPU could not come to an end, or would do what
// no machine can.
func NewPath(sections [NumSections][]PathStep) (Path, error) {
	var p Path
	for i, steps := range sections {
		if len(steps) > maxProgram {
			reason := fmt.Sprintf("%s: more than %d steps", steps[maxProgram], maxProgram)
			return Path{}, &PathError{Section(i), maxProgram, reason}
		}
		copy(p.programs[i][:], steps)
	}
	return p, p.compile()
}

// Program is one of the path's programs.
func (p *Path) Program(s Section) Program { return p.programs[s] }

// Replace is the path with other steps in one section.
func (p Path) Replace(in Section, steps ...PathStep) (Path, error) {
	var sections [NumSections][]PathStep
	for i := range sections {
		sections[i] = p.programs[i].Steps()
	}
	sections[in] = steps
	return NewPath(sections)
}

// String is the path's text: a line a section, its steps behind semicolons. An empty
// section has no line.
func (p Path) String() string {
	var lines []string
	for i, program := range p.programs {
		if program != (Program{}) {
			lines = append(lines, fmt.Sprintf("%s: %s", Section(i), program))
		}
	}
	return strings.Join(lines, "\n")
}

// MarshalBinary is the path's text, for a pipe.
func (p Path) MarshalBinary() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalBinary reads what String writes.
func (p *Path) UnmarshalBinary(text []byte) (err error) {
	var sections [NumSections][]PathStep
	for i, line := range strings.Split(string(text), "\n") {
		name, steps, _ := strings.Cut(line, ":")
		in := slices.Index(sectionNames[:], name)
		switch {
		case in < 0:
			return fmt.Errorf("line %d: section %q: %w", i+1, name, spelling.NotOneOf(name, sectionNames[:]))
		case sections[in] != nil:
			return fmt.Errorf("line %d: section %q a second time", i+1, name)
		}
		for step := range strings.SplitSeq(steps, ";") {
			s, err := ParsePathStep(Section(in), strings.TrimSpace(step))
			if err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			sections[in] = append(sections[in], s)
		}
	}
	*p, err = NewPath(sections)
	return err
}

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
	// HandlerActsStale is the same on riscv64, where traps do not make the CPU fetch afresh.
	HandlerActsStale = Variant{InHandler, []PathStep{DoTakeReference, DoLookUp, DoGiveBack, DoAct}}
	// HandlerSkips is Linux until 5.1 (9e298e860408): the site makes no call meanwhile.
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

// Complete gives a Code that states no path its architecture's own.
func (c *Code) Complete() {
	if c.Path.programs == [NumSections]Program{} {
		c.Path = NativePath(c.Traits, c.Len, false)
	}
}
