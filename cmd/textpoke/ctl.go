// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/service/api"
	"github.com/textpoke/textpoke/service/journal"
)

func ctlCommand(c *common) *cobra.Command {
	f := &ctlFlags{common: c}
	cmd := &cobra.Command{Use: "ctl"}
	f.server = defaultServer()
	flags.Bind(cmd.PersistentFlags(), fields("ctl", f)...)
	cmd.AddCommand(ctlSwitch(f, true), ctlSwitch(f, false), ctlStatus(f), ctlWatch(f), ctlCancel(f), ctlInterrupts(f),
		ctlCPUs(f), ctlWants(f), ctlRenew(f), ctlPlan(f), ctlTrace(f), ctlCount(f))
	return cmd
}

// updateColumns are the columns of updates.
var updateColumns = results.Declare(declared, "update", map[string]func(api.Update) any{
	"direction": func(u api.Update) any { return directionName(u.Enable) },
	"submitted": func(u api.Update) any { return u.Submitted.Format(time.RFC3339Nano) },
	"waited_ns": func(u api.Update) any { return u.Began.Sub(u.Submitted).Nanoseconds() },
	"took_ns":   func(u api.Update) any { return results.If(u.HasEnded(), u.Ended.Sub(u.Began).Nanoseconds()) },
	"fits":      func(u api.Update) any { return u.Fits.Format(time.RFC3339) },
	"taken":     takenBy(func(t journal.Taken) int64 { return t.Interrupts }),
	"others":    takenBy(func(t journal.Taken) int64 { return t.Others }),
})

// takenBy is what CPUs took while an update was carried out.
func takenBy(count func(journal.Taken) int64) func(api.Update) any {
	return func(u api.Update) any {
		each := spelling.Each(u.Receipt.Taken, func(t journal.Taken) string { return strconv.FormatInt(count(t), 10) })
		return strings.Join(each, " ")
	}
}

// directionName is what users call a direction.
func directionName(enable bool) string {
	if enable {
		return "enable"
	}
	return "disable"
}

// print writes updates.
func (f *ctlFlags) print(ctx context.Context, updates ...api.Update) error {
	return printRows(ctx, f.common, updateColumns, "updates", updates)
}

// report prints an update; one that did not become live is the answer no.
func (f *ctlFlags) report(ctx context.Context, u *api.Update) error {
	switch err := f.print(ctx, *u); {
	case err != nil || !u.HasEnded() || u.State == "live":
		return err
	case u.Error != "":
		return noError{fmt.Errorf("update %d: %s: %s", u.ID, u.State, u.Error)}
	}
	return noError{fmt.Errorf("update %d: %s", u.ID, u.State)}
}

// ctlSwitch is enable and disable.
func ctlSwitch(f *ctlFlags, enable bool) *cobra.Command {
	var w struct {
		api.Request
		within, want time.Duration
		noWait, only bool
		etag         string
	}
	w.Enable = &enable
	cmd := f.newCommand(directionName(enable), func(ctx context.Context, s *server, _ []string) error {
		if w.within > 0 {
			w.Deadline = new(time.Now().Add(w.within))
		}
		if w.want%time.Second != 0 {
			return fmt.Errorf("--lease %v: want whole seconds, such as 30s", w.want)
		}
		w.Wait, w.Lease = !w.noWait, int64(w.want/time.Second)
		allUnlessNamed(&w.Request)
		var u api.Update
		var err error
		if s.match = w.etag; w.only {
			path := "/v1/clients/" + url.PathEscape(w.Client) + "/ops/" + url.PathEscape(w.Ops)
			err = s.ask(ctx, http.MethodPut, path, w.Wish, &u)
		} else {
			err = s.ask(ctx, http.MethodPost, "/v1/updates", w.Request, &u)
		}
		if err != nil {
			return err
		}
		if w.noWait {
			return f.report(ctx, &u)
		}
		return f.ended(ctx, s, &u)
	})
	f.prints(cmd, "", updateColumns.Table("updates"))
	registerRequest(cmd, &w.Request)
	declare(cmd, "ctl switch", &w)
	if enable {
		declare(cmd, "ctl enable", &w)
	}
	return cmd
}

// registerRequest adds the flags for an update's records, and for its client.
func registerRequest(cmd *cobra.Command, req *api.Request) {
	req.Client = clientName()
	declare(cmd, "ctl request", req)
}

// allUnlessNamed makes a request one about all records where it names none.
func allUnlessNamed(req *api.Request) {
	if len(req.Filter)+len(req.Records) == 0 {
		req.Filter = []string{"*"}
	}
}

// clientName is who asks unless that is said: the user.
func clientName() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "ctl"
}

// ended prints an update when it has ended; each time the server waits for a while.
func (f *ctlFlags) ended(ctx context.Context, s *server, u *api.Update) error {
	for !u.HasEnded() {
		if err := s.ask(ctx, http.MethodGet, fmt.Sprintf("/v1/updates/%d?wait=true", u.ID), nil, u); err != nil {
			return err
		}
	}
	return f.report(ctx, u)
}

func ctlStatus(f *ctlFlags) *cobra.Command {
	var w struct {
		client, state string
		limit         int
		newest        bool
	}
	cmd := f.newCommand("status [ID]", func(ctx context.Context, s *server, args []string) error {
		if len(args) == 1 {
			return f.one(ctx, s, http.MethodGet, args[0])
		}
		updates, err := s.updates(ctx, url.Values{"client": {w.client}, "state": {w.state},
			"newest": {strconv.FormatBool(w.newest)}}, w.limit)
		if err != nil {
			return err
		}
		return f.print(ctx, updates...)
	})
	f.prints(cmd, "", updateColumns.Table("updates"))
	return declare(cmd, "ctl status", &w)
}

// pageSize is how many updates are asked for at a time.
const pageSize = 1000

// updates reads pages until there are enough.
func (s *server) updates(ctx context.Context, q url.Values, limit int) (all []api.Update, err error) {
	for len(all) < limit {
		q.Set("limit", strconv.Itoa(min(limit-len(all), pageSize)))
		var page api.Updates
		if err := s.ask(ctx, http.MethodGet, "/v1/updates?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Updates...)
		if page.Next == 0 {
			break
		}
		next := "after"
		if q.Get("newest") == "true" {
			next = "before"
		}
		q.Set(next, strconv.FormatInt(page.Next, 10))
	}
	return all, nil
}

// update asks for one update, by the number that a person typed.
func (s *server) update(ctx context.Context, method, id string) (u api.Update, err error) {
	n, err := strconv.ParseUint(id, 10, 63)
	if err != nil {
		return u, fmt.Errorf("update %q: want its number, as ctl status lists it", id)
	}
	return u, s.ask(ctx, method, fmt.Sprintf("/v1/updates/%d", n), nil, &u)
}

// one prints one update after the request.
func (f *ctlFlags) one(ctx context.Context, s *server, method, id string) error {
	u, err := s.update(ctx, method, id)
	if err != nil {
		return err
	}
	return f.print(ctx, u)
}

func ctlCancel(f *ctlFlags) *cobra.Command {
	return f.prints(f.newCommand("cancel ID", func(ctx context.Context, s *server, args []string) error {
		return f.one(ctx, s, http.MethodDelete, args[0])
	}), "", updateColumns.Table("updates"))
}

func ctlInterrupts(f *ctlFlags) *cobra.Command {
	return f.newCommand("interrupts", func(ctx context.Context, s *server, _ []string) error {
		resp, err := s.send(ctx, http.MethodGet, "/v1/interrupts", nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if f.width() == 0 {
			_, err = io.Copy(f.streams.out, resp.Body)
			return err
		}
		counters, err := interrupts.Parse("the server's counters", resp.Body)
		if err != nil {
			return err
		}
		for i, part := range interrupts.Narrow(counters, f.width()) {
			if i > 0 {
				fmt.Fprintln(f.streams.out)
			}
			if err := interrupts.Write(f.streams.out, part); err != nil {
				return err
			}
		}
		return nil
	})
}
