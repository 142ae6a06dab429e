// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

// The sections of a case beside those of the path.
const (
	machineSection = "machine"
	textSection    = "text"
	patchSection   = "patches" // of the patchers that follow
	patcherSection = "patcher" // one for each patcher
)

var (
	caseHeaders  = strings.Fields("name number title versions source story fix breaks otherwise rests about")
	caseSections = append([]string{machineSection, textSection, patchSection, patcherSection}, cpus.SectionNames()...)
)

// side says on which side of the fix a line is there.
type side uint8

const (
	both side = iota
	broken
	fixed
)

// on tells whether a line is there.
func (s side) on(isFixed bool) bool { return s == both || (s == fixed) == isFixed }

// line is one line of a section.
type line struct {
	no   int
	text string
	side side
}

// section is a run of lines.
type section struct {
	name  string
	no    int
	lines []line
}

// reader is where reading a case has got to.
type reader struct {
	file     string
	no       int
	headers  map[string]string
	last     string // the header that may go on
	sections []section
}

// wrong is an error about the line that was read last.
func (r *reader) wrong(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.file, r.no, fmt.Sprintf(format, args...))
}

// read reads a case: headers, whose values go on on indented lines, then sections. A # begins a
// comment.
func read(file, text string) (*Bug, error) {
	r := &reader{file: file, headers: map[string]string{}}
	for raw := range strings.SplitSeq(text, "\n") {
		r.no++
		if i := strings.Index(" "+raw, " #"); i >= 0 {
			raw = raw[:i]
		}
		said := strings.Join(strings.Fields(raw), " ")
		var err error
		switch {
		case said == "":
		case raw[0] != ' ':
			err = r.head(said)
		case len(r.sections) == 0 && r.last != "":
			r.headers[r.last] = strings.TrimSpace(r.headers[r.last] + " " + said)
		case len(r.sections) == 0:
			err = r.wrong("%q: want a header or a section before it", said)
		default:
			r.add(said)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.bug()
}

// head reads the line of a header or of a section.
func (r *reader) head(said string) error {
	key, value, ok := strings.Cut(said, ":")
	value = strings.TrimSpace(value)
	_, seen := r.headers[key]
	known := append(slices.Clone(caseHeaders), caseSections...)
	switch {
	case !ok:
		return r.wrong("%q: want a colon behind a header or a section, and blanks before a line of one", said)
	case !slices.Contains(known, key):
		return r.wrong("%q: %v", key+":", spelling.NotOneOf(key, known))
	case slices.Contains(caseSections, key) && value != "":
		return r.wrong("%q: want nothing behind %q", value, key+":")
	case slices.Contains(caseSections, key):
		again := slices.ContainsFunc(r.sections, func(s section) bool { return s.name == key })
		if again && key != patcherSection && key != patchSection {
			return r.wrong("%q: a second time", key+":")
		}
		r.sections = append(r.sections, section{name: key, no: r.no})
	case len(r.sections) > 0:
		return r.wrong("%q: headers come before the first section", key+":")
	case seen:
		return r.wrong("%q: a second time", key+":")
	default:
		r.headers[key], r.last = value, key
	}
	return nil
}

// add adds a line to the section that is open.
func (r *reader) add(said string) {
	l := line{no: r.no, text: said}
	for s, word := range map[side]string{broken: " if broken", fixed: " if fixed"} {
		if rest, ok := strings.CutSuffix(said, word); ok {
			l.text, l.side = rest, s
		}
	}
	s := &r.sections[len(r.sections)-1]
	s.lines = append(s.lines, l)
}

// aboutTracers: about who is called, and not about how text is changed.
const aboutTracers = "tracers"

// kinds is the kind under which a case is listed, by its header: kernels keep to a rule, or
// would have to; a proposal was never merged; hardening removed a bug that no user is known
// to have met.
var kinds = map[string]string{
	"": "bug", aboutTracers: "tracer bug", "hardening": "hardening", "rule": "rule", "proposal": "proposal",
	"elsewhere": "elsewhere",
}

// bug makes a Bug of the lines.
func (r *reader) bug() (*Bug, error) {
	h := r.headers
	b := &Bug{
		Name: h["name"], Number: h["number"], Title: h["title"], Versions: h["versions"], Source: h["source"],
		Story: h["story"], Fix: h["fix"], Want: cpus.Property(h["breaks"]), About: h["about"],
		file: r.file, sections: r.sections, Otherwise: map[cpus.Fetch]cpus.Property{},
	}
	var err error
	if h["rests"] != "" {
		if b.Rests, err = fetches(h["rests"]); err != nil {
			return nil, fmt.Errorf("%s: rests: %w", r.file, err)
		}
	}
	if property, models, _ := strings.Cut(h["otherwise"], " with "); property != "" {
		list, err := fetches(models)
		if err != nil {
			return nil, fmt.Errorf("%s: otherwise: %w", r.file, err)
		}
		for _, f := range list {
			b.Otherwise[f] = cpus.Property(property)
		}
	}
	return b, nil
}

// fetches reads a list of fetch models.
func fetches(text string) ([]cpus.Fetch, error) {
	return spelling.ReadEach(strings.Split(text, ", "), cpus.ParseFetch)
}
