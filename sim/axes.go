// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/axis"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// The users of an axis: counting, the engines and the checker.
const (
	UsePlan uint = 1 << iota
	UseLive
	UseTimed
	UseHardware
	UseCheck

	useModel = UseLive | UseTimed // engines whose machine is a model
	useRun   = useModel | UseHardware
	useAll   = UsePlan | useRun | UseCheck
)

// Axes are the choices of a Config, in the order in which lists are multiplied.
var Axes = slices.Concat(targetAxes(), protocolAxes(), machineAxes(), scenarioAxes(), engineAxes())

// used says who knows some axes.
func used(uses uint, axes ...axis.Axis[Config]) axis.Table[Config] {
	for i := range axes {
		axes[i].Uses = uses
	}
	return axes
}

// targetAxes are what is patched.
func targetAxes() axis.Table[Config] {
	arch := axis.Names("arch", "instruction sets", cpus.ArchNames(), cpus.ParseArch,
		func(c *Config) *isa.Arch { return &c.Arch }, func(a isa.Arch) string { return a.Traits().Name })
	arch.Default = strings.Join(arch.Names, ",")
	filter := axis.Field("filter",
		"`pattern` of records to change, in the kernel's filter syntax: vfs_*, :mod:ext4, !tcp_*; "+
			"repeated, each adds to it; separated by commas, they are several filters; @FILE is a file of them, one a line",
		func(patterns string) (records.Filter, error) { return records.ParseFilter([]string{patterns}) },
		func(c *Config) *records.Filter { return &c.Filter }, records.Filter.String)
	filter.Form, filter.Split = axis.Repeat, splitFilters
	return slices.Concat(used(useAll, arch), used(UsePlan|useRun,
		axis.Axis[Config]{
			Form: axis.Repeat, Column: "table", Split: splitSources,
			Spec: choice.Spec{Name: "records", NamesFile: choice.AnyFile, Offers: records.BuiltinNames,
				Doc: "`table` of records: a built-in one (textpoke records list), a file, or gen:n=40000,groups=7,... " +
					"(textpoke records show -h), or several; repeatable (default: each architecture's own kernel)"},
			Parse: func(src string) (axis.Set[Config], error) {
				return func(c *Config) error { c.source = src; return nil }, nil // opened by Combinations
			},
			Print: func(c *Config) string {
				if c.Table == nil {
					return ""
				}
				return c.Table.Name()
			},
		},
		filter))
}

// protocolAxes are how it is patched.
func protocolAxes() axis.Table[Config] {
	protocol := axis.Names("protocol", "protocols", poke.Names(), same,
		func(c *Config) *string { return &c.Protocol }, itself)
	protocol.Default = poke.Native
	protocol.Print = func(c *Config) string {
		if c.Plan != nil {
			return ""
		}
		return c.Protocol
	}
	mutate := axis.Names("mutate", "defects to put into the protocol", poke.MutationNames(), same,
		func(c *Config) *string { return &c.Mutation }, itself)
	mutate.Column = "mutation"
	layout := preset(AutoLayout, axis.Names("layout", "layouts of sites, by kernel configuration",
		append([]string{AutoLayout}, cpus.LayoutNames()...), same,
		func(c *Config) *string { return &c.Layout }, func(l string) string {
			if l == AutoLayout { // the table says which
				return ""
			}
			return l
		}))
	return used(useAll,
		axis.Axis[Config]{
			Form: axis.Repeat, Replaces: "protocol",
			Spec: choice.Spec{Name: "plan", NamesFile: choice.AnyFile,
				Doc: "`file` with a protocol (docs/plan-files.md), in place of a built-in one; repeatable"},
			Parse: func(path string) (axis.Set[Config], error) {
				p, err := OpenPlan(path)
				return func(c *Config) error { c.Plan, c.Protocol = p, p.Name; return nil }, err
			},
			Print: func(c *Config) string {
				if c.Plan == nil {
					return ""
				}
				return c.Plan.File
			},
		},
		protocol,
		layout,
		mutate,
		preset("table", axis.Names("order", "orders in which patches are queued", sched.OrderNames(), sched.ParseOrder,
			func(c *Config) *sched.Ordering { return &c.Order }, sched.Ordering.String)))
}

// modelled are axes that say nothing of a real machine.
func modelled(uses uint, axes ...axis.Axis[Config]) axis.Table[Config] {
	for i := range axes {
		print := axes[i].Print
		axes[i].Print = func(c *Config) string {
			if c.Engine == HardwareEngine {
				return ""
			}
			return print(c)
		}
	}
	return used(uses, axes...)
}

// machineAxes are the machine that it is patched on.
func machineAxes() axis.Table[Config] {
	machine := preset("8", axis.Field("cpus", "`machine`: a number of CPUs, several numbers, or roles "+
		"(busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2; repeatable",
		parseRoles, func(c *Config) *[]cpus.Role { return &c.Roles }, cpus.FormatRoles))
	machine.Form, machine.Split = axis.Repeat, splitMachines
	buffer := axis.Field("buffer", "vector sizes: a number of slots (TP_VEC_MAX), or as many as there are patches",
		parseBuffer, func(c *Config) *sched.Buffer { return &c.Buffer }, sched.Buffer.String)
	buffer.Names, buffer.Default = []string{sched.Dynamic.String()}, "256,dynamic"
	fetch := axis.Field("fetch", "ways in which versions of text mix in a fetch", cpus.ParseFetch,
		func(c *Config) *cpus.Fetch { return &c.Fetch }, cpus.Fetch.String)
	fetch.Names = cpus.FetchNames()
	return slices.Concat(used(useAll, machine), modelled(UsePlan|useModel|UseCheck,
		preset("weak", fetch),
		preset("btree", axis.Names("lookup", "indexes that trap handlers search", int3.LookupNames(), int3.ParseLookup,
			func(c *Config) *int3.Lookup { return &c.Lookup }, int3.Lookup.String)),
		preset("percpu", axis.Names("refs", "kinds of handlers' reference counts", int3.RefsNames(), int3.ParseRefs,
			func(c *Config) *int3.Refs { return &c.Refs }, int3.Refs.String))),
		used(useAll, buffer))
}

// scenarioAxes are what else is switched and called.
func scenarioAxes() axis.Table[Config] {
	ways := axis.Names("dispatch", "ways from enabled sites to their tracers", dispatch.Names(), dispatch.Parse,
		func(c *Config) *dispatch.Kind {
			c.Tracers = &Tracers{Relevant: 1}
			return &c.Tracers.Dispatch
		}, nil)
	traced := func(c *Config) bool { return c.Tracers != nil }
	ways.Print = func(c *Config) string {
		if !traced(c) {
			return ""
		}
		return c.Tracers.Dispatch.Name
	}
	return slices.Concat(used(UsePlan|UseTimed, ledgerAxes()...), used(useModel, ways, axis.Axis[Config]{
		Form: axis.One, Needs: "dispatch", Applies: traced,
		Spec: choice.Spec{Name: "tracers", Default: "relevant=1",
			Doc: "`numbers` of tracers of the functions that are called, and of one that is never called, " +
				"such as relevant=1,irrelevant=100"},
		Parse: func(value string) (axis.Set[Config], error) {
			t, err := ParseTracers(value)
			return func(c *Config) error {
				t.Dispatch = c.Tracers.Dispatch
				c.Tracers = &Tracers{t.Dispatch, t.Relevant, t.Irrelevant}
				return nil
			}, err
		},
		Print: func(c *Config) string {
			if !traced(c) {
				return ""
			}
			return fmt.Sprintf("relevant=%d,irrelevant=%d", c.Tracers.Relevant, c.Tracers.Irrelevant)
		},
	}))
}

// ledgerAxes are what a kernel sends besides the records' rounds.
func ledgerAxes() axis.Table[Config] {
	scenarios := spelling.Each(ledger.Scenarios(), func(s ledger.Scenario) string { return string(s) })
	// Combinations share no Scenario: each change makes another one.
	change := func(set func(*Scenario)) axis.Set[Config] {
		return func(c *Config) error {
			s := *c.Scenario
			set(&s)
			c.Scenario = &s
			return nil
		}
	}
	show := func(of func(*Scenario) string) func(*Config) string {
		return func(c *Config) string {
			if c.Scenario == nil {
				return ""
			}
			return of(c.Scenario)
		}
	}
	return axis.Table[Config]{{
		Spec: choice.Spec{Name: "scenario", Names: scenarios,
			Doc: "tracer that is switched on and off, with everything that a kernel sends for it, or an action of kernel predict, " +
				"NAME or NAME:ARGUMENT (then the buffer is 256 unless given)"},
		Parse: func(name string) (axis.Set[Config], error) {
			if _, _, err := ledger.ParseAction(ledger.Actions(), name); err != nil {
				return nil, err
			}
			return func(c *Config) error {
				c.Scenario = &Scenario{Name: ledger.Scenario(name), Kernel: ledger.For(c.Arch.Traits().Name)}
				return nil
			}, nil
		},
		Print: show(func(s *Scenario) string { return string(s.Name) }),
	}, {
		Form: axis.One, Needs: "scenario",
		Spec: choice.Spec{Name: "kernel", Names: ledger.Names(), NamesFile: choice.AnyFile,
			Doc: "`kernel` whose ledger a scenario follows, and whose protocol, instruction set and records unless given: " +
				"a name, an image (vmlinuz, vmlinux, Image), or a ledger that kernel inspect wrote"},
		Parse: func(name string) (axis.Set[Config], error) {
			k, err := ledger.Open(name)
			return change(func(s *Scenario) { s.Kernel = k }), err
		},
		Print: show(func(s *Scenario) string { return cmp.Or(s.Kernel.File, s.Kernel.Name()) }),
	}, {
		Needs: "scenario", Split: together,
		Spec: choice.Spec{Name: "state", Doc: "`list` of facts that hold before a scenario: " + ledger.StateHelp},
		Parse: func(facts string) (axis.Set[Config], error) {
			return change(func(s *Scenario) { s.Kernel = s.Kernel.In(strings.Split(facts, ",")) }), nil
		},
		Print: show(func(s *Scenario) string { return strings.Join(s.Kernel.State(), ",") }),
	}, {
		Needs: "scenario", Split: together,
		Spec: choice.Spec{Name: "without-cause", Names: ledger.SwitchNames(),
			Doc: "causes and parts that a scenario leaves out"},
		Parse: func(names string) (axis.Set[Config], error) {
			off, err := ledger.ParseSwitch(strings.Split(names, ","))
			return change(func(s *Scenario) { s.Off = off }), err
		},
		Print: show(func(s *Scenario) string { return s.Off.String() }),
	}}
}

// engineAxes are what executes it, and with what load.
func engineAxes() axis.Table[Config] {
	isTimed := func(c *Config) bool { return c.Engine == TimedEngine }
	perSecond := func(name, doc string, field func(*Config) **float64) axis.Axis[Config] {
		a := axis.Field(name, doc, parseRate, field, formatRate)
		a.Unit, a.Column, a.Silent, a.Applies = "per_s", name+"_per_s", true, isTimed
		return a
	}
	seed := axis.Field("seed", "", func(s string) (uint64, error) { return strconv.ParseUint(s, 0, 64) },
		func(c *Config) *uint64 { return &c.Seed }, func(n uint64) string { return strconv.FormatUint(n, 10) })
	seed.Form = axis.Elsewhere
	engine := preset(engineNames[0], axis.Names("engine",
		"engines that execute the plans, live with goroutines, timed in virtual nanoseconds or hardware on this "+
			"machine's own CPUs",
		engineNames, ParseEngine, func(c *Config) *EngineKind { return &c.Engine }, func(k EngineKind) string {
			if k == LiveEngine { // which a stress run does not like to be told
				return ""
			}
			return k.String()
		}))
	return slices.Concat(
		used(UsePlan|useRun, seed),
		used(useRun, engine),
		used(UseTimed, axis.Axis[Config]{
			Silent: true, Applies: isTimed,
			Spec: choice.Spec{Name: "calibration", Offers: calibration.Names, NamesFile: choice.AnyFile,
				Doc: "`list` of what everything takes: built-in machines (textpoke calibrate list) or files; " +
					"without any, the timed engine counts and names no time"},
			Parse: func(name string) (axis.Set[Config], error) {
				k, err := calibration.Open(name)
				return func(c *Config) error {
					if arch := c.Arch.Traits().Name; k.Arch != arch {
						return axis.Unfit(fmt.Sprintf("calibration %s is of a machine of %s: it has no times for %s",
							k.Name, k.Arch, arch))
					}
					c.Calibration = k
					return nil
				}, err
			},
			Print: func(c *Config) string {
				if c.Calibration == nil {
					return ""
				}
				return c.Calibration.Name
			},
		},
			perSecond("calls", "calls of traced functions a second on each busy CPU, in place of the calibration's",
				func(c *Config) **float64 { return &c.Calls }),
			perSecond("entries", "entries into the kernel a second of each isolated CPU, in place of the calibration's",
				func(c *Config) **float64 { return &c.Entries }),
			axis.Bool("preempt", "timed engine: tasks may be preempted inside tracers, and the patcher between two batches",
				func(c *Config) *bool { return &c.Preempt })),
		used(UseHardware, axis.Bool("in-process", "hardware engine: execute plans that may break in this process, too, which "+
			"may die of them", func(c *Config) *bool { return &c.InProcess })),
		used(useModel, axis.Bool("migrate", "the patcher may change CPUs in the middle (a stress run does anyway)",
			func(c *Config) *bool { return &c.Migrate })))
}

// preset gives an axis one value that applies when none is chosen.
func preset(value string, a axis.Axis[Config]) axis.Axis[Config] {
	a.Default = value
	return a
}
