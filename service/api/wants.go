// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/textpoke/textpoke/service"
)

// Want is what a client wants with one ops.
type Want struct {
	Client  string `json:"client"`
	Ops     string `json:"ops"`
	Records int    `json:"records"` // how many
	ETag    string `json:"etag"`
	// Lease is the seconds that a renewal adds, and Until when it is over; none: for ever.
	Lease int64     `json:"lease,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

func newWants(list []service.Want) []Want {
	out := []Want{}
	for _, w := range list {
		out = append(out, Want{w.Client, w.Ops, len(w.Which), quoted(w.Tag), w.Lease.Seconds, w.Lease.Until})
	}
	return out
}

// RecordWants is the records of a name, and who wants them.
type RecordWants struct {
	Records []Record `json:"records"`
	Wants   []Want   `json:"wants"`
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

// Plan is what an update would cost if it came now and alone.
type Plan struct {
	Records    int            `json:"records"`
	Changes    int            `json:"changes"`
	Others     int            `json:"others"`
	Waiting    int            `json:"waiting"`
	Flushes    int            `json:"flushes"`
	Rounds     int            `json:"rounds"`
	IPIs       int            `json:"ipis"`
	IPIsPerCPU int            `json:"ipis_per_cpu"`
	Roles      map[string]int `json:"roles"`
}

func newPlan(p service.Plan) Plan {
	return Plan{p.Records, p.Changes, p.Others, p.Waiting, p.Cost.Flushes, p.Cost.Rounds, p.Cost.IPIs, p.Cost.IPIsPerCPU, p.Roles}
}

// quoted is a tag as a header has it (RFC 9110, 8.8.3).
func quoted(tag string) string { return `"` + tag + `"` }

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
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, RecordWants{newRecords(found), newWants(wants)})
}

func newRecords(found []service.Record) []Record {
	out := []Record{}
	for _, r := range found {
		out = append(out, newRecord(r))
	}
	return out
}

func (h *Handler) client(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := text("name", name, maxText); err != nil {
		return err
	}
	wants, open := h.running.Load().service.Client(name)
	return send(w, http.StatusOK, Client{name, newWants(wants), append([]Update{}, open...)})
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
	if err := h.running.Load().service.Renew(name); err != nil {
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
	w.Header().Set("ETag", quoted(tag))
	return send(w, http.StatusOK, Ops{client, ops, newRecords(found)})
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
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, newPlan(p))
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
		w.Header().Set("ETag", quoted(tag))
	}
	return send(w, http.StatusOK, u)
}
