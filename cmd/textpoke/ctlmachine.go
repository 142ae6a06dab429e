// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/api"
)

// ctlCPUColumns are the columns of the machine's CPUs.
var ctlCPUColumns = slices.Concat(
	results.Declare[api.CPU](declared, "ctlcpu", nil),
	takenColumns(),
)

// takenColumns are a column for each cause of interrupts.
func takenColumns() (cs results.Columns[api.CPU]) {
	for i := range cpus.NumCauses {
		cause := cpus.Cause(i).String()
		column := results.Column{Name: "taken_" + strings.ReplaceAll(cause, "-", "_"), Kind: results.Integer,
			Doc: "interrupts taken: " + cause}
		cs = append(cs, results.Col[api.CPU]{Column: column, Cell: func(c api.CPU) any { return c.Taken[cause] }})
	}
	return cs
}

func ctlCPUs(f *ctlFlags) *cobra.Command {
	var w struct{ unplug, plug []int }
	cmd := f.newCommand("cpus", func(ctx context.Context, s *server, _ []string) error {
		for i, cpu := range slices.Concat(w.unplug, w.plug) {
			online := i >= len(w.unplug)
			var now api.CPU
			if err := s.ask(ctx, http.MethodPut, fmt.Sprintf("/v1/cpus/%d", cpu), api.Plug{Online: &online},
				&now); err != nil {
				return err
			}
		}
		var all api.CPUs
		if err := s.ask(ctx, http.MethodGet, "/v1/cpus", nil, &all); err != nil {
			return err
		}
		return printRows(ctx, f.common, ctlCPUColumns, "cpus", all.CPUs)
	})
	f.prints(cmd, "", ctlCPUColumns.Table("cpus"))
	return declare(cmd, "ctl cpus", &w)
}

// ctlWatch follows one update, or everything.
func ctlWatch(f *ctlFlags) *cobra.Command {
	var w struct {
		after  int
		kinds  []string
		client string
		renew  bool
	}
	cmd := f.newCommand("watch [ID]", func(ctx context.Context, s *server, args []string) error {
		if len(args) == 0 {
			if f.format == results.FormatCSV {
				return errors.New("--format csv: events are of several kinds: want table or json")
			}
			return f.events(ctx, s, url.Values{"after": {strconv.Itoa(w.after)}, "client": {w.client},
				"renew": {strconv.FormatBool(w.renew)}}, w.kinds)
		}
		u, err := s.update(ctx, http.MethodGet, args[0])
		if err != nil {
			return err
		}
		return f.ended(ctx, s, &u)
	}, live)
	f.prints(cmd, "with ID", updateColumns.Table("updates"))
	return declare(cmd, "ctl watch", &w)
}

// events prints a stream of server-sent events as it comes.
func (f *ctlFlags) events(ctx context.Context, s *server, q url.Values, kinds []string) error {
	resp, err := s.send(ctx, http.MethodGet, "/v1/events?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	kind := ""
	return lines(resp, func(line []byte) error {
		field, value, _ := strings.Cut(string(line), ": ")
		switch {
		case field == "event":
			kind = value
		case field == "data" && (len(kinds) == 0 || slices.Contains(kinds, kind)):
			return f.event(kind, value)
		}
		return nil
	})
}

// event prints one.
func (f *ctlFlags) event(kind, data string) (err error) {
	if f.format == results.FormatJSON {
		_, err = fmt.Fprintln(f.streams.out, data)
		return err
	}
	var e api.Event
	var gap api.Gap
	var of any = &e
	if kind == "gap" {
		of = &gap
	}
	if err := json.Unmarshal([]byte(data), of); err != nil {
		return fmt.Errorf("event %s: %w", kind, err)
	}
	line := describe(kind, &e)
	switch {
	case gap.Missed > 0:
		line = fmt.Sprintf("%12s  gap        %d events before are not known any more", "", gap.Missed)
	case kind == "gap":
		line = fmt.Sprintf("%12s  gap        what was before is not known any more", "")
	}
	_, err = fmt.Fprintln(f.streams.out, line)
	return err
}

// describe is an event for people.
func describe(kind string, e *api.Event) string {
	line := fmt.Sprintf("%12.6f  %-9s", float64(e.FromNS)/1e9, kind)
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
