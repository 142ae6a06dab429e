// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/inputs"
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

// comment is what a line says for people.
var comment = regexp.MustCompile(`(?m)(?:^| )#.*$`)

// onSide is a line without the side of the fix that it names, and whether it is there on a side.
func onSide(text string, isFixed bool) (string, bool) {
	if rest, ok := strings.CutSuffix(text, " if broken"); ok {
		return rest, !isFixed
	}
	rest, ok := strings.CutSuffix(text, " if fixed")
	return rest, !ok || isFixed
}

// read reads a case: headers, whose values go on on indented lines, then sections.
func read(file, text string) (*Bug, error) {
	blocks, err := inputs.Blocks(file, comment.ReplaceAllString(text, ""), slices.Concat(caseHeaders, caseSections))
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	var sections []inputs.Block
	for _, b := range blocks {
		for i, it := range b.Items {
			b.Items[i].Text = strings.Join(strings.Fields(it.Text), " ")
		}
		_, seen := headers[b.Key]
		again := slices.ContainsFunc(sections, func(s inputs.Block) bool { return s.Key == b.Key })
		wrong := ""
		switch isSection := slices.Contains(caseSections, b.Key); {
		case isSection && b.Value != "":
			wrong = "want nothing behind it"
		case seen, again && b.Key != patcherSection && b.Key != patchSection:
			wrong = "a second time"
		case isSection:
			sections = append(sections, b)
		case len(sections) > 0:
			wrong = "headers come before the first section"
		default:
			said := append([]string{b.Value}, spelling.Each(b.Items, func(it inputs.Item) string { return it.Text })...)
			headers[b.Key] = strings.TrimSpace(strings.Join(said, " "))
		}
		if wrong != "" {
			return nil, &inputs.ParseError{File: file, Line: b.Line, Value: strconv.Quote(b.Key + ":"), Reason: wrong}
		}
	}
	return bugOf(file, headers, sections)
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

// bugOf makes a Bug of headers and sections.
func bugOf(file string, h map[string]string, sections []inputs.Block) (*Bug, error) {
	b := &Bug{
		Name: h["name"], Number: h["number"], Title: h["title"], Versions: h["versions"], Source: h["source"],
		Story: h["story"], Fix: h["fix"], Want: cpus.Property(h["breaks"]), About: h["about"],
		file: file, sections: sections, Otherwise: map[cpus.Fetch]cpus.Property{},
	}
	var err error
	if h["rests"] != "" {
		if b.Rests, err = fetches(h["rests"]); err != nil {
			return nil, fmt.Errorf("%s: rests: %w", file, err)
		}
	}
	if property, models, _ := strings.Cut(h["otherwise"], " with "); property != "" {
		list, err := fetches(models)
		if err != nil {
			return nil, fmt.Errorf("%s: otherwise: %w", file, err)
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
