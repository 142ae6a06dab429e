// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/textpoke/textpoke/service"
)

// RecordWants is the records of a name, and who wants them.
type RecordWants struct {
	Records []Record `json:"records"`
	Wants   []Want   `json:"wants"`
}

// Clients is a page of who wants something.
type Clients struct {
	Wants   []Want `json:"wants"`
	Next    string `json:"next,omitempty"`
	NextOps string `json:"next_ops,omitempty"`
}

// Client lists a client's wishes and its updates on their way.
type Client struct {
	Client  string   `json:"client"`
	Wants   []Want   `json:"wants"`
	Updates []Update `json:"updates"`
}

// Ops is what a client wants with one ops.
type Ops struct {
	Client  string   `json:"client"`
	Ops     string   `json:"ops"`
	Records []Record `json:"records"`
}

// Wish is all that a client is to want with one ops.
type Wish struct {
	Key     string   `json:"key,omitempty"`
	Filter  []string `json:"filter,omitempty"`
	Records []string `json:"records,omitempty"`
	Lease   int64    `json:"lease,omitempty"`
	Wait    bool     `json:"wait,omitempty"`
	Hold    bool     `json:"hold,omitempty"`
}

// match is the tag that If-Match names; "" where it says nothing.
func match(r *http.Request) (string, error) {
	said := r.Header.Values("If-Match")
	if len(said) == 0 {
		return "", nil
	}
	tag, ok := strings.CutPrefix(said[0], `"`)
	tag, ends := strings.CutSuffix(tag, `"`)
	if len(said) > 1 || !ok || !ends || tag == "" || strings.ContainsAny(tag, `",`) {
		return "", badField("If-Match", "want one ETag of these ops, in quotes")
	}
	return tag, nil
}

func (h *Handler) recordWants(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := text("name", name, maxText); err != nil {
		return err
	}
	found, wants, err := h.running.Load().service.WantedBy(name)
	return respond(w, RecordWants{found, wants}, err)
}

// clients lists who wants something, by client and ops.
func (h *Handler) clients(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	limit, client, ops := int(p.number("limit", 100, 1, maxPage)), p.string("after"), p.string("after-ops")
	if err := p.check(); err != nil {
		return err
	}
	found := h.running.Load().service.Clients(client, ops, limit+1)
	page := Clients{Wants: found[:min(len(found), limit)]}
	if len(found) > limit {
		page.Next, page.NextOps = page.Wants[limit-1].Client, page.Wants[limit-1].Ops
	}
	return send(w, http.StatusOK, page)
}

func (h *Handler) client(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := text("name", name, maxText); err != nil {
		return err
	}
	wants, open := h.running.Load().service.Client(name)
	return send(w, http.StatusOK, Client{name, wants, open})
}

// renew has a client's leases begin again.
func (h *Handler) renew(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := text("name", name, maxText); err != nil {
		return err
	}
	if err := mine(w, name); err != nil {
		return err
	}
	if r.ContentLength != 0 {
		return badField("", "nothing is read here: want no body")
	}
	if err := h.running.Load().service.Renew(r.Context(), name); err != nil {
		return err
	}
	return h.client(w, r)
}

func (h *Handler) ops(w http.ResponseWriter, r *http.Request) error {
	client, ops := r.PathValue("name"), r.PathValue("ops")
	for field, s := range map[string]string{"name": client, "ops": ops} {
		if err := text(field, s, maxText); err != nil {
			return err
		}
	}
	found, tag := h.running.Load().service.Ops(client, ops)
	w.Header().Set("ETag", service.Quoted(tag))
	return send(w, http.StatusOK, Ops{client, ops, found})
}

// wish has a client want exactly what is sent.
func (h *Handler) wish(w http.ResponseWriter, r *http.Request) error {
	var q Wish
	if err := h.readBody(w, r, &q); err != nil {
		return err
	}
	req := Request{Client: r.PathValue("name"), Ops: r.PathValue("ops"), Key: q.Key, Filter: q.Filter, Records: q.Records,
		Enable: new(true), Lease: q.Lease, Wait: q.Wait, Hold: q.Hold}
	tag, err := match(r)
	if err == nil {
		err = req.keyed(r)
	}
	if err == nil {
		err = req.check()
	}
	if err == nil {
		err = mine(w, req.Client)
	}
	if err != nil {
		return err
	}
	order := req.order()
	order.Set, order.Match = true, tag
	return h.submitted(w, r, order, q.Wait)
}

// plan says what an update would cost.
func (h *Handler) plan(w http.ResponseWriter, r *http.Request, q *Request) error {
	p, err := h.running.Load().service.Plan(r.Context(), q.order())
	return respond(w, p, err)
}

// submitted asks for an update, and answers once it is durable; with wait, once it has ended.
func (h *Handler) submitted(w http.ResponseWriter, r *http.Request, order service.Request, wait bool) error {
	order.Waits = wait
	s := h.running.Load().service
	u, err := s.Submit(r.Context(), order)
	if err != nil {
		return err
	}
	if wait {
		if u, err = h.await(w, r, u.ID); err != nil {
			return err
		}
	}
	w.Header().Set("Location", fmt.Sprintf("/v1/updates/%d", u.ID))
	if !wait || !u.HasEnded() {
		return send(w, http.StatusAccepted, u)
	}
	if order.Set {
		_, tag := s.Ops(u.Client, u.Ops)
		w.Header().Set("ETag", service.Quoted(tag))
	}
	return send(w, http.StatusOK, u)
}
