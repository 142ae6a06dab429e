package metadata

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
	tables "github.com/textpoke/textpoke/tracers/metadata"
)

// answer is the rows that were finished, and what is published.
type answer struct {
	*request
	pairs []*pair
	calls []published.MultiCalls
	grown *counts // of a resizable table with all functions
	rows  []*row
}

// row is the row of a table, or nil.
func (a *answer) row(kind string, n int) *row {
	for _, r := range a.rows {
		if r.kind.String() == kind && r.functions == n {
			return r
		}
	}
	return nil
}

// most is the largest number of functions.
func (a *answer) most() int { return slices.Max(a.functions) }

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if asked := len(a.functions) * len(a.kinds); len(a.rows) < asked {
		r.CutShort = fmt.Sprintf("%d of %d tables were measured.", len(a.rows), asked)
	}
	r.Headline = a.headline()
	r.Answer = a.paragraphs()
	r.Sheets = []experiments.Sheet{a.lookupSheet()}
	if !a.noTime {
		r.Sheets = append(r.Sheets, a.timeSheet())
	}
	r.Sheets = append(r.Sheets, a.pairSheet())
	r.Measured = []string{"Comparisons, loads, cache lines and bytes, exactly: every function is looked up once. Go's own maps do not say what they do."}
	if !a.noTime {
		r.Measured = append(r.Measured, fmt.Sprintf("Times on this machine (%s, %s): medians of %d measurements, each the fastest of several passes, and the interval that holds the median with 95 %% confidence. "+
			"They are lookups through an interface, one behind the other, which a CPU may overlap. \"Of one\" is taken in turns with a table of one function, so that what disturbs one disturbs the other.",
			runtime.GOOS, runtime.GOARCH, a.repeats))
	}
	r.Modelled = []string{
		fmt.Sprintf("Functions are generated, %d bytes apart on average as on x86_64 6.12, and hooked in the order of their addresses.", spacing),
		"Nodes and records are taken to lie in a cache line each. In a kernel the line with a function's padding is one that fetching the function brings near; here it counts like any other and its page is one more to translate, so that random calls of padded functions look dearer than they are.",
		"A padding lookup compares the record's function, which stands for the grace period that a kernel waits before it gives a number to another function.",
	}
	r.Beside = a.beside()
	r.Notes = []string{
		"The published resizable table chains its entries, ours does not; both compare once or twice. Where the called function stands in its chain is not published: the mean is taken.",
		"Of one lookup the series says that it takes about 15 instructions in its hash and 5 with padding (Menglong Dong, bpf list, 2025-07-03). Instructions are not counted here; loads that wait for one another are.",
	}
	if other := a.otherRun(); other != "" {
		r.Notes = append(r.Notes, other)
	}
	if slices.ContainsFunc(a.pairs, func(p *pair) bool { return a.each(p) < 1 }) {
		r.Notes = append(r.Notes, "Less than 1 ns a comparison is at the edge of what loads that wait for one another can do: 4 to 5 cycles each from a first-level cache. "+
			"The called function probably stands before the middle of its chain.")
	}
	more := []results.Document(nil)
	if !a.noTime {
		p := a.timeChart().Picture()
		more = []results.Document{
			{Name: "time.svg", Write: func(w io.Writer) error { return plots.WriteSVG(w, p) }},
			{Name: "time.png", Write: func(w io.Writer) error { return plots.WritePNG(w, p) }},
		}
	}
	return experiments.NewAnswer(name, r, a.chart().Picture(), more...)
}

func (a *answer) headline() string {
	n := a.most()
	var parts []string
	for _, k := range a.kinds {
		r := a.row(k.String(), n)
		if r == nil || r.counts == nil {
			continue
		}
		part := fmt.Sprintf("%.2f in %s", r.counts.comparisons, k)
		if r.times != nil {
			part += fmt.Sprintf(" (hot %.1f times one function's)", r.times.ofOne.Value)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "No table that was asked for says what it does"
	}
	return fmt.Sprintf("Comparisons of a lookup with %s functions hooked: %s", plots.Thousands(float64(n)), strings.Join(parts, ", "))
}

func (a *answer) paragraphs() (out []string) {
	n := a.most()
	grown, padded, fixed := a.row(resizable, n), a.row("padding", n), a.row("fixed-256", n)
	if grown != nil && padded != nil && fixed != nil {
		out = append(out, fmt.Sprintf("A fixed number of buckets is linear in the functions and out of the question. The resizable hash and padding are both flat: %.2f and %.0f cache lines of its own "+
			"a lookup, %.1f and %.1f bytes a function. Padding makes %.0f loads in a row against %.0f and has nothing to search, but needs functions that are padded, text that is written, and an array that never shrinks; "+
			"the hash needs none of these.", grown.counts.lines, padded.counts.lines, grown.counts.bytes, padded.counts.bytes, padded.counts.loads, grown.counts.loads))
	}
	if grown != nil && grown.times != nil {
		out = append(out, fmt.Sprintf("One function that is called while all are hooked is found in %.3f (%.3f to %.3f) of the time that it takes alone: its lines stay in the first-level cache, and the rest of the table is never touched. "+
			"That is what the published bench measures. Called in random order, a lookup takes %.1f ns against %.1f: each of its %.2f lines then comes from wherever the table and the records fit, and no arrangement of a hash saves those of the record and of one cell.",
			grown.times.ofOne.Value, grown.times.ofOne.Low, grown.times.ofOne.High, grown.times.random.Value, grown.times.hot.Value, grown.counts.lines))
	}
	return append(out, a.differences())
}

// differences says whether the pairs differ by the same time, as they must when a
// call is one lookup and other things.
func (a *answer) differences() string {
	var all []float64
	var text []string
	for _, p := range a.pairs {
		all = append(all, p.fixed-p.resizable)
		text = append(text, fmt.Sprintf("%.1f ns (%s)", p.fixed-p.resizable, p.bench))
	}
	s := "A resizable table saves a call " + strings.Join(text, ", ") + "."
	if low, high := slices.Min(all), slices.Max(all); len(all) > 1 && low > 0 && high <= 1.1*low {
		s += " The benches agree within a tenth, as they must if each call is looked up once whatever else it does."
	} else if len(all) > 1 {
		s += " The benches do not agree within a tenth: more than one lookup a call is in the difference."
	}
	return s + " How many times as fast a bench becomes depends on all that is not lookup; lengths of chains alone do not say."
}

func (a *answer) lookupSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "What a lookup does", Columns: []string{"table", "functions", "comparisons, mean", "most", "loads in a row", "cache lines of its own", "bytes a function"}}
	for _, r := range a.rows {
		if c := r.counts; c != nil {
			s.Rows = append(s.Rows, []string{r.kind.String(), fmt.Sprint(r.functions), fmt.Sprintf("%.3f", c.comparisons), fmt.Sprint(c.most), fmt.Sprintf("%.2f", c.loads), fmt.Sprintf("%.2f", c.lines), fmt.Sprintf("%.1f", c.bytes)})
		}
	}
	return s
}

func (a *answer) timeSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "How long it takes", Columns: []string{"table", "functions", "hot, ns", "95 % interval", "of one", "95 % interval", "random, ns", "95 % interval", "heap bytes a function"}}
	for _, r := range a.rows {
		t := r.times
		s.Rows = append(s.Rows, []string{r.kind.String(), fmt.Sprint(r.functions),
			fmt.Sprintf("%.1f", t.hot.Value), fmt.Sprintf("%.1f to %.1f", t.hot.Low, t.hot.High),
			fmt.Sprintf("%.3f", t.ofOne.Value), fmt.Sprintf("%.3f to %.3f", t.ofOne.Low, t.ofOne.High),
			fmt.Sprintf("%.1f", t.random.Value), fmt.Sprintf("%.1f to %.1f", t.random.Low, t.random.High), fmt.Sprintf("%.0f", t.heap)})
	}
	return s
}

// chart is the cache lines of a lookup against functions.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title:    "A fixed number of buckets touches a line for every other function in the chain",
		Subtitle: "Cache lines that one lookup touches and others need not, mean over all functions",
		X:        plots.Axis{Label: "functions hooked", Log: true}, Y: plots.Axis{Label: "cache lines of 64 bytes", Log: true},
	}
	for _, k := range a.kinds {
		s := plots.Series{Name: k.String()}
		for _, r := range a.rowsOf(k) {
			if r.counts != nil {
				s.X, s.Y = append(s.X, float64(r.functions)), append(s.Y, r.counts.lines)
			}
		}
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// timeChart is the time of a lookup of functions in random order.
func (a *answer) timeChart() *plots.Chart {
	c := &plots.Chart{
		Title:    "What a lookup takes when functions are called in random order",
		Subtitle: "All of them are hooked and called, on this machine; medians and 95 % intervals",
		X:        plots.Axis{Label: "functions hooked", Log: true}, Y: plots.Axis{Label: "time of one lookup (ns)", Log: true},
	}
	for _, k := range a.kinds {
		s := plots.Series{Name: k.String()}
		for _, r := range a.rowsOf(k) {
			t := r.times.random
			s.X, s.Y = append(s.X, float64(r.functions)), append(s.Y, t.Value)
			s.Low, s.High = append(s.Low, t.Low), append(s.High, t.High)
		}
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// rowsOf are a table's rows, fewest functions first.
func (a *answer) rowsOf(k tables.Kind) (out []*row) {
	for _, r := range a.rows {
		if r.kind == k {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(x, y *row) int { return x.functions - y.functions })
	return out
}
