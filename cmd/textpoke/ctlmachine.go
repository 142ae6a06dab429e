// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/api"
)

// ctlCPUTable is a table for the machine's CPUs: one row each.
func ctlCPUTable() results.Table {
	t := results.Table{Name: "cpus", Columns: []results.Column{
		{Name: "cpu", Doc: "its number"},
		{Name: "role", Doc: "what it does"},
		{Name: "online", Doc: "whether it is plugged in"},
		{Name: "rounds_sent", Doc: "requests to all others that it sent"},
		{Name: "traps", Doc: "breakpoints that it ran into"},
		{Name: "calls", Doc: "calls of the tracer that it made"},
	}}
	for cause := range cpus.NumCauses {
		t.Columns = append(t.Columns, results.Column{Name: "taken_" + causeColumn(cpus.Cause(cause)),
			Doc: "interrupts taken: " + cpus.Cause(cause).String()})
	}
	return t
}

// causeColumn is a cause as part of a column's name.
func causeColumn(c cpus.Cause) string { return strings.ReplaceAll(c.String(), "-", "_") }

func ctlCPUCells(c *api.CPU) []any {
	cells := []any{c.ID, c.Role, c.Online, c.RoundsSent, c.Traps, c.Calls}
	for cause := range cpus.NumCauses {
		cells = append(cells, c.Taken[cpus.Cause(cause).String()])
	}
	return cells
}

func ctlCPUs(f *ctlFlags) *cobra.Command {
	var unplug, plug []int
	cmd := &cobra.Command{
		Use:   "cpus",
		Short: "the machine's CPUs and what each has taken",
		Long:  "cpus lists the CPUs, after it has unplugged some or plugged them in again." + columnsHelp(ctlCPUTable()),
		Example: "  textpoke ctl cpus\n" +
			"  textpoke ctl cpus --unplug 3",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			for i, cpu := range slices.Concat(unplug, plug) {
				online := i >= len(unplug)
				var now api.CPU
				if err := s.ask(cmd.Context(), http.MethodPut, fmt.Sprintf("/v1/cpus/%d", cpu), api.Plug{Online: &online},
					&now); err != nil {
					return err
				}
			}
			var all api.CPUs
			if err := s.ask(cmd.Context(), http.MethodGet, "/v1/cpus", nil, &all); err != nil {
				return err
			}
			return f.rows(cmd.Context(), ctlCPUTable(), len(all.CPUs),
				func(i int, o *output) error { return o.add(ctlCPUCells(&all.CPUs[i])...) })
		},
	}
	cmd.Flags().IntSliceVar(&unplug, "unplug", nil, "`list` of CPUs to unplug first")
	cmd.Flags().IntSliceVar(&plug, "plug", nil, "`list` of CPUs to plug in, after that")
	return cmd
}

// ctlWatch follows one update, or everything.
func ctlWatch(f *ctlFlags) *cobra.Command {
	var after int64
	var kinds []string
	cmd := &cobra.Command{
		Use:   "watch [ID]",
		Short: "wait for an update's end, or follow what happens",
		Long: "watch ID prints an update when it has ended; the exit code is 1 unless it is live then.\n" +
			"Without ID it prints what happens, one event a line, until it is interrupted or the server\n" +
			"stops: seconds since the machine was built, kind and what happened; --format json is an object\n" +
			"a line. The server shows 10,000 events of the machine a second, and says how many it left out.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				if f.format == results.FormatCSV {
					return errors.New("--format csv: events are of several kinds: want table or json")
				}
				return f.events(cmd.Context(), s, after, kinds)
			}
			u, err := s.update(cmd.Context(), http.MethodGet, args[0])
			if err != nil {
				return err
			}
			if err := s.follow(cmd.Context(), &u); err != nil {
				return err
			}
			if err := f.print(cmd.Context(), u); err != nil {
				return err
			}
			return outcome(&u)
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "begin behind the event of this `number`, as far as the server still knows")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "`list` of kinds of events to print (default: all)")
	return cmd
}

// events prints a stream of server-sent events as it comes.
func (f *ctlFlags) events(ctx context.Context, s *server, after int64, kinds []string) error {
	resp, err := s.send(ctx, http.MethodGet, fmt.Sprintf("/v1/events?after=%d", after), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	kind := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			kind = value
		case "data":
			if len(kinds) > 0 && !slices.Contains(kinds, kind) {
				continue
			}
			if err := f.event(kind, value); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// event prints one.
func (f *ctlFlags) event(kind, data string) (err error) {
	if f.format == results.FormatJSON {
		_, err = fmt.Fprintln(f.streams.out, data)
		return err
	}
	var e api.Event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("event %s: %w", kind, err)
	}
	_, err = fmt.Fprintln(f.streams.out, describe(kind, &e))
	return err
}

// describe is an event for people.
func describe(kind string, e *api.Event) string {
	line := fmt.Sprintf("%12.6f  %-9s", float64(e.FromNS)/1e9, kind)
	if kind == "gap" {
		return fmt.Sprintf("%12s  gap        what was before is not known any more", "")
	}
	if u := e.Update; u != nil {
		line += fmt.Sprintf("  update %d of %s: %s", u.ID, u.Client, u.State)
		if u.Batch != 0 {
			line += fmt.Sprintf(" in batch %d", u.Batch)
		}
	}
	if e.CPU != nil {
		line += fmt.Sprintf("  cpu %d", *e.CPU)
	}
	if e.Name != "" {
		line += "  " + e.Name
	}
	switch kind {
	case "round":
		line += fmt.Sprintf(" to %d", e.Count)
	case "batch":
		line += fmt.Sprintf("  %d published", e.Count)
	}
	if e.Skipped > 0 {
		line += fmt.Sprintf("  (%d left out before)", e.Skipped)
	}
	return line
}
