package reach

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished.
type answer struct {
	asked int
	rows  []row
}

// edge is where one table's sites cease to call directly, on one side.
type edge struct {
	row             // the farthest place that all sites call directly; or the nearest
	all    bool     // there is such a place
	none   *row     // the nearest place that no site calls directly
	missed *row     // the place with the most missed sites
	more   []string // ways that sites take beyond
}

// edges are those of all tables, in the order of the rows. Distances ascend by
// what is the farthest and the nearest, however they were asked for.
func (a *answer) edges() (out []*edge) {
	of := map[string]*edge{}
	for i := range a.rows {
		r := &a.rows[i]
		key := strings.Join([]string{r.source, r.arch, r.limit.Layout, r.side()}, " ")
		e := of[key]
		if e == nil {
			e = &edge{row: *r}
			of[key], out = e, append(out, e)
		}
		e.add(r)
	}
	return out
}

func (e *edge) add(r *row) {
	if r.direct == r.sites && (!e.all || r.distance > e.distance) {
		e.row, e.all = *r, true
	}
	if r.direct == 0 && (e.none == nil || r.distance < e.none.distance) {
		e.none = r
		if r.throughEntry > 0 {
			e.more = append(e.more, "ftrace_caller")
		}
	}
	if r.missed() > 0 && (e.missed == nil || r.missed() > e.missed.missed()) {
		e.missed = r
	}
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d places were looked at.", len(a.rows), a.asked)
	}
	edges := a.edges()
	r.Headline = headline(edges)
	r.Answer = paragraphs(edges)
	r.Sheets = []experiments.Sheet{edgeSheet(edges), a.partSheet()}
	r.Measured = []string{
		"Sites that reach the trampoline: each record of the table was asked for the instruction that calls it.",
		"Against it stands the reach that the manual or the kernel states, counted by a search among sorted addresses (column stated), and the share of text that sites fill evenly (contiguous_share).",
	}
	r.Modelled = []string{
		"The trampoline is one address at the distance given; real ones lie where the kernel's allocator puts them.",
		"ftrace_caller lies in the page of the first record. Tables do not list it, since it is not traced; it is among the first that are linked. Only the reach that counts from it depends on that.",
		"Sites of modules count like others; PLT slots of modules are left out.",
		"powerpc is not modelled: its sites branch over 32 MiB (bl, Power ISA) and go through stubs beyond.",
	}
	out := experiments.NewAnswer(name, r, a.chart().Picture())
	for i := range a.rows {
		if r := &a.rows[i]; r.limit.From == published.FromSite && r.missed() != 0 {
			out.No = fmt.Errorf("%s, %s, %s %s: %d sites call directly, and by the stated reach %d", r.source, r.limit.Layout, experiments.Size(r.distance), r.side(), r.direct, r.stated)
			break
		}
	}
	return out
}

// headline names how far the first table of each layout reaches below the text.
func headline(edges []*edge) string {
	var parts []string
	seen := map[string]bool{}
	for _, e := range edges {
		key := e.arch + e.limit.Layout
		if !e.below || seen[key] || !e.all || e.none == nil {
			continue
		}
		seen[key] = true
		parts = append(parts, fmt.Sprintf("%s (%s) all sites to %s and none from %s", e.arch, e.limit.What, experiments.Size(e.distance), experiments.Size(e.none.distance)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Of the distances below the text that were tried, a trampoline is in branch range so far: " + strings.Join(parts, "; ")
}

// paragraphs say what happens out of range, and in it.
func paragraphs(edges []*edge) (out []string) {
	for _, e := range edges {
		if e.below && e.none != nil {
			way := "There is no way round: the sites have no literal that could tell ftrace_caller which trampoline is meant. The kernel keeps its trampolines in range."
			if len(e.more) > 0 {
				way = "They call ftrace_caller instead, which finds the trampoline through the ops that the site's literal names (ops->direct_call)."
			}
			out = append(out, fmt.Sprintf("%s, %s: at %s below the text no site reaches the trampoline itself. %s", e.source, e.limit.What, experiments.Size(e.none.distance), way))
		}
		if !e.below && e.none == nil && e.all && e.direct == e.sites {
			out = append(out, fmt.Sprintf("%s, %s: above the text every place that was tried is in range of all sites, up to %s; places that the 64-bit address space has no room for are left out.", e.source, e.limit.What, experiments.Size(e.distance)))
		}
		if e.missed != nil && e.below {
			out = append(out, fmt.Sprintf("%s, %s: the kernel tests only the distance from ftrace_caller. At %s below it, %d of %d sites pass that test but their jalr, behind an auipc that was rounded for ftrace_caller, would land 4096 bytes off. "+
				"No kernel is known to have met it: trampolines lie far away. Here such sites go through the entry.", e.source, e.limit.What, experiments.Size(e.missed.distance), e.missed.missed(), e.missed.sites))
		}
	}
	return out
}

func edgeSheet(edges []*edge) experiments.Sheet {
	s := experiments.Sheet{Title: "The last place that all sites call directly, and the first that none does", Columns: []string{"table", "releases", "instruction", "side", "sites", "all direct to", "none from", "source of the reach"}}
	for _, e := range edges {
		all, none := "", ""
		if e.all {
			all = experiments.Size(e.distance)
		}
		if e.none != nil {
			none = experiments.Size(e.none.distance)
		}
		s.Rows = append(s.Rows, []string{e.source, e.limit.Releases, e.limit.What, e.side(), fmt.Sprint(e.sites), all, none, e.limit.Source})
	}
	return s
}

// partSheet lists the places where some sites call directly and some do not.
func (a *answer) partSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Places that some sites reach", Columns: []string{"table", "instruction", "side", "distance", "direct", "of", "share", "if sites lay evenly"}}
	for i := range a.rows {
		r := &a.rows[i]
		if r.direct == 0 || r.direct == r.sites {
			continue
		}
		even := ""
		if r.limit.From == published.FromSite {
			even = fmt.Sprintf("%.3f", r.even)
		}
		s.Rows = append(s.Rows, []string{r.source, r.limit.What, r.side(), experiments.Size(r.distance), fmt.Sprint(r.direct), fmt.Sprint(r.sites), fmt.Sprintf("%.3f", r.share()), even})
	}
	return s
}

// chart is the share below the text, for the first table of each layout.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title:    "Direct calls end abruptly where the range of their instruction does",
		Subtitle: "Trampoline below the text of the first table of each instruction set.",
		X:        plots.Axis{Label: "distance of the trampoline (KiB)", Log: true},
		Y:        plots.Axis{Label: "sites that call it directly (%)", From: 0, To: 105},
	}
	place := map[string]int{}
	source := map[string]string{}
	for i := range a.rows {
		r := &a.rows[i]
		key := r.arch + " " + r.limit.Layout
		if source[key] == "" {
			source[key] = r.source
		}
		if !r.below || source[key] != r.source {
			continue
		}
		n, ok := place[key]
		if !ok {
			n = len(c.Series)
			place[key] = n
			c.Series = append(c.Series, plots.Series{Name: r.arch + ": " + r.limit.What})
		}
		c.Series[n].X, c.Series[n].Y = append(c.Series[n].X, float64(r.distance)/1024), append(c.Series[n].Y, 100*r.share())
	}
	return c
}
