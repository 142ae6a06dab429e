// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/service/lab"
)

func (h *Handler) experiments(w http.ResponseWriter, _ *http.Request) error {
	all := Experiments{Experiments: []Experiment{}}
	for _, e := range h.running.Load().lab.Experiments() {
		x := Experiment{Name: e.Name, Question: e.Question, Short: e.Short, Fields: []Field{}}
		for _, f := range e.New().Fields {
			if f.Type == "file" { // of the server
				continue
			}
			doc := strings.ReplaceAll(f.Doc, "`", "")
			x.Fields = append(x.Fields, Field{Name: f.Key(), Type: f.Type, Doc: doc, Default: f.Default, Values: f.Names})
		}
		all.Experiments = append(all.Experiments, x)
	}
	return send(w, http.StatusOK, all)
}

func (h *Handler) startExperiment(w http.ResponseWriter, r *http.Request) error {
	q := Start{Seed: 1}
	if err := h.readBody(w, r, &q); err != nil {
		return err
	}
	if q.Name == "" {
		return badField("name", "is missing")
	}
	if err := text("name", q.Name, maxText); err != nil {
		return err
	}
	ask := lab.Question{Request: choice.Request{Name: q.Name, Config: choice.Choices{}}, Seed: q.Seed}
	for key, v := range q.Config {
		ask.Config[key] = v
	}
	run, err := h.running.Load().lab.Submit(ask)
	var wrong *lab.ConfigError
	switch {
	case errors.As(err, &wrong):
		return badField("config."+wrong.Field, "%v", wrong.Err)
	case errors.Is(err, lab.ErrName):
		return badField("name", "%v; GET /v1/experiments lists them", err)
	case err != nil:
		return err
	}
	w.Header().Set("Location", fmt.Sprintf("/v1/results/%d", run.ID))
	return send(w, http.StatusAccepted, run)
}

func (h *Handler) results(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	limit := int(p.number("limit", 100, 1, maxPage))
	q := lab.Query{Name: p.string("name"), State: lab.State(p.string("state")), After: p.number("after", 0, 0, math.MaxInt64),
		Before: p.number("before", 0, 0, math.MaxInt64), Newest: p.bool("newest"), Limit: limit + 1}
	if q.State != "" && !slices.Contains(lab.States(), q.State) {
		p.fail("state", "%.40q: there is no such state", string(q.State))
	}
	if err := p.check(); err != nil {
		return err
	}
	found := h.running.Load().lab.Results(q)
	page := Results{Results: append([]Result{}, found[:min(len(found), limit)]...)}
	if len(found) > limit {
		page.Next = page.Results[limit-1].ID
	}
	return send(w, http.StatusOK, page)
}

func (h *Handler) result(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	id, wait := p.path("id", math.MaxInt64), p.bool("wait")
	if err := p.check(); err != nil {
		return err
	}
	l := h.running.Load().lab
	ask := l.Result
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Limits.Wait)
	defer cancel()
	if wait {
		keepOpen(w)
		ask = l.Wait
	}
	run, err := ask(ctx, id)
	return respond(w, run, err)
}

// cancelResult cancels what has not ended.
func (h *Handler) cancelResult(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	id := p.path("id", math.MaxInt64)
	if err := p.check(); err != nil {
		return err
	}
	l := h.running.Load().lab
	cancelled := l.Cancel(id)
	run, err := l.Wait(r.Context(), id) // it stops at its next row
	switch {
	case err != nil:
		return err
	case !cancelled:
		return problem(http.StatusConflict, "", "result %d has ended: %s", id, run.State)
	}
	return send(w, http.StatusOK, run)
}

// file sends a file of a result. Its name is looked up among those of the result,
// and nowhere else.
func (h *Handler) file(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	id := p.path("id", math.MaxInt64)
	if err := p.check(); err != nil {
		return err
	}
	name := r.PathValue("name")
	f, err := h.running.Load().lab.File(r.Context(), id, name)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", f.Type)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, _ = w.Write(f.Data)
	return nil
}
