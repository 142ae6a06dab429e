// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"strings"
)

// Outcome is what is asked, as the file says it.
func (t *Test) Outcome() string {
	parts := make([]string, len(t.outcome))
	for i, e := range t.outcome {
		switch {
		case e.reg >= 0:
			r := t.regs[e.reg]
			parts[i] = t.threads[r.thread].name + ":" + r.name
		case e.site >= 0:
			parts[i] = t.sites[e.site].name
		default:
			parts[i] = t.data[e.data].name
		}
		parts[i] += "=" + e.value
	}
	return strings.Join(parts, " ")
}

// line prints one instruction.
func (t *Test) line(i *insn) string {
	f := []string{ops[i.op].name}
	if i.reg >= 0 {
		f = []string{t.regs[i.reg].name, "=", ops[i.op].name}
	}
	switch {
	case i.site >= 0 && i.at >= 0:
		f = append(f, fmt.Sprintf("%s[%d]", t.sites[i.site].name, i.at))
	case i.site >= 0:
		f = append(f, t.sites[i.site].name)
	case i.data >= 0:
		f = append(f, t.data[i.data].name)
	case i.on >= 0:
		f = append(f, t.regs[i.on].name)
	}
	if i.text != "" {
		f = append(f, i.text)
	}
	f = append(f, i.marks...)
	if i.addr >= 0 {
		f = append(f, "addr", t.regs[i.addr].name)
	}
	if i.from >= 0 {
		f = append(f, "data", t.regs[i.from].name)
	}
	return strings.Join(f, " ")
}
