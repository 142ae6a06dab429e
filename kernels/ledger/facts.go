// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/release"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
)

// Facts are the facts of a kernel's image to which the rules are applied. They hold no
// number of interrupts.
type Facts struct {
	Hash        string // of the image, SHA-256; "" where a release's source was read in its place
	Records     int    // that ftrace can patch after boot
	Mechanisms  map[string]image.Mechanism
	Unknown     map[string]string         // mechanisms that are not understood, and why
	Keys        map[string]int            // branches of static keys
	Calls       map[string]image.Call     // static calls
	Tracepoints map[string]TracepointFact // by name
	Events      []image.Event
	Recorder    []string // tracepoints that recording of command lines hooks
	Unnamed     bool     // keys have no names
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
		Calls: map[string]image.Call{}, Tracepoints: map[string]TracepointFact{}, Events: img.Events,
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
		f.Calls[c.Name] = c
	}
	for _, tp := range img.Tracepoints() {
		switches := spelling.Each(tp.Switches, func(key uint64) string { return names[key] })
		f.Tracepoints[tp.Name] = TracepointFact{Branches: len(img.Keys.Branches[tp.Key]), Switches: switches}
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
		Arch: arch, Release: release, Facts: f, Own: table, Protocol: image.ProtocolOf(f.value),
		callRow: traits.InterruptRow, SyncRow: traits.InterruptRow, StopRow: traits.StopRow,
	}
	if traits.FirmwareRounds { // of rounds alone: smp_call_function is IPI_CALL_FUNC (arch/riscv/kernel/smp.c)
		k.callRow = "IPI1"
	}
	if k.since(6, 0) && !k.since(6, 12) { // as in wakeRow, for stoppers; 6.12 does not put them into that queue any more
		k.StopRow = k.callRow
	}
	k.rows = []Row{
		{Name: k.callRow, Modelled: true, About: "function calls: on_each_cpu, smp_call_function and their kind"},
		{Name: traits.StopRow, Modelled: f.value(image.UpdateStops) > 0 && k.StopRow == traits.StopRow,
			About: "wakeups by the scheduler, of stoppers too"},
	}
	if traits.FirmwareRounds {
		k.rows = append(k.rows, Row{"", k.SyncRow, true, true, "remote fences by firmware: flush_icache_all"},
			Row{"", flushRow, false, true, "flushes of translations by firmware: those of modules are modelled"})
	}
	k.Records = f.records()
	return k, nil
}

// flushRow is where riscv64's firmware counts flushes of translations for all of the kernel (flush_tlb_all).
const flushRow = "FW_SFENCE_VMA_RECVD"

// since tells whether the release is this one or a later one. The call graph does not show the body
// of an inlined function of the scheduler, so the release decides.
func (k *Kernel) since(major, minor int) bool {
	r, err := release.Of(k.Release)
	return err == nil && !r.Before(release.Numbers{major, minor})
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

// factsHeader is the first line of a kernel's facts as CSV.
const factsHeader = "fact,name,count,detail,source"

// fact is a line of it.
type fact struct {
	Line   int    `col:"#"`
	Kind   string `col:"fact,arch|release|records|image|mechanism|unknown|unnamed|recorder|tracepoint|call|key|event|record"`
	Name   string `col:"name"`
	Count  int    `col:"count"`
	Detail string `col:"detail,maybe"`
	Source string `col:"source,maybe"`
}

// WriteFacts writes what the rules need of a kernel as CSV, which [Open] reads. Records are named
// where the kernel has a table of its own.
func WriteFacts(w io.Writer, k *Kernel) error {
	f := k.Facts
	if f == nil {
		return fmt.Errorf("kernel %s: no image, no facts", k.Name())
	}
	out := csv.NewWriter(w)
	put := func(kind, name string, count int, detail, source string) {
		out.Write([]string{kind, name, strconv.Itoa(count), detail, source}) // its error is kept
	}
	out.Write(strings.Split(factsHeader, ","))
	put("arch", k.Arch, 0, "", "")
	put("release", k.Release, 0, "", "")
	if f.Hash != "" {
		put("image", f.Hash, 0, "sha256", "")
	}
	put("records", "all", f.Records, "", "")
	for _, name := range slices.Sorted(maps.Keys(f.Mechanisms)) {
		put("mechanism", name, f.Mechanisms[name].Value, "", f.Mechanisms[name].Evidence)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Unknown)) {
		put("unknown", name, 0, "", f.Unknown[name])
	}
	if f.Unnamed {
		put("unnamed", "keys", 0, "", "the image names no data")
	}
	for _, tp := range f.Recorder {
		put("recorder", tp, 0, "", "")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tracepoints)) {
		put("tracepoint", name, f.Tracepoints[name].Branches, strings.Join(f.Tracepoints[name].Switches, " "), "")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Calls)) {
		detail := ""
		if f.Calls[name].Trampoline {
			detail = "trampoline"
		}
		put("call", name, f.Calls[name].Sites, detail, "")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Keys)) {
		put("key", name, f.Keys[name], "", "")
	}
	for _, e := range f.Events {
		put("event", e.Group+"/"+e.Name, 0, e.Tracepoint, "")
	}
	if t := k.Own; t != nil {
		for i, at := range t.Addrs() {
			put("record", t.Symbol(i), 0, at.String(), "")
		}
	}
	out.Flush()
	return out.Error()
}

// maxRecords bounds the records that a file of facts may claim: distributions' kernels have
// up to 60,000 (Linux 7.3).
const maxRecords = 1 << 22

// ReadFacts reads what WriteFacts writes. Errors are *records.ParseError: file, line and
// value.
func ReadFacts(file string, r io.Reader) (*Kernel, error) {
	lines, err := sheet.Read[fact](file, r)
	if err != nil {
		return nil, err
	}
	f := &Facts{Mechanisms: map[string]image.Mechanism{}, Unknown: map[string]string{}, Keys: map[string]int{},
		Calls: map[string]image.Call{}, Tracepoints: map[string]TracepointFact{}}
	about := map[string]string{}
	var named []records.Raw
	for _, l := range lines {
		switch l.Kind {
		case "arch", "release", "image":
			about[l.Kind] = l.Name
		case "records":
			if f.Records = l.Count; f.Records > maxRecords {
				return nil, sheet.Wrong(file, l.Line, "count", strconv.Itoa(l.Count),
					fmt.Sprintf("want %d records at the most", maxRecords))
			}
		case "mechanism":
			f.Mechanisms[l.Name] = image.Mechanism{Name: l.Name, Value: l.Count, Evidence: l.Source}
		case "unknown":
			f.Unknown[l.Name] = l.Source
		case "unnamed":
			f.Unnamed = true
		case "recorder":
			f.Recorder = append(f.Recorder, l.Name)
		case "tracepoint":
			f.Tracepoints[l.Name] = TracepointFact{l.Count, strings.Fields(l.Detail)}
		case "call":
			f.Calls[l.Name] = image.Call{Name: l.Name, Trampoline: l.Detail != "", Sites: l.Count}
		case "key":
			f.Keys[l.Name] = l.Count
		case "event":
			group, event, ok := strings.Cut(l.Name, "/")
			if !ok {
				return nil, sheet.Wrong(file, l.Line, "name", l.Name, "want GROUP/NAME")
			}
			f.Events = append(f.Events, image.Event{Group: group, Name: event, Tracepoint: l.Detail})
		case "record":
			at, err := strconv.ParseUint(l.Detail, 0, 64)
			if err != nil {
				return nil, sheet.Wrong(file, l.Line, "detail", l.Detail, "want a number such as 0xffffffff81000010")
			}
			named = append(named, records.Raw{Addr: records.Addr(at), Symbol: l.Name})
		}
	}
	f.Hash = about["image"]
	return madeOf(file, about["arch"], about["release"], f, named)
}

// madeOf is the kernel of a file of facts, with its own table where that names records.
func madeOf(file, arch, release string, f *Facts, named []records.Raw) (k *Kernel, err error) {
	switch {
	case arch == "" || release == "":
		return nil, &records.ParseError{File: file, Line: 1, Reason: "the file names no arch, or no release"}
	case len(named) > 0 && len(named) != f.Records:
		return nil, &records.ParseError{File: file, Value: fmt.Sprint(len(named), " records are named"),
			Reason: fmt.Sprintf("want %d, as many as the file says there are", f.Records)}
	}
	var own *records.Table
	if len(named) > 0 {
		own, err = records.New(file, arch, named)
	}
	if err == nil {
		k, err = fromFacts(arch, release, f, own)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}
