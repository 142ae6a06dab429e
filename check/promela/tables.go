// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
)

// tables writes what was worked out about bytes.
func (x *export) tables(p *page) {
	for i := range x.sites {
		s := &x.sites[i]
		sp := sitePage{Number: i}
		for v, t := range s.versions {
			names := ""
			for k := range s.insns {
				names += fmt.Sprintf(" %d", slices.IndexFunc(s.insns[k].has, func(set uint) bool { return set>>v&1 != 0 }))
			}
			sp.Versions = append(sp.Versions, fmt.Sprintf("%2d  %s, text%s", v, t.Format(x.code.Len), names))
		}
		if p.Literals {
			for v, ops := range s.literals {
				sp.Literals = append(sp.Literals, fmt.Sprintf("literal %2d  %#x, ops %d", v, ops, x.opsNumber(ops)))
			}
		}
		p.Sites = append(p.Sites, sp)
		p.Versions = max(p.Versions, len(s.versions))
		for _, in := range s.insns {
			p.Texts = max(p.Texts, len(in.texts))
		}
	}
	p.Numbers = spelling.Numbers(p.Texts)
	x.opsTable(p)
	x.fetchTables(p)
	if p.Literals {
		x.literalTable(p)
	}
	if p.Traps {
		acts := &table{kind: "byte", name: "acts_as"}
		acts.row(nil, len(x.sites))
		for _, row := range x.acts {
			acts.row(row, len(x.sites))
		}
		p.Acts = acts.String() + "#define acts(batch, site)\tacts_as[(batch) * SITES + (site)]\n"
	}
}

// opsTable says what each ops is at first.
func (x *export) opsTable(p *page) {
	p.Ops = []string{"wild"}
	p.OpsNames = []string{"0: no ops has this address"}
	for i, addr := range x.ops {
		o, what := "wild", "may be called once it is attached"
		switch {
		case addr == x.m.NopOps:
			o, what = "nobody", "calls nobody"
		case slices.Contains(x.m.Attached, addr):
			o, what = "tracer", "may be called"
		}
		p.Ops = append(p.Ops, o)
		p.OpsNames = append(p.OpsNames, fmt.Sprintf("%d: %#x %s", i+1, addr, what))
	}
	for _, st := range x.program.Plan {
		if ops, changes := x.changes(st); changes && !slices.Contains(p.OpsStored, ops) {
			p.OpsStored = append(p.OpsStored, ops)
		}
	}
}

// literalTable says what the versions of each literal name.
func (x *export) literalTable(p *page) {
	names := &table{kind: "byte", name: "names_ops"}
	longest := 0
	for i := range x.sites {
		longest = max(longest, len(x.sites[i].literals))
	}
	for i := range x.sites {
		var row []uint
		for _, ops := range x.sites[i].literals {
			row = append(row, x.opsNumber(ops))
		}
		names.row(row, longest)
	}
	p.Names = names.String() + fmt.Sprintf("#define names(version)\tnames_ops[site * %d + (version)]\n", longest) +
		fmt.Sprintf("#define NOP_OPS %d\n", p.NopOps)
}

// fetchTables has three tables by window: the texts that a fetch may return, the versions
// that these are, and the ops that they call.
func (x *export) fetchTables(p *page) {
	may, has, calls := &table{kind: "int", name: "may"}, &table{kind: "int", name: "has_text"}, &table{kind: "byte",
		name: "calls_ops"}
	for i := range x.sites {
		s := &x.sites[i]
		for _, in := range s.insns {
			for v := range p.Versions {
				var row []uint
				if v < len(in.may) {
					row = in.may[v]
				}
				may.row(row, p.Versions)
			}
			has.row(in.has, p.Texts)
		}
		last := s.insns[len(s.insns)-1]
		firsts := []uint{^uint(0)}
		if p.Pair {
			firsts = s.insns[0].has
		}
		for f := range firsts {
			row := make([]uint, p.Texts)
			for t := firstText; t < len(last.texts); t++ {
				if both := firsts[f] & last.has[t]; both != 0 {
					row[t] = x.callOf(s, both)
				}
			}
			calls.row(row, p.Texts)
		}
		for range p.Texts - len(firsts) {
			if p.Pair {
				calls.row(nil, p.Texts)
			}
		}
	}
	p.May, p.Has = may.String(), has.String()
	index := "site * TEXTS + (t)"
	if p.Pair {
		index = "(site * TEXTS + first) * TEXTS + (t)"
	}
	p.Calls = calls.String() + "#define calls(t)\tcalls_ops[" + index + "]\n"
}

// callOf says what executing any of some versions does.
func (x *export) callOf(s *site, versions uint) uint {
	for v, t := range s.versions {
		if versions>>v&1 == 0 {
			continue
		}
		insn := x.execute(s, t)
		if insn.Kind == isa.Call {
			return 1 + x.callee(insn)
		}
		return 0
	}
	return 0
}

// callee is the ops that a call goes through, where no literal says which.
func (x *export) callee(call isa.Insn) uint {
	x.callsNobody = x.callsNobody || uint64(call.Target) == x.m.NopOps
	return x.opsNumber(uint64(call.Target))
}

// table is a constant array.
type table struct {
	kind, name string
	n          int
	rows       []string
}

func (t *table) row(values []uint, width int) {
	var list []string
	for i := range width {
		v := uint(0)
		if i < len(values) {
			v = values[i]
		}
		list = append(list, fmt.Sprint(v))
	}
	t.n += width
	t.rows = append(t.rows, "\t"+strings.Join(list, ", "))
}

func (t *table) String() string {
	return fmt.Sprintf("hidden %s %s[%d] = {\n%s\n};\n", t.kind, t.name, t.n, strings.Join(t.rows, ",\n"))
}
