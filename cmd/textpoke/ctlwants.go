// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/api"
)

// wantColumns are the columns of wanted records.
var wantColumns = results.Declare(declared, "want", map[string]func(api.Want) any{
	"until": func(w api.Want) any {
		return results.If(w.Lease > 0, w.Until.Format(time.RFC3339))
	},
})

// ctlWants says who wants a record, or what a client wants.
func ctlWants(f *ctlFlags) *cobra.Command {
	w := struct {
		client string
		all    bool
	}{client: clientName()}
	cmd := f.newCommand("wants [RECORD]", func(ctx context.Context, s *server, args []string) error {
		if w.all {
			wants, err := s.wants(ctx)
			if err != nil {
				return err
			}
			return printRows(ctx, f.common, wantColumns, "wants", wants)
		}
		var found struct{ Wants []api.Want }
		path := "/v1/clients/" + url.PathEscape(w.client)
		if len(args) == 1 {
			path = "/v1/records/" + url.PathEscape(args[0]) + "/wants"
		}
		if err := s.ask(ctx, http.MethodGet, path, nil, &found); err != nil {
			return err
		}
		return printRows(ctx, f.common, wantColumns, "wants", found.Wants)
	})
	f.prints(cmd, "", wantColumns.Table("wants"))
	return declare(cmd, "ctl wants", &w)
}

// wants reads pages of what all clients want.
func (s *server) wants(ctx context.Context) (all []api.Want, err error) {
	for q := (url.Values{}); ; {
		var page api.Clients
		if err := s.ask(ctx, http.MethodGet, "/v1/clients?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Wants...); page.Next == "" {
			return all, nil
		}
		q.Set("after", page.Next)
		q.Set("after-ops", page.NextOps)
	}
}

// ctlRenew has the leases of a client begin again.
func ctlRenew(f *ctlFlags) *cobra.Command {
	w := struct{ client string }{clientName()}
	cmd := f.newCommand("renew", func(ctx context.Context, s *server, _ []string) error {
		var found api.Client
		if err := s.ask(ctx, http.MethodPost, "/v1/clients/"+url.PathEscape(w.client)+"/renew", nil, &found); err != nil {
			return err
		}
		return printRows(ctx, f.common, wantColumns, "wants", found.Wants)
	})
	f.prints(cmd, "", wantColumns.Table("wants"))
	return declare(cmd, "ctl renew", &w)
}

// updatePlanColumns are the columns of an update's price.
var updatePlanColumns = results.Declare[api.Plan](declared, "updateplan", nil)

// ctlPlan says what an update would cost.
func ctlPlan(f *ctlFlags) *cobra.Command {
	var w struct {
		api.Request
		disable bool
	}
	cmd := f.newCommand("plan", func(ctx context.Context, s *server, _ []string) error {
		w.Enable = new(!w.disable)
		allUnlessNamed(&w.Request)
		var p api.Plan
		if err := s.ask(ctx, http.MethodPost, "/v1/updates?dry-run=true", w.Request, &p); err != nil {
			return err
		}
		answer := fmt.Sprintf("COST: %d interrupts of each CPU, %d rounds", p.IPIsPerCPU, p.Rounds)
		return printAnswer(ctx, f.common, answer, updatePlanColumns, "plan", []api.Plan{p})
	})
	f.prints(cmd, "", updatePlanColumns.Table("plan"))
	registerRequest(cmd, &w.Request)
	return declare(cmd, "ctl plan", &w)
}
