// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"slices"
	"strings"
)

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
				return bad(left, "neither a site nor data")
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

// sortClasses puts the expectations into the order of the classes.
func (t *Test) sortClasses() {
	slices.SortFunc(t.expect, func(a, b expectation) int {
		return slices.Index(classes, a.class) - slices.Index(classes, b.class)
	})
}
