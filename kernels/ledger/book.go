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

	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
)

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
		Calls: map[string]StaticCall{}, Tracepoints: map[string]TracepointFact{}}
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
			f.Calls[l.Name] = StaticCall{l.Detail != "", l.Count}
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
