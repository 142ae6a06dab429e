// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
)

// Facts are what follows from a kernel's image: all that the rules are applied to. They
// hold no number of interrupts.
type Facts struct {
	Hash        string // of the image, SHA-256; "" where a release's source was read in its place
	Records     int    // that ftrace can patch after boot
	Mechanisms  map[string]image.Mechanism
	Unknown     map[string]string         // mechanisms that are not understood, and why
	Keys        map[string]int            // branches of static keys
	Calls       map[string]StaticCall     // static calls
	Tracepoints map[string]TracepointFact // by name
	Events      []image.Event
	Recorder    []string // tracepoints that recording of command lines hooks
	Unnamed     bool     // keys have no names
}

// StaticCall is what changes with a static call.
type StaticCall struct {
	Trampoline bool
	Sites      int
}

// TracepointFact is what changes with a tracepoint besides its static call.
type TracepointFact struct {
	Branches int      // of its key
	Switches []string // keys that it switches before its first user
}

// recorders are functions that hook the tracepoints for recording command lines, over
// the releases (kernel/trace/trace_sched_switch.c).
var recorders = []string{"tracing_sched_register", "tracing_start_sched_switch", "tracing_start_cmdline_record"}

// FromImage makes a kernel of an image: the rules hold for it, with the numbers of its
// own tables.
func FromImage(img *image.Kernel) (*Kernel, error) {
	f := &Facts{
		Hash: img.Hash, Mechanisms: map[string]image.Mechanism{}, Unknown: map[string]string{}, Keys: map[string]int{},
		Calls: map[string]StaticCall{}, Tracepoints: map[string]TracepointFact{}, Events: img.Events,
		Unnamed: img.Unnamed(),
	}
	found, unknown := img.Mechanisms()
	for _, m := range found {
		f.Mechanisms[m.Name] = m
	}
	for _, u := range unknown {
		name, why, _ := strings.Cut(u, ": ")
		f.Unknown[name] = why
	}
	names := img.KeyNames()
	for key, branches := range img.Keys.Branches {
		f.Keys[names[key]] += len(branches)
	}
	for _, c := range img.StaticCalls() {
		f.Calls[c.Name] = StaticCall{c.Trampoline, c.Sites}
	}
	for _, tp := range img.Tracepoints() {
		t := TracepointFact{Branches: len(img.Keys.Branches[tp.Key])}
		for _, key := range tp.Switches {
			t.Switches = append(t.Switches, names[key])
		}
		f.Tracepoints[tp.Name] = t
	}
	for _, name := range recorders {
		if tps := img.TracepointsIn(name); len(tps) > len(f.Recorder) {
			f.Recorder = tps
		}
	}
	table, err := img.Table()
	if err != nil {
		return nil, err
	}
	f.Records = table.Len()
	return fromFacts(img.Arch.Name, img.Release, f, table)
}

// fromFacts makes a kernel of facts. The table may be nil.
func fromFacts(arch, release string, f *Facts, table *records.Table) (*Kernel, error) {
	a, err := cpus.ParseArch(arch)
	if err != nil {
		return nil, err
	}
	traits := a.Traits()
	k := &Kernel{
		Arch: arch, Release: release, Facts: f, Own: table, callRow: callRow(traits),
		Protocol: image.ProtocolOf(f.value),
	}
	k.SyncRow, k.StopRow = k.callRow, k.stopRow(traits)
	if traits.FirmwareRounds {
		k.SyncRow = traits.InterruptRow
	}
	k.rows = []Row{
		{Name: k.callRow, Modelled: true, About: "function calls: on_each_cpu, smp_call_function and their kind"},
		{Name: traits.StopRow, Modelled: f.value(image.UpdateStops) > 0 && k.StopRow == traits.StopRow,
			About: "wakeups by the scheduler, of stoppers too"},
	}
	if traits.FirmwareRounds {
		k.rows = append(k.rows, Row{k.SyncRow, true, true, "remote fences by firmware: flush_icache_all"})
	}
	k.Records = f.records()
	return k, nil
}

// callRow is where smp_call_function is counted: on riscv64 IPI1 (arch/riscv/kernel/smp.c,
// IPI_CALL_FUNC), whose rounds the firmware sends.
func callRow(t isa.Traits) string {
	if t.FirmwareRounds {
		return "IPI1"
	}
	return t.InterruptRow
}

// since tells whether the release is this one or a later one. The call graph does not show the body
// of an inlined function of the scheduler, so the release decides.
func (k *Kernel) since(major, minor int) bool {
	var have [2]int
	if _, err := fmt.Sscanf(k.Release, "%d.%d", &have[0], &have[1]); err != nil {
		return false
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}

// wakeRow is where an idle CPU counts that it was woken: as a call where the wakeup is put
// into its queue (ttwu_queue_cond, kernel/sched/core.c, as in 6.1; 5.10 sends it a
// rescheduling interrupt).
func (k *Kernel) wakeRow() string {
	if k.since(6, 0) {
		return k.callRow
	}
	return k.StopRow
}

// stopRow is the same for stoppers, which 6.12 does not put into that queue any more.
func (k *Kernel) stopRow(traits isa.Traits) string {
	if k.since(6, 0) && !k.since(6, 12) {
		return k.callRow
	}
	return traits.StopRow
}

// value is a mechanism's, 0 where it is not understood.
func (f *Facts) value(name string) int { return f.Mechanisms[name].Value }

// numbers is how the numbers of an image's tables are known, and code how its mechanisms
// are.
func (f *Facts) numbers() Basis {
	if f.Hash == "" {
		return Assumed
	}
	return FromTables
}

func (f *Facts) code() Basis {
	if f.Hash == "" {
		return Sourced
	}
	return FromCode
}

// records is what the update of the records sends.
func (f *Facts) records() Records {
	r := Records{Source: f.Mechanisms[image.UpdateRounds].Evidence}
	switch {
	case f.value(image.UpdateStops) > 0:
		r.Cause, r.PerUpdate = cpus.Stop, f.value(image.UpdateStops)
		r.Source = f.Mechanisms[image.UpdateStops].Evidence
	case f.value(image.UpdateRounds) > 0:
		r.PerUpdate = f.value(image.UpdateRounds)
	case f.value(image.BatchRounds) > 0:
		r.PerBatch = f.value(image.BatchRounds)
	default:
		r.PerRecord, r.PerUpdate = f.value(image.RecordFences), f.value(image.UpdateFences)
		r.Source = f.Mechanisms[image.RecordFences].Evidence
	}
	return r
}

// needs fails loudly where a mechanism is not understood: it must not pass as nothing.
func (f *Facts) needs(names ...string) error {
	for _, name := range names {
		if _, ok := f.Mechanisms[name]; !ok {
			why := f.Unknown[name]
			if why == "" {
				why = "the kernel's facts do not name it"
			}
			return fmt.Errorf("mechanism %s: %s", name, why)
		}
	}
	return nil
}
