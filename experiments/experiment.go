// Package experiments says what an experiment is: a question about live patching
// together with all it takes to answer it again. Each experiment is a package
// below this one; catalogue lists them all.
//
// # Adding one
//
// Make a package experiments/NAME with a variable of type [Experiment] and
// name it in catalogue.All. The command line makes a subcommand of it: Flags
// registers what can be asked for, with its defaults, and returns the [Run]
// that answers. Run hands rows over as they are finished, and returns an
// [Answer] with the plot (package plots) and the report (a [Report], which is
// made of the rows and of nothing else). What it is handed it does not print:
// the command writes NAME.csv, NAME.svg, NAME.png and report.md.
//
// One that asks what things take does so on machines ([Calibrations]), names them in
// rows, pictures and report, and calls their times modelled; internal/modelled runs
// its updates.
package experiments

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// Experiment is one question.
type Experiment struct {
	Name     string // as the command line spells it
	Question string
	Short    string   // what it is about, in a line
	About    string   // how the question is answered, for people who ask for help
	Examples []string // what follows "textpoke experiment "
	Table    func() results.Table

	// Flags registers the flags and returns what answers the question with the
	// values they have by then. It is nil where the flags are those of another
	// command, which the command line has.
	Flags func(*pflag.FlagSet) Run
}

// Lab is what an experiment is run with.
type Lab struct {
	Seed     uint64
	Revision string // of the program
	Log      *zap.Logger
	Add      func(cells ...any) error // takes a finished row of the experiment's table
}

// Run answers the question. When it is cut short it returns what answer the
// finished rows give, beside the error.
type Run func(context.Context, *Lab) (*Answer, error)

// Answer is what comes out, beside the rows.
type Answer struct {
	Headline  string // the answer in one line
	Documents []results.Document
	// No is set when the answer is that something is not as it must be: the exit
	// code says so.
	No error
}

// NewAnswer is the answer of a report and a picture, and whatever documents there
// are beside them.
func NewAnswer(name string, r *Report, p plots.Picture, more ...results.Document) *Answer {
	docs := append(Drawn(name, p), results.Document{Name: "report.md", Write: r.Write})
	return &Answer{Headline: r.Headline, Documents: append(docs, more...)}
}

// Drawn is the files of a picture.
func Drawn(name string, p plots.Picture) []results.Document {
	return []results.Document{
		{Name: name + ".svg", Write: func(w io.Writer) error { return plots.WriteSVG(w, p) }},
		{Name: name + ".png", Write: func(w io.Writer) error { return plots.WritePNG(w, p) }},
	}
}
