package callopsalternatives

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished.
type answer struct {
	*request
	rows []*row
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	asked := 0
	for i := range designs {
		asked += len(designs[i].users()) * len(a.irrelevant)
	}
	if len(a.rows) < asked {
		r.CutShort = fmt.Sprintf("%d of %d combinations were looked at.", len(a.rows), asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"The ops at the site is two loads and one word: whoever has loaded it has its function and its trampoline with it, and one store takes a site " +
			"from one tracer to another. A trampoline for each ops saves a load and pays with code; the trampoline beside the ops saves one for direct calls " +
			"and pays with a second word. Whatever takes direct_call out of the ops makes every direct call out of branch range look its address up.",
	}
	r.Sheets = []experiments.Sheet{a.costSheet(), a.syncSheet(), a.verdictSheet()}
	r.Measured = []string{
		"Loads, lookups and list entries, exactly: an object that is read because another one, or the site's literal, gave its address is one load. Tests hold what is computed against what calls count.",
		"Verdicts: every interleaving of two CPUs while a function goes from one tracer to another, tasks preempted anywhere.",
	}
	if !a.noTime {
		r.Measured = append(r.Measured, fmt.Sprintf("Times on this machine (%s, %s): medians of %d measurements, and the interval that holds the median with 95 %% confidence. "+
			"They are of what Go makes of each design, with everything in the cache; they are worth their ratios.", runtime.GOOS, runtime.GOARCH, a.repeats))
	}
	r.Modelled = []string{
		"Bytes are those of structures with pointers of 8 bytes; a trampoline of an ops takes a page, as on x86_64; a function's entry in the hash of direct functions 32 bytes.",
		fmt.Sprintf("Allocations are for one more function beside %s, where the hash is copied entry by entry (Linux 6.7 and later).", plots.Thousands(float64(a.functions))),
		"Trampolines and sites are words here and not instructions: instruction caches and branch predictors, which decide between code and data, are left out.",
	}
	r.Notes = []string{
		"record-at-site and trampoline-per-ops, and what speaks against them, are from Mark Rutland's mail of 2025-07-29 in \"ftrace,bpf: Use single direct ops for bpf trampolines\"; it has no figures. What is said of trampoline-and-ops-at-site follows from its two words.",
		"global-pair and list are beside them for comparison: what architectures without CALL_OPS do. They know no trampolines here, so that both are two callbacks.",
	}
	return experiments.NewAnswer(name, r, a.chart().Picture())
}

// find is the row of a design with users and the most irrelevant tracers.
func (a *answer) find(design string, u users) *row {
	for _, r := range slices.Backward(a.rows) {
		if r.name == design && r.users == u {
			return r
		}
	}
	return nil
}

func (a *answer) headline() string {
	var parts []string
	for i := range designs {
		if r := a.find(designs[i].name, direct); r != nil {
			parts = append(parts, fmt.Sprintf("%s %d", r.name, r.cost.Loads))
		}
	}
	if len(parts) == 0 {
		return "No design was looked at"
	}
	return "Loads on the way to a direct trampoline out of branch range: " + strings.Join(parts, ", ")
}

func (a *answer) costSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Every design", Columns: []string{"design", "users", "irrelevant", "loads", "lookups", "walked", "bytes a site", "a function", "an ops", "allocations"}}
	if !a.noTime {
		s.Columns = append(s.Columns, "ns, median", "95 % interval")
	}
	for _, r := range a.rows {
		functions, allocations := "", ""
		if r.kind.Direct {
			functions, allocations = fmt.Sprint(r.functionBytes), fmt.Sprint(r.allocations(r.functions))
		}
		line := []string{r.name, r.users.String(), fmt.Sprint(r.irrelevant), fmt.Sprint(r.cost.Loads), fmt.Sprint(r.cost.Hashes), fmt.Sprint(r.cost.Walked),
			fmt.Sprint(r.siteBytes), functions, fmt.Sprint(r.opsBytes), allocations}
		if t := r.time; t != nil {
			line = append(line, fmt.Sprintf("%.1f", t.median), fmt.Sprintf("%.1f to %.1f", t.low, t.high))
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

func (a *answer) syncSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "What has to happen in which order", Columns: []string{"design", "words", "attach", "detach", "another trampoline"}}
	for i := range designs {
		d := &designs[i]
		s.Rows = append(s.Rows, []string{d.name, fmt.Sprint(d.words), d.attach, d.detach, d.modify})
	}
	return s
}

func (a *answer) verdictSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Is it safe?", Columns: []string{"design", "asked of textpoke check", "verdict", "because"}}
	for i := range designs {
		verdict := "cannot be asked"
		if r := a.find(designs[i].name, callback); r != nil && r.verdict != "" {
			verdict = string(r.verdict)
		}
		s.Rows = append(s.Rows, []string{designs[i].name, designs[i].checked.String(), verdict, designs[i].why})
	}
	return s
}

// chart is the loads of every design.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "The ops at the site is two loads away, until somebody joins",
		X:     plots.Axis{Label: "loads on the way to the tracers", Log: true, From: 0.5}, Y: plots.Axis{Names: []string{}},
	}
	if len(a.irrelevant) > 0 {
		c.Subtitle = fmt.Sprintf("with %d tracers of another function", a.irrelevant[len(a.irrelevant)-1])
	}
	most := int64(1)
	for _, r := range a.rows {
		most = max(most, r.cost.Loads)
	}
	c.X.To = math.Pow(10, math.Ceil(math.Log10(float64(most+1))))
	for i := range designs {
		c.Y.Names = append(c.Y.Names, designs[i].name)
	}
	for _, u := range []users{callback, direct, both} {
		s := plots.Series{Name: u.String(), Kind: plots.Lying}
		for i := range designs {
			if r := a.find(designs[i].name, u); r != nil {
				s.X, s.Y = append(s.X, float64(r.cost.Loads)), append(s.Y, float64(i))
				s.Labels = append(s.Labels, fmt.Sprint(r.cost.Loads))
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}
