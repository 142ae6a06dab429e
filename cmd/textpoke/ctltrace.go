// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/perfetto"
	"github.com/textpoke/textpoke/service/api"
)

// traceFlags say whose trace is read, and how long.
type traceFlags struct {
	*ctlFlags
	client, ops string
	trace       string // the file of a timeline, "" for none
	length      time.Duration
	renew       bool
}

func (t *traceFlags) register(cmd *cobra.Command, least, without string) {
	t.client = clientName()
	declare(cmd, "ctl count", t, least, without)
}

// ctlTrace prints what a client's functions and events write into the machine's trace.
func ctlTrace(f *ctlFlags) *cobra.Command {
	t := &traceFlags{ctlFlags: f}
	cmd := f.newCommand("trace", func(ctx context.Context, s *server, _ []string) (err error) {
		if f.format == results.FormatCSV {
			return errors.New("--format csv: lines are of several kinds: want table or json")
		}
		tell := func(text []byte, l *api.TraceLine) error {
			if f.format != results.FormatJSON {
				text = []byte(l.Text)
			}
			_, err := fmt.Fprintf(f.streams.out, "%s\n", text)
			return err
		}
		if t.trace == "" {
			return t.follow(ctx, s, tell)
		}
		out, err := files.Create(t.trace, 0o666)
		if err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		w := newTraceTimeline(out)
		defer func() { err = keepTrace(out, w.Close, err) }()
		return t.follow(ctx, s, func(_ []byte, l *api.TraceLine) error { return w.add(l) })
	}, live)
	t.register(cmd, " from 0", " (default: when it is interrupted)")
	return declare(cmd, "ctl trace", t)
}

// traceTimeline is a track for each CPU, with what happened there, and one for each task, with its calls.
type traceTimeline struct {
	*perfetto.Writer
	tracks map[string]perfetto.Track
	open   map[perfetto.Track][]openCall
}

// openCall is a call that has not ended, and whether there was room for it.
type openCall struct {
	name  string
	began bool
}

func newTraceTimeline(to io.Writer) *traceTimeline {
	return &traceTimeline{perfetto.NewWriter(to, 0), map[string]perfetto.Track{}, map[perfetto.Track][]openCall{}}
}

func (t *traceTimeline) track(name string, rank int) perfetto.Track {
	track, ok := t.tracks[name]
	if !ok {
		track = t.Track(perfetto.About{Name: name, Rank: rank})
		t.tracks[name] = track
	}
	return track
}

func (t *traceTimeline) add(l *api.TraceLine) error {
	name, at, cpu := l.Name, l.NS, fmt.Sprint("CPU ", l.CPU)
	switch {
	case l.Lost > 0:
		name, at = fmt.Sprintf("%d events lost", l.Lost), t.Last()
	case l.Missed > 0:
		name, at = fmt.Sprintf("%d lines missed", l.Missed), t.Last()
	case l.Kind == tracefs.GraphLine && l.NS == 0:
		return errors.New("--trace: this kernel's lines of the ops graph have no time")
	case l.Kind == tracefs.GraphLine && l.Task == "": // no line has said yet which task it is
		t.call(t.track(cpu, l.CPU), l)
		return nil
	case l.Kind == tracefs.GraphLine:
		t.call(t.track(fmt.Sprintf("%s-%d", l.Task, l.PID), 1<<16+l.PID), l)
		return nil
	}
	t.Instant(t.track(cpu, l.CPU), name, at, perfetto.Link{})
	return nil
}

// call begins or ends a call of a task. Calls inside one that ends, whose own ends were lost, end with it.
func (t *traceTimeline) call(of perfetto.Track, l *api.TraceLine) {
	open := t.open[of]
	if !l.End {
		began := t.Begin(of, l.Name, l.NS, perfetto.Link{})
		switch {
		case l.Took == 0:
			t.open[of] = append(open, openCall{l.Name, began})
		case began: // it calls nothing that is traced: one line says it all
			t.End(of, l.NS+l.Took)
		}
		return
	}
	for i, c := range slices.Backward(open) {
		if c.name != l.Name {
			continue
		}
		for _, inner := range slices.Backward(open[i:]) {
			if inner.began {
				t.End(of, l.NS)
			}
		}
		t.open[of] = open[:i]
		return
	}
}

// counted is how often a function was called, or an event happened.
type counted struct {
	Kind, Name string
	Calls      int
	length     time.Duration
}

var countedColumns = results.Declare(declared, "counted", map[string]func(counted) any{
	"calls_per_s": func(c counted) any { return float64(c.Calls) / c.length.Seconds() },
})

// ctlCount counts the lines of a trace.
func ctlCount(f *ctlFlags) *cobra.Command {
	t := &traceFlags{ctlFlags: f}
	cmd := f.newCommand("count", func(ctx context.Context, s *server, _ []string) error {
		calls := map[counted]int{}
		err := t.follow(ctx, s, func(_ []byte, l *api.TraceLine) error {
			switch lost := l.Lost + l.Missed; {
			case lost > 0:
				calls[counted{Name: "lost"}] += lost
			case !l.End:
				calls[counted{Kind: l.Kind, Name: l.Name}]++
			}
			return nil
		})
		if err != nil {
			return err
		}
		var rows []counted
		for c, n := range calls {
			c.Calls, c.length = n, t.length
			rows = append(rows, c)
		}
		slices.SortFunc(rows, func(a, b counted) int {
			return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
		})
		return printRows(ctx, f.common, countedColumns, "counts", rows)
	}, live)
	f.prints(cmd, "", countedColumns.Table("counts"))
	t.register(cmd, " = 1s above 0", "")
	return cmd
}

// follow reads the trace until its length is over.
func (t *traceFlags) follow(ctx context.Context, s *server, tell func(text []byte, l *api.TraceLine) error) error {
	during := ctx
	if t.length > 0 {
		var cancel context.CancelFunc
		during, cancel = context.WithTimeout(ctx, t.length)
		defer cancel()
	}
	q := url.Values{"client": {t.client}, "ops": {t.ops}, "renew": {strconv.FormatBool(t.renew)}}
	resp, err := s.send(during, http.MethodGet, "/v1/trace?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	var failed error
	err = lines(resp, func(line []byte) error {
		var l api.TraceLine
		if err := json.Unmarshal(line, &l); err != nil && during.Err() != nil {
			return during.Err() // in the middle of a line
		} else if err != nil {
			failed = fmt.Errorf("%s: a line of the trace: %w", s.name, err)
		} else {
			failed = tell(line, &l)
		}
		return failed
	})
	if failed == nil && during.Err() != nil && ctx.Err() == nil { // the time is over
		return nil
	}
	return err
}
