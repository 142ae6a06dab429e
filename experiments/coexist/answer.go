package coexist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
)

// answer is the pairs that were tried.
type answer struct {
	asked         int
	first, second []kind
	rows          []row
}

// arches are the instruction sets that rows are of, in order.
func (a *answer) arches() (out []string) {
	for i := range a.rows {
		if !slices.Contains(out, a.rows[i].arch) {
			out = append(out, a.rows[i].arch)
		}
	}
	return out
}

// at is the row of a pair; nil where it was not tried.
func (a *answer) at(arch, first, second string) *row {
	for i := range a.rows {
		if r := &a.rows[i]; r.arch == arch && r.first == first && r.second == second {
			return r
		}
	}
	return nil
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d pairs were tried.", len(a.rows), a.asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"Two rules refuse: only one client may change a function's instruction pointer, and only one trampoline may be called directly from its site. " +
			"Everybody else shares: with a second client the site calls the entry, which goes through the list of all.",
		"A live patch and a BPF trampoline share because the trampoline's owner can be asked. The one that comes second is told EAGAIN, generates its " +
			"trampoline again and comes back; nobody outside sees the number. A trampoline whose owner cannot be asked is refused.",
	}
	for _, arch := range a.arches() {
		r.Sheets = append(r.Sheets, a.matrix(arch))
	}
	r.Sheets = append(r.Sheets, a.rules(), a.order(), a.held())
	r.Measured = []string{
		"Every pair was attached to one function of a tracer that follows kernel/trace/ftrace.c and kernel/bpf/trampoline.c of Linux 7.1 step by step; the function was then called. Error numbers are exact.",
	}
	r.Modelled = []string{
		"Kprobes that are probes of the same function are one probe to the tracer, whoever comes second (register_aggr_kprobe). Where the tracer has no entry that saves all registers, kprobes put a breakpoint of their own.",
		"An instruction set's row says what its rules would answer; whether its kernel is built with the client is not asked.",
		"tracing-multi is the link of the 7.2 cycle, global-trampoline the proposal of July 2025, which was not merged.",
		"Whether a function may be traced at all, or its return value changed, is asked by the BPF verifier before any of this.",
	}
	ans := experiments.NewAnswer(name, r, a.picture())
	ans.No = a.wrong()
	return ans
}

// wrong is the documented cases that came out otherwise; nil if there are none.
func (a *answer) wrong() error {
	var out []string
	for i := range a.rows {
		if r := &a.rows[i]; !r.agrees() {
			out = append(out, fmt.Sprintf("%s, %s then %s: %s, documented %s", r.arch, r.first, r.second, r.errno.String(), r.documented.errno.String()))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("cases are documented otherwise: %s", strings.Join(out, "; "))
}

func (a *answer) headline() string {
	refusals, documented, agreeing := 0, 0, 0
	for i := range a.rows {
		r := &a.rows[i]
		if r.result == refused {
			refusals++
		}
		if r.documented != nil {
			documented++
			if r.agrees() {
				agreeing++
			}
		}
	}
	if len(a.rows) == 0 {
		return "No pair was tried"
	}
	return fmt.Sprintf("%d of %d pairs are refused; %d of %d documented cases come out as documented", refusals, len(a.rows), agreeing, documented)
}

// cell is a row in a word.
func (r *row) cell() string {
	switch r.result {
	case shared:
		return "ok"
	case refused, unsupported:
		return r.errno.String()
	}
	return string(r.result)
}

// matrix is the answers of an instruction set: who is there down, who comes across.
func (a *answer) matrix(arch string) experiments.Sheet {
	s := experiments.Sheet{Title: "Who is there, who comes: " + arch, Columns: []string{"first"}}
	for _, k := range a.second {
		s.Columns = append(s.Columns, k.name)
	}
	for _, first := range a.first {
		line := []string{first.name}
		for _, second := range a.second {
			cell := ""
			if r := a.at(arch, first.name, second.name); r != nil {
				cell = r.cell()
			}
			line = append(line, cell)
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// rules is every refusal by its rule.
func (a *answer) rules() experiments.Sheet {
	s := experiments.Sheet{Title: "By which rule", Columns: []string{"errno", "why", "rule", "pairs", "for instance"}}
	type rule struct{ errno, why, source string }
	counts := map[rule]int{}
	var order []rule
	example := map[rule]string{}
	for i := range a.rows {
		r := &a.rows[i]
		if r.errno == 0 {
			continue
		}
		k := rule{r.errno.String(), r.why, r.source}
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
			example[k] = fmt.Sprintf("%s: %s, then %s", r.arch, r.first, r.second)
		}
	}
	for _, k := range order {
		s.Rows = append(s.Rows, []string{k.errno, k.why, k.source, fmt.Sprint(counts[k]), example[k]})
	}
	return s
}

// order is the pairs where it matters who was first.
func (a *answer) order() experiments.Sheet {
	s := experiments.Sheet{Title: "Where the order matters", Columns: []string{"arch", "one", "other", "one first", "other first"}}
	for i := range a.rows {
		r := &a.rows[i]
		back := a.at(r.arch, r.second, r.first)
		if back != nil && r.first < r.second && r.cell() != back.cell() && r.result != unsupported && back.result != unsupported {
			s.Rows = append(s.Rows, []string{r.arch, r.first, r.second, r.cell(), back.cell()})
		}
	}
	return s
}

// held is the documented cases beside what came out.
func (a *answer) held() experiments.Sheet {
	s := experiments.Sheet{Title: "What is documented", Columns: []string{"arch", "first", "second", "documented", "here", "source"}}
	for i := range a.rows {
		if r := &a.rows[i]; r.documented != nil {
			s.Rows = append(s.Rows, []string{r.arch, r.first, r.second, r.documented.errno.String(), r.errno.String(), r.documented.source})
		}
	}
	return s
}
