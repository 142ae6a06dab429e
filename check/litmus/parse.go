// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Parse reads a test. name is the file's, for errors: they say file, line and
// offending value in one line. The format, line by line; # begins a comment:
//
//	test NAME
//	about SENTENCE                      the outcome in words
//	source SENTENCE                     where the expected kinds are from
//	site NAME TEXT [aligned|unaligned]  one character a part, the text at first
//	data NAME [VALUE]                   0 unless told
//	thread NAME                         then its instructions, in program order
//	outcome THREAD:REGISTER=VALUE PLACE=VALUE ...
//	expect allowed|forbidden|none CLASS ...
//	differs CLASS ...: REASON           the model may disagree with the kind
//	weaker CLASS ...: REASON            the window model allows what is forbidden
//	stronger CLASS ...: REASON          it forbids what is allowed
//
// The instructions:
//
//	store SITE TEXT, store SITE[PART] TEXT   with alias: through another address (x86)
//	write DATA VALUE [release]
//	REG = read PLACE [acquire]
//	REG = exec SITE, REG = exec SITE[PART]   which text was executed
//	ctrl REG                                 a conditional branch
//	ipi, wait                                interrupt all others; wait for their answers
//	dc SITE, ic SITE, dsb, dmb, dmb.st, dmb.ld, isb     (arm)
//	fence, fence.i                                      (rv)
//	serialise, mfence, lock                             (x86)
//
// "addr REG" and "data REG" behind an instruction make its address or its data
// depend on a register.
func Parse(name string, r io.Reader) (*Test, error) {
	p := parser{test: &Test{}, thread: -1, told: map[*class]int{}}
	in := bufio.NewScanner(r)
	for in.Scan() {
		p.at++
		text, _, _ := strings.Cut(in.Text(), "#")
		if f := strings.Fields(text); len(f) > 0 {
			if err := p.line(f); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, p.at, err)
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.at+1, err)
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.at, err)
	}
	return p.test, nil
}

type parser struct {
	test   *Test
	at     int            // line
	thread int            // being told, -1 before the first
	told   map[*class]int // the line that says what is expected of it
	ics    int
}

// bad is an error about one word of a line.
func bad(value, format string, args ...any) error {
	return fmt.Errorf("%q: %s", value, fmt.Sprintf(format, args...))
}

func (p *parser) line(f []string) error {
	rest := strings.Join(f[1:], " ")
	switch f[0] {
	case "test":
		return once(&p.test.Name, f[0], rest)
	case "about":
		return once(&p.test.About, f[0], rest)
	case "source":
		return once(&p.test.Source, f[0], rest)
	case "site":
		return p.site(f[1:])
	case "data":
		return p.data(f[1:])
	case "thread":
		return p.begin(f[1:])
	case "outcome":
		return p.outcome(f[1:])
	case "expect":
		return p.expect(f[1:])
	case "differs", "weaker", "stronger":
		return p.reason(f[0], rest)
	default:
		return p.insn(f)
	}
}

func once(at *string, what, value string) error {
	switch {
	case value == "":
		return bad(what, "nothing behind it")
	case *at != "":
		return bad(what, "told before, as %q", *at)
	case what == "test" && strings.Contains(value, " "):
		return bad(value, "want one word")
	}
	*at = value
	return nil
}

func (p *parser) site(f []string) error {
	if len(f) < 2 || len(f) > 3 {
		return bad("site "+strings.Join(f, " "), "want a name, a text, and aligned or unaligned")
	}
	s := site{name: f[0], initial: f[1]}
	if err := p.fresh(f[0]); err != nil {
		return err
	}
	if err := checkText(f[1]); err != nil {
		return err
	}
	switch several := len(f[1]) > 1; {
	case several != (len(f) == 3):
		return bad(f[1], "a site of several parts, and no other, is aligned or unaligned")
	case several && f[2] != "aligned" && f[2] != "unaligned":
		return bad(f[2], "want aligned or unaligned")
	case several:
		s.aligned = f[2] == "aligned"
	}
	if len(p.test.sites) == maxSites {
		return bad(f[0], "more than %d sites", maxSites)
	}
	p.test.sites = append(p.test.sites, s)
	return nil
}

func (p *parser) data(f []string) error {
	if len(f) < 1 || len(f) > 2 {
		return bad("data "+strings.Join(f, " "), "want a name and perhaps a value")
	}
	d := datum{f[0], "0"}
	if len(f) == 2 {
		d.initial = f[1]
	}
	if err := p.fresh(f[0]); err != nil {
		return err
	}
	if err := checkText(d.initial); err != nil {
		return err
	}
	if len(p.test.data) == maxData {
		return bad(f[0], "more than %d data", maxData)
	}
	p.test.data = append(p.test.data, d)
	return nil
}

func (p *parser) begin(f []string) error {
	if len(f) != 1 {
		return bad("thread "+strings.Join(f, " "), "want one name")
	}
	if err := checkName(f[0]); err != nil {
		return err
	}
	if p.test.threadNamed(f[0]) >= 0 {
		return bad(f[0], "two threads of this name")
	}
	if len(p.test.threads) == maxThreads {
		return bad(f[0], "more than %d threads", maxThreads)
	}
	p.thread = len(p.test.threads)
	p.test.threads = append(p.test.threads, thread{name: f[0]})
	return nil
}

// fresh checks the name of a new place.
func (p *parser) fresh(name string) error {
	if s, d := p.test.place(name); s >= 0 || d >= 0 {
		return bad(name, "two places of this name")
	}
	return checkName(name)
}

func checkName(s string) error {
	for _, r := range s {
		if !letter(r) && r != '_' {
			return bad(s, "want a name of letters, digits and _")
		}
	}
	return nil
}

func checkText(s string) error {
	if len(s) == 0 || len(s) > maxParts {
		return bad(s, "want 1 to %d letters or digits", maxParts)
	}
	for _, r := range s {
		if !letter(r) {
			return bad(s, "want letters or digits")
		}
	}
	return nil
}

func letter(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// place is the index of the site, and that of the datum, of a name; -1 for none.
func (t *Test) place(name string) (int, int) {
	return slices.IndexFunc(t.sites, func(s site) bool { return s.name == name }),
		slices.IndexFunc(t.data, func(d datum) bool { return d.name == name })
}

func (t *Test) threadNamed(name string) int {
	return slices.IndexFunc(t.threads, func(th thread) bool { return th.name == name })
}

func (t *Test) register(thread int, name string) int {
	return slices.IndexFunc(t.regs, func(r register) bool { return r.thread == thread && r.name == name })
}

// finish checks what only the whole can tell, and goes back to the line at fault.
func (p *parser) finish() error {
	t := p.test
	switch {
	case t.Name == "":
		return errors.New("no test directive: the test has no name")
	case len(t.threads) == 0:
		return errors.New("no thread: nothing happens")
	case len(t.outcome) == 0:
		return errors.New("no outcome: nothing is asked")
	case len(t.expect) == 0:
		return errors.New("no expect directive: no machine class is asked about")
	}
	slices.SortFunc(t.expect, func(a, b expectation) int {
		return slices.Index(classes, a.class) - slices.Index(classes, b.class)
	})
	for _, e := range t.expect {
		for _, th := range t.threads {
			for i := range th.insns {
				if th.insns[i].families()&e.class.family == 0 {
					p.at = p.told[e.class]
					return bad(t.line(&th.insns[i]), "class %s has no such instruction", e.class.name)
				}
			}
		}
	}
	return nil
}

// outcome reads a conjunction of equations.
func (p *parser) outcome(f []string) error {
	if len(p.test.outcome) > 0 {
		return bad("outcome", "told before")
	}
	for _, s := range f {
		left, value, ok := strings.Cut(s, "=")
		if !ok {
			return bad(s, "want THREAD:REGISTER=VALUE or PLACE=VALUE")
		}
		if err := checkText(value); err != nil {
			return err
		}
		t := term{reg: -1, site: -1, data: -1, value: value}
		parts := 0
		if name, reg, ok := strings.Cut(left, ":"); ok {
			th := p.test.threadNamed(name)
			if th < 0 {
				return bad(name, "no thread of this name")
			}
			if t.reg = p.test.register(th, reg); t.reg < 0 {
				return bad(reg, "thread %s has no such register", name)
			}
			parts = p.test.regs[t.reg].parts
		} else {
			t.site, t.data = p.test.place(left)
			if t.site < 0 && t.data < 0 {
				return bad(left, "want a site or data")
			}
			if t.site >= 0 {
				parts = len(p.test.sites[t.site].initial)
			}
		}
		if parts > 0 && parts != len(value) {
			return bad(value, "%s holds %d parts", left, parts)
		}
		p.test.outcome = append(p.test.outcome, t)
	}
	if len(f) == 0 {
		return bad("outcome", "nothing behind it")
	}
	return nil
}

// expect reads a kind and the classes that it is expected of.
func (p *parser) expect(f []string) error {
	if len(f) < 2 {
		return bad("expect "+strings.Join(f, " "), "want a kind and at least one class")
	}
	want, err := parseVerdict(f[0])
	if err != nil {
		return bad(f[0], "%v", err)
	}
	for _, name := range f[1:] {
		c, err := parseClass(name)
		if err != nil {
			return bad(name, "%v", err)
		}
		if p.told[c] > 0 {
			return bad(name, "told before")
		}
		p.told[c] = p.at
		p.test.expect = append(p.test.expect, expectation{class: c, want: want})
	}
	return nil
}

// reason reads why the model, or the window model, differs.
func (p *parser) reason(directive, rest string) error {
	names, why, _ := strings.Cut(rest, ":")
	why = strings.TrimSpace(why)
	if why == "" || strings.TrimSpace(names) == "" {
		return bad(directive+" "+rest, "want classes, a colon and a reason")
	}
	for name := range strings.FieldsSeq(names) {
		c, err := parseClass(name)
		if err != nil {
			return bad(name, "%v", err)
		}
		at := slices.IndexFunc(p.test.expect, func(e expectation) bool { return e.class == c })
		if at < 0 {
			return bad(name, "nothing is expected of this class, so far")
		}
		e := &p.test.expect[at]
		switch {
		case directive == "differs" && e.differs == "":
			e.differs = why
		case directive == "weaker" && e.window == Same:
			e.window, e.why = Weaker, why
		case directive == "stronger" && e.window == Same:
			e.window, e.why = Stronger, why
		default:
			return bad(directive, "%s has a reason already", name)
		}
	}
	return nil
}
