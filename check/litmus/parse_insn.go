// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"slices"
	"strconv"
	"strings"
)

// insn reads one instruction of the current thread.
func (p *parser) insn(f []string) error {
	whole := strings.Join(f, " ")
	result := ""
	if len(f) > 2 && f[1] == "=" {
		result, f = f[0], f[2:]
	}
	o, ok := parseOp(f[0])
	if !ok {
		return bad(f[0], "want a directive or an instruction")
	}
	want := ops[o].operand
	switch {
	case p.thread < 0:
		return bad(whole, "an instruction before the first thread")
	case len(p.test.threads[p.thread].insns) == maxInsns:
		return bad(whole, "more than %d instructions in a thread", maxInsns)
	case (want == fromSite || want == fromAny) != (result != ""):
		return bad(whole, "exec and read, and no other, want REGISTER = before them")
	case o == opIC && p.ics == maxICs:
		return bad(whole, "more than %d invalidations", maxICs)
	}
	n := [...]int{nothing: 0, aSite: 1, aText: 2, aValue: 2, aReg: 1, fromSite: 1, fromAny: 1}[want]
	if len(f) < 1+n {
		return bad(whole, "%s wants %d operands", f[0], n)
	}
	i := insn{op: o, site: -1, data: -1, at: -1, reg: -1, on: -1, addr: -1, from: -1}
	if err := p.operands(&i, want, f[1:1+n]); err != nil {
		return err
	}
	if err := p.marks(&i, f[1+n:]); err != nil {
		return err
	}
	if result != "" {
		if err := p.result(&i, result); err != nil {
			return err
		}
	}
	if o == opIC {
		p.ics++
	}
	th := &p.test.threads[p.thread]
	th.insns = append(th.insns, i)
	return nil
}

// operands reads an instruction's operands.
func (p *parser) operands(i *insn, want operand, f []string) error {
	switch want {
	case nothing:
		return nil
	case aReg:
		i.on = p.test.register(p.thread, f[0])
		if i.on < 0 {
			return bad(f[0], "no register of this thread, so far")
		}
		return nil
	}
	name, err := p.part(i, f[0])
	if err != nil {
		return err
	}
	i.site, i.data = p.test.place(name)
	partless := want == aSite || want == aValue || want == fromAny
	switch wantsSite := want == aSite || want == aText || want == fromSite; {
	case i.site < 0 && i.data < 0:
		return bad(name, "want a site or data")
	case wantsSite && i.site < 0:
		return bad(name, "data: want a site")
	case want == aValue && i.data < 0:
		return bad(name, "a site: want data; sites are stored to")
	case partless && i.at >= 0:
		return bad(f[0], "only store and exec are about parts")
	case i.at >= 0 && i.at >= len(p.test.sites[i.site].initial):
		return bad(f[0], "site %s has %d parts", name, len(p.test.sites[i.site].initial))
	case len(f) == 2:
		i.text = f[1]
		return p.stored(i)
	}
	return nil
}

// part splits "a[1]".
func (p *parser) part(i *insn, s string) (name string, err error) {
	name, rest, ok := strings.Cut(s, "[")
	if !ok {
		return s, nil
	}
	digits, ok := strings.CutSuffix(rest, "]")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != digits {
		return "", bad(s, "want PLACE[PART], parts counted from 0")
	}
	i.at = n
	return name, nil
}

// stored checks a text against the place it goes to.
func (p *parser) stored(i *insn) error {
	if err := checkText(i.text); err != nil || i.op == opWrite {
		return err
	}
	room := len(p.test.sites[i.site].initial)
	if i.at < 0 && len(i.text) != room || i.at+len(i.text) > room {
		return bad(i.text, "does not fit: site %s has %d parts", p.test.sites[i.site].name, room)
	}
	n := 1
	for _, th := range p.test.threads {
		for _, j := range th.insns {
			if j.op == opStore && j.site == i.site {
				n++
			}
		}
	}
	if n == maxVersions {
		return bad(i.text, "more than %d versions of site %s", maxVersions, p.test.sites[i.site].name)
	}
	return nil
}

// marks reads what may follow: dependencies and the instruction's own.
func (p *parser) marks(i *insn, f []string) error {
	for len(f) > 0 {
		switch dep := f[0] == "addr" || f[0] == "data"; {
		case dep && len(f) < 2:
			return bad(f[0], "want a register behind it")
		case dep:
			reg := p.test.register(p.thread, f[1])
			if reg < 0 {
				return bad(f[1], "no register of this thread, so far")
			}
			if i.site < 0 && i.data < 0 || f[0] == "data" && !i.op.writes() {
				return bad(f[0], "%s has none that could depend on a register", ops[i.op].name)
			}
			at := &i.addr
			if f[0] == "data" {
				at = &i.from
			}
			if *at >= 0 {
				return bad(f[0], "told before")
			}
			*at, f = reg, f[2:]
		case slices.Contains(ops[i.op].marks, f[0]) && !i.marked(f[0]):
			i.marks, f = append(i.marks, f[0]), f[1:]
		default:
			return bad(f[0], "nothing to say of %s", ops[i.op].name)
		}
	}
	return nil
}

// result gives the instruction a register to put what it returns into.
func (p *parser) result(i *insn, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if p.test.register(p.thread, name) >= 0 {
		return bad(name, "assigned twice")
	}
	if len(p.test.regs) == maxRegs {
		return bad(name, "more than %d registers", maxRegs)
	}
	r := register{thread: p.thread, name: name}
	if i.site >= 0 {
		_, r.parts = p.test.span(i)
	}
	i.reg = len(p.test.regs)
	p.test.regs = append(p.test.regs, r)
	return nil
}
