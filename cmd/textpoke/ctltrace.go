// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/perfetto"
	"github.com/textpoke/textpoke/service/api"
)

// traceFlags say whose trace is read, and how long.
type traceFlags struct {
	*ctlFlags
	client, ops string
	length      time.Duration
	renew       bool
}

func (t *traceFlags) register(cmd *cobra.Command, length time.Duration, without string) {
	f := cmd.Flags()
	f.StringVar(&t.client, "client", clientName(), "`name` of the client whose functions and events are told")
	f.StringVar(&t.ops, "ops", "", "those of one `ops` alone: function, event or graph (default: functions and events)")
	f.DurationVar(&t.length, "for", length, "end after this `time`"+without)
	f.BoolVar(&t.renew, "renew", false, "renew the client's leases for as long as this runs")
}

// ctlTrace prints what a client's functions and events write into the machine's trace.
func ctlTrace(f *ctlFlags) *cobra.Command {
	t := &traceFlags{ctlFlags: f}
	var file string
	cmd := &cobra.Command{
		Use: "trace", Annotations: map[string]string{live: ""},
		RunE: f.asking(func(ctx context.Context, s *server, _ []string) (err error) {
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
			if file == "" {
				return t.follow(ctx, s, tell)
			}
			if t.ops == "graph" {
				return errors.New("--trace: lines of the ops graph have no time")
			}
			out, err := files.Create(file, 0o666)
			if err != nil {
				return fmt.Errorf("--trace: %w", err)
			}
			w := &traceTimeline{Writer: perfetto.NewWriter(out, 0), cpus: map[int]perfetto.Track{}}
			defer func() { err = keepTrace(out, w.Close, err) }()
			return t.follow(ctx, s, func(_ []byte, l *api.TraceLine) error { w.add(l); return nil })
		}),
	}
	t.register(cmd, 0, " (default: when it is interrupted)")
	cmd.Flags().StringVar(&file, "trace", "", "write a timeline for ui.perfetto.dev into this `file` instead")
	return cmd
}

// traceTimeline is a track for each CPU, with what happened there.
type traceTimeline struct {
	*perfetto.Writer
	cpus map[int]perfetto.Track
}

func (t *traceTimeline) add(l *api.TraceLine) {
	track, ok := t.cpus[l.CPU]
	if !ok {
		track = t.Track(perfetto.About{Name: fmt.Sprintf("CPU %d", l.CPU), Rank: l.CPU})
		t.cpus[l.CPU] = track
	}
	name, at := l.Name, l.NS
	switch {
	case l.Lost > 0:
		name, at = fmt.Sprintf("%d events lost", l.Lost), t.Last()
	case l.Missed > 0:
		name, at = fmt.Sprintf("%d lines missed", l.Missed), t.Last()
	}
	t.Instant(track, name, at, perfetto.Link{})
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
	cmd := &cobra.Command{
		Use: "count", Annotations: map[string]string{live: ""},
		RunE: f.asking(func(ctx context.Context, s *server, _ []string) error {
			if t.length <= 0 {
				return fmt.Errorf("--for %v: want a time above 0, such as 10s", t.length)
			}
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
		}),
	}
	f.prints(cmd, "", countedColumns.Table("counts"))
	t.register(cmd, time.Second, "")
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
	q := url.Values{"client": {t.client}, "ops": {t.ops}}
	if t.renew {
		q.Set("renew", "true")
	}
	resp, err := s.send(during, http.MethodGet, "/v1/trace?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l api.TraceLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil && during.Err() != nil {
			break // in the middle of a line
		} else if err != nil {
			return fmt.Errorf("%s: a line of the trace: %w", s.name, err)
		}
		if err := tell(lines.Bytes(), &l); err != nil {
			return err
		}
	}
	if during.Err() != nil && ctx.Err() == nil { // the time is over
		return nil
	}
	return lines.Err()
}
