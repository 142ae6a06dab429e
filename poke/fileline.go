// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

var notOneOf = spelling.NotOneOf

// The words that begin and end a loop, and that begin a step's conditions.
const (
	loopBegins = "for each patch"
	loopEnds   = "end"
	ifWord     = "if"
	andWord    = "and"
	notWord    = "not"
	lazyWord   = "lazy"
)

// condition is a word behind "if" that the shape of sites or the instruction set
// answers.
type condition struct {
	holds func(Shape) bool
	not   bool
}

// conditions are the words, with their meanings.
var conditions = []struct {
	word  string
	holds func(Shape) bool
}{
	{"tail", Shape.Tail},        // a site is longer than a breakpoint
	{"literal", Shape.Literals}, // a site has a literal that names its ops
	{"rest", func(s Shape) bool { return s.Tail() || s.Literals() }},
	{"head", func(s Shape) bool { return !s.Kept }}, // a site becomes anything but a breakpoint
	{"stores-buffered", func(s Shape) bool { return s.Traits.StoresBuffered }},
	{"round-per-literal", func(s Shape) bool { return s.Traits.RoundPerLiteral }},
	{"round-at-end", func(s Shape) bool { return s.Traits.RoundAtEnd }},
	{"pair", func(s Shape) bool { return s.Len > s.Traits.FetchLen }}, // a site is two instructions
	{"trap-syncs", func(s Shape) bool { return s.Traits.TrapSyncs }},
	{"masked-rounds", func(s Shape) bool { return s.Traits.MaskedRounds }},
}

func conditionWords() (words []string) {
	for _, c := range conditions {
		words = append(words, c.word)
	}
	return words
}

func holdAll(when []condition, s Shape) bool {
	return !slices.ContainsFunc(when, func(c condition) bool { return c.holds(s) == c.not })
}

const walked = "page tables are the machine's, and others change them"

// stepNames are the steps that a file may use; staged are those that it may not,
// and why.
var (
	stepNames = []string{"Publish", "Write", "Fence", "Sync", "StopMachine", "Resume", "Unpublish", "WaitHandlers",
		"Clear",
		"GracePeriod", "SynchronizeRCU", "Lock", "Unlock", "Map"}
	staged = map[Op]string{
		Verify:  "every update verifies all its sites before the first step of the protocol",
		Settle:  "a protocol's promises follow from its rounds",
		Attach:  "the ops is attached before the update",
		Release: "the ops is released after the update",
		Raise:   "a protocol's update has no other patcher to tell",
		Expect:  "a protocol's update has no other patcher to wait for",

		Walk:     walked,
		Split:    walked,
		Collapse: walked,
		Free:     walked,
	}
)

// read takes the text apart.
func (f *planFile) read(src []byte) error {
	if len(src) > MaxPlanFile {
		line := 1 + bytes.Count(src[:MaxPlanFile], []byte("\n"))
		return f.wrong(line, "more than %d bytes", MaxPlanFile)
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	in := reader{planFile: f, section: -1, path: noPath}
	for line := range strings.SplitSeq(text, "\n") {
		f.last++
		line, err := f.clean(strings.TrimSuffix(line, "\r"))
		if err == nil && line != "" {
			err = in.line(line)
		}
		if err != nil {
			return err
		}
	}
	if in.loop != nil {
		return f.wrong(in.loop.line, "%q: nothing ends it: want a line %q", loopBegins, loopEnds)
	}
	for i, s := range f.paths {
		if s.line > 0 && len(s.lines) == 0 {
			return f.wrong(s.line, "%q: nothing in it: want a step a line below it", cpus.Section(i).String()+":")
		}
	}
	return nil
}

// clean takes the comment and the blanks off a line, and refuses what is not
// text.
func (f *planFile) clean(line string) (string, error) {
	if len(line) > maxPlanLine {
		return "", f.wrong(f.last, "a line of %d bytes: want at most %d", len(line), maxPlanLine)
	}
	for i, r := range line {
		_, n := utf8.DecodeRuneInString(line[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return "", f.wrong(f.last, "%q: not UTF-8", line[i:i+1])
		case unicode.IsControl(r) && r != '\t':
			return "", f.wrong(f.last, "%q: a control character", r)
		}
	}
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return strings.TrimSpace(line), nil
}

// reader is where reading has got to.
type reader struct {
	*planFile
	section int          // -1 among the headers
	path    cpus.Section // noPath outside of the path's sections
	loop    *planLine    // that is open
}

// noPath is no section of a path.
const noPath = cpus.Section(cpus.NumSections)

// count refuses a step too many.
func (in *reader) count(text string) error {
	if in.steps++; in.steps > maxPlanSteps {
		return in.wrong(in.last, "%q: more than %d steps", text, maxPlanSteps)
	}
	return nil
}

// line reads one line that says something.
func (in *reader) line(text string) error {
	key, value, ok := strings.Cut(text, ":")
	if ok {
		return in.head(strings.TrimSpace(key), strings.TrimSpace(value))
	}
	words := strings.Fields(text)
	text = strings.Join(words, " ")
	if in.path != noPath {
		return in.pathStep(words)
	}
	if in.section < 0 {
		if slices.Contains(headerNames, words[0]) || slices.Contains(allSections(), text) {
			return in.wrong(in.last, "%q: want a colon behind the first word or words", text)
		}
		return in.wrong(in.last, "%q: a step outside of every section: want a line %q before "+
			"it", text, sectionNames[everyBatch]+":")
	}
	lines := &in.sections[in.section].lines
	switch {
	case text == loopBegins && in.loop != nil:
		return in.wrong(in.last, "%q: line %d has begun to go from patch to patch already", text, in.loop.line)
	case text == loopBegins:
		in.loop = &planLine{line: in.last, loop: true}
		return nil
	case text == loopEnds && in.loop == nil:
		return in.wrong(in.last, "%q: no %q before it", text, loopBegins)
	case text == loopEnds:
		*lines = append(*lines, *in.loop)
		in.loop = nil
		return nil
	}
	l, err := in.step(words)
	if err != nil {
		return err
	}
	if err := in.count(text); err != nil {
		return err
	}
	if in.loop != nil {
		lines = &in.loop.each
	}
	*lines = append(*lines, l)
	return nil
}

// allSections are the names of a plan's sections, and behind them of a path's.
func allSections() []string { return slices.Concat(sectionNames, cpus.SectionNames()) }

// head reads a header or the head of a section.
func (in *reader) head(key, value string) error {
	if in.loop != nil {
		return in.wrong(in.last, "%q: line %d goes from patch to patch: want a line %q "+
			"first", key+":", in.loop.line, loopEnds)
	}
	if i := slices.Index(allSections(), strings.Join(strings.Fields(key), " ")); i >= 0 {
		begun := &in.paths[max(i-numSections, 0)].line
		if i < numSections {
			begun = &in.sections[i].line
		}
		switch {
		case *begun > 0:
			return in.wrong(in.last, "%q: line %d has begun this section already", key+":", *begun)
		case value != "":
			return in.wrong(in.last, "%q: want nothing behind %q: steps begin on the next line", value, key+":")
		}
		*begun = in.last
		if in.section, in.path = i, noPath; i >= numSections {
			in.path = cpus.Section(i - numSections)
		}
		return nil
	}
	first, seen := in.headers[key]
	switch {
	case !slices.Contains(headerNames, key):
		return in.wrong(in.last, "%q: %v", key+":", notOneOf(key, append(slices.Clone(headerNames), allSections()...)))
	case in.section >= 0:
		return in.wrong(in.last, "%q: headers come before the first section", key+":")
	case seen:
		return in.wrong(in.last, "%q: line %d has said it already: %q", key+":", first.line, first.value)
	case value == "":
		return in.wrong(in.last, "%q: nothing behind it", key+":")
	}
	in.headers[key] = header{value, in.last}
	return nil
}

// step reads a step and its conditions.
func (in *reader) step(words []string) (l planLine, err error) {
	l.line = in.last
	if i := slices.Index(words, ifWord); i >= 0 {
		if l.when, err = in.when(words[i+1:]); err != nil {
			return l, err
		}
		words = words[:i]
	}
	if len(words) == 0 {
		return l, in.wrong(in.last, "%q: no step before it", ifWord)
	}
	op := slices.Index(opNames[:], words[0])
	if op < 0 {
		return l, in.wrong(in.last, "step %q: %v", words[0], notOneOf(words[0], stepNames))
	}
	l.step.Op = Op(op)
	if why, ok := staged[l.step.Op]; ok {
		return l, in.wrong(in.last, "step %s: no step of a protocol: %s", words[0], why)
	}
	if l.step.Op == Map && in.loop == nil {
		return l, in.wrong(in.last, "step Map: it maps the page of one site: want it inside %q", loopBegins)
	}
	if reason := l.step.arguments(words[1:]); reason != "" {
		return l, in.wrong(in.last, "%s: %s", strings.Join(words, " "), reason)
	}
	return l, nil
}

// arguments reads what stands behind a step's name, and says what is wrong with
// it.
func (st *Step) arguments(args []string) (reason string) {
	name := func(what string, names []string) int {
		switch {
		case len(args) == 0:
			reason = fmt.Sprintf("want one of %s behind it", strings.Join(names, ", "))
		case len(args) > 1:
			reason = fmt.Sprintf("%q: want nothing behind the %s", args[1], what)
		case !slices.Contains(names, args[0]):
			reason = fmt.Sprintf("%s %q: %v", what, args[0], notOneOf(args[0], names))
		default:
			return slices.Index(names, args[0])
		}
		return 0
	}
	switch st.Op {
	case Write:
		if len(args) > 0 && args[0] == Bytes.String() {
			return st.span(args[1:])
		}
		st.Part = Part(name("part", partNames[:]))
	case Lock, Unlock:
		st.Mutex = Mutex(name("lock", mutexNames[:]))
	case Sync:
		return st.round(args)
	case Walk:
		if st.Masked = len(args) == 1 && args[0] == maskedWord; !st.Masked && len(args) > 0 {
			reason = fmt.Sprintf("%q: want %q or nothing behind %s", strings.Join(args, " "), maskedWord, st.Op)
		}
	case StopMachine:
		if st.Lazy = len(args) == 1 && args[0] == lazyWord; !st.Lazy && len(args) > 0 {
			reason = fmt.Sprintf("%q: want %q or nothing behind %s", strings.Join(args, " "), lazyWord, st.Op)
		}
	default:
		if len(args) > 0 {
			reason = fmt.Sprintf("%q: want nothing behind %s", args[0], st.Op)
		}
	}
	return reason
}

// span reads which bytes of a site are stored.
func (st *Step) span(args []string) (reason string) {
	st.Part = Bytes
	const want = "of a site's bytes, from 0 to 7, such as 1-6"
	if len(args) == 0 {
		return "want those " + want + " behind it"
	}
	span, ok := parseSpan(args[0])
	switch {
	case !ok:
		return fmt.Sprintf("bytes %q: want those %s", args[0], want)
	case len(args) > 1:
		return fmt.Sprintf("%q: want nothing behind the bytes", args[1])
	}
	st.Span = span
	return ""
}

// round reads the number of a round, and whether it is lazy.
func (st *Step) round(args []string) (reason string) {
	if len(args) == 0 {
		return "want the number of the round behind it, from 1 to 255"
	}
	n, err := strconv.ParseUint(args[0], 10, 8)
	switch {
	case err != nil || n == 0 || args[0][0] == '0':
		return fmt.Sprintf("round %q: want a number from 1 to 255", args[0])
	case len(args) > 1 && args[1] != lazyWord:
		return fmt.Sprintf("%q: want %q or nothing behind the number", args[1], lazyWord)
	case len(args) > 2:
		return fmt.Sprintf("%q: want nothing behind %q", args[2], lazyWord)
	}
	st.Round, st.Lazy = uint8(n), len(args) == 2
	return ""
}

// when reads what stands behind "if".
func (in *reader) when(words []string) (when []condition, err error) {
	for {
		var c condition
		if len(words) > 0 && words[0] == notWord {
			c.not, words = true, words[1:]
		}
		if len(words) == 0 {
			return nil, in.wrong(in.last, "%q: want a condition behind it: one of %s, each perhaps with %q before it",
				ifWord, strings.Join(conditionWords(), ", "), notWord)
		}
		known := slices.Index(conditionWords(), words[0])
		if known < 0 {
			return nil, in.wrong(in.last, "condition %q: %v", words[0], notOneOf(words[0], conditionWords()))
		}
		c.holds = conditions[known].holds
		when = append(when, c)
		if words = words[1:]; len(words) == 0 {
			return when, nil
		}
		if words[0] != andWord {
			return nil, in.wrong(in.last, "%q: want %q or nothing behind a condition", words[0], andWord)
		}
		words = words[1:]
	}
}
