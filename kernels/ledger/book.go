// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
)

// factsHeader is the first line of a kernel's facts as CSV. The first cell of a line names the kind
// of fact.
const factsHeader = "fact,name,count,detail,source"

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
	for _, name := range sortedBy(f.Mechanisms) {
		put("mechanism", name, f.Mechanisms[name].Value, "", f.Mechanisms[name].Evidence)
	}
	for _, name := range sortedBy(f.Unknown) {
		put("unknown", name, 0, "", f.Unknown[name])
	}
	if f.Unnamed {
		put("unnamed", "keys", 0, "", "the image names no data")
	}
	for _, tp := range f.Recorder {
		put("recorder", tp, 0, "", "")
	}
	for _, name := range sortedBy(f.Tracepoints) {
		put("tracepoint", name, f.Tracepoints[name].Branches, strings.Join(f.Tracepoints[name].Switches, " "), "")
	}
	for _, name := range sortedBy(f.Calls) {
		detail := ""
		if f.Calls[name].Trampoline {
			detail = "trampoline"
		}
		put("call", name, f.Calls[name].Sites, detail, "")
	}
	for _, name := range sortedBy(f.Keys) {
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
	s := newSheet(file, r, factsHeader)
	f := &Facts{Mechanisms: map[string]image.Mechanism{}, Unknown: map[string]string{}, Keys: map[string]int{},
		Calls: map[string]StaticCall{}, Tracepoints: map[string]TracepointFact{}}
	var arch, release string
	var named []records.Raw
	for s.next() {
		name, n := s.name(1), s.count(2)
		switch kind := s.text(0); kind {
		case "arch":
			arch = name
		case "release":
			release = name
		case "records":
			if f.Records = n; n > maxRecords {
				s.fail(2, "count", s.cells[2], fmt.Sprintf("want %d records at the most", maxRecords))
			}
		case "image":
			f.Hash = name
		case "mechanism":
			f.Mechanisms[name] = image.Mechanism{Name: name, Value: n, Evidence: s.text(4)}
		case "unknown":
			f.Unknown[name] = s.text(4)
		case "unnamed":
			f.Unnamed = true
		case "recorder":
			f.Recorder = append(f.Recorder, name)
		case "tracepoint":
			f.Tracepoints[name] = TracepointFact{n, strings.Fields(s.text(3))}
		case "call":
			f.Calls[name] = StaticCall{s.text(3) != "", n}
		case "key":
			f.Keys[name] = n
		case "event":
			group, event, ok := strings.Cut(name, "/")
			if !ok {
				s.fail(1, "event", name, "want GROUP/NAME")
			}
			f.Events = append(f.Events, image.Event{Group: group, Name: event, Tracepoint: s.text(3)})
		case "record":
			at, err := strconv.ParseUint(s.cells[3], 0, 64)
			if err != nil {
				s.fail(3, "address", s.cells[3], "want a number such as 0xffffffff81000010")
			}
			named = append(named, records.Raw{Addr: records.Addr(at), Symbol: name})
		default:
			s.fail(
				0,
				"fact",
				kind,
				"not one of arch, release, records, image, mechanism, unknown, unnamed, recorder, tracepoint, call, key, event, record",
			)
		}
	}
	if s.err == nil && (arch == "" || release == "") {
		s.fail(0, "fact", "", "the file names no arch, or no release")
	}
	if s.err != nil {
		return nil, s.err
	}
	var own *records.Table
	var err error
	if len(named) > 0 {
		if len(named) != f.Records {
			return nil, &records.ParseError{File: file, Value: fmt.Sprint(len(named), " records are named"),
				Reason: fmt.Sprintf("want %d, as many as the file says there are", f.Records)}
		}
		own, err = records.New(file, arch, named)
	}
	var k *Kernel
	if err == nil {
		k, err = fromFacts(arch, release, f, own)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

func sortedBy[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
