// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

// childArg is the only argument of a process that runs an experiment for a server. A
// program that does not know it refuses it.
const childArg = "-run-experiment-for-server"

// lastWords is how long a child may take to write what it has finished, once it is cancelled.
const lastWords = 10 * time.Second

// childRequest is the request that a child reads. The end of its standard input cancels it.
type childRequest struct {
	Question Question
	Revision string
}

// report is a message of a child: one for each row, and the last with the outcome.
type report struct {
	Rows  int
	Over  bool
	Files []journal.File
	Summary
	Error     string
	Cancelled bool // the error is that it was
}

// Serve runs one experiment and ends the process, where a Lab has started it for that:
// a panic in any goroutine of an experiment ends its own process alone. A
// program that starts a Lab calls Serve first.
func Serve(known func() []*experiments.Experiment, log *zap.Logger) {
	if len(os.Args) != 2 || os.Args[1] != childArg {
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // the server is sent them, too
	var e childRequest
	receive, send := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	if err := receive.Decode(&e); err != nil {
		fmt.Fprintln(os.Stderr, "read an experiment:", err)
		os.Exit(2)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := send.Encode(e.run(ctx, known(), log, send)); err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// run runs the experiment that was asked for.
func (e *childRequest) run(ctx context.Context, known []*experiments.Experiment, log *zap.Logger, send *gob.Encoder) (r report) {
	x, err := prepare(known, e.Question)
	if err != nil {
		return report{Over: true, Error: err.Error()}
	}
	table := x.experiment.Table()
	answer, err := x.request.Run(ctx, experiments.Lab{Seed: x.Seed, Revision: e.Revision, Log: log,
		Add: func(cells ...any) error {
			if err := table.Add(cells...); err != nil {
				return err
			}
			return send.Encode(report{Rows: len(table.Rows)})
		}})
	r = report{Over: true, Summary: Summary{Seed: x.Seed, Config: x.Config, Rows: len(table.Rows)}}
	if answer != nil {
		r.Answer = answer.Headline
		if answer.No != nil {
			r.No = answer.No.Error()
		}
	}
	var failed error
	r.Files, failed = written(table, answer, r.Summary)
	if err = errors.Join(err, failed); err != nil {
		r.Error, r.Cancelled = err.Error(), errors.Is(err, context.Canceled)
	}
	return r
}

// ask has a child run an experiment, and returns its last report.
func (l *Lab) ask(x *run) (last report, err error) {
	if err := x.ctx.Err(); err != nil {
		return last, err
	}
	self, err := os.Executable()
	if err != nil {
		return last, err
	}
	var said firstWords
	cmd := exec.CommandContext(x.ctx, self, childArg)
	cmd.Stderr, cmd.WaitDelay = &said, lastWords
	in, err := cmd.StdinPipe()
	if err != nil {
		return last, err
	}
	cmd.Cancel = in.Close
	out, err := cmd.StdoutPipe()
	if err != nil {
		return last, err
	}
	if err := cmd.Start(); err != nil {
		return last, fmt.Errorf("start a process for it: %w", err)
	}
	_ = gob.NewEncoder(in).Encode(childRequest{x.question, l.cfg.Revision}) // it says if it could not read that
	for receive := gob.NewDecoder(out); ; {
		var r report
		if receive.Decode(&r) != nil {
			break
		}
		if last = r; !r.Over {
			l.mu.Lock()
			x.Rows = r.Rows
			l.mu.Unlock()
		}
	}
	err = cmd.Wait()
	switch {
	case last.Cancelled, !last.Over && x.ctx.Err() != nil:
		return last, x.ctx.Err()
	case !last.Over:
		return report{}, fmt.Errorf("its process ended: %w: %s", err, said.line())
	case last.Error != "":
		return last, errors.New(last.Error)
	}
	return last, nil
}

// firstWords passes a child's standard error on, and keeps the beginning.
type firstWords struct{ text []byte }

func (f *firstWords) Write(p []byte) (int, error) {
	f.text = append(f.text, p[:min(len(p), max(0, maxText-len(f.text)))]...)
	return os.Stderr.Write(p)
}

// line is the first of a panic, or of all.
func (f *firstWords) line() string {
	text := string(f.text)
	text = text[max(0, strings.Index(text, "panic: ")):]
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// written is a run's files: the summary, the table, and the documents beside it.
func written(table results.Table, answer *experiments.Answer, about Summary) (files []journal.File, err error) {
	docs := []results.Document{{Name: summaryName,
		Write: func(w io.Writer) error { return json.NewEncoder(w).Encode(about) }}}
	if len(table.Rows) > 0 {
		docs = append(docs, results.Document{Name: table.Name + ".csv",
			Write: func(w io.Writer) error { return results.WriteCSV(w, table) }})
	}
	if answer != nil {
		docs = append(docs, answer.Documents...)
	}
	for _, d := range docs {
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			return files, fmt.Errorf("%s: %w", d.Name, err)
		}
		files = append(files, journal.File{Name: d.Name, Type: cmp.Or(mediaTypes[path.Ext(d.Name)], "application/octet-stream"), Data: b.Bytes()})
	}
	return files, nil
}

// mediaTypes are those of files, by the ends of their names; the host's own list of types makes no difference.
var mediaTypes = map[string]string{".csv": "text/csv; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
	".md": "text/markdown; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".json": "application/json"}
