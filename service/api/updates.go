// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// defaultOps is the tracer of requests that name none: the kernel's function tracer.
const defaultOps = "function"

// submit asks for an update, or with dry-run what it would cost.
func (h *Handler) submit(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	dry := p.bool("dry-run")
	if err := p.check(); err != nil {
		return err
	}
	var q Request
	if err := h.readBody(w, r, &q); err != nil {
		return err
	}
	if err := q.asked(w, r); err != nil {
		return err
	}
	if dry { // what it would cost
		cost, err := h.running.Load().service.Plan(r.Context(), q.order())
		return respond(w, cost, err)
	}
	return h.submitted(w, r, q.order(), q.Wait)
}

// order is the service's form of the request. A deadline that is the zero time is none.
func (q *Request) order() service.Request {
	if q.Deadline == nil {
		q.Deadline = &time.Time{}
	}
	return service.Request{Client: q.Client, Key: q.Key, Ops: q.Ops, Enable: *q.Enable, Lease: q.Lease, Filter: q.Filter, Records: q.Records,
		Deadline: *q.Deadline, Hold: q.Hold}
}

// keyed takes a request's key from the header that others have for it
// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/), where it is a
// string in quotes or a word.
func (q *Request) keyed(r *http.Request) error {
	said := r.Header.Values("Idempotency-Key")
	switch {
	case len(said) == 0:
		return nil
	case len(said) > 1 || q.Key != "":
		return badField("Idempotency-Key", "the key is given twice")
	}
	if q.Key = strings.Trim(said[0], `"`); q.Key == "" {
		return badField("Idempotency-Key", "is empty")
	}
	return nil
}

// asked looks at a request, and who asks.
func (q *Request) asked(w http.ResponseWriter, r *http.Request) error {
	err := q.keyed(r)
	if err == nil {
		err = q.check()
	}
	if err == nil {
		err = mine(w, q.Client)
	}
	return err
}

// check looks at what the service does not.
func (q *Request) check() error {
	if q.Ops == "" {
		q.Ops = defaultOps
	}
	if q.Deadline != nil && q.Deadline.IsZero() {
		return badField("deadline", "is over already")
	}
	if q.Enable == nil {
		return badField("enable", "is missing: true to enable, false to disable")
	}
	if err := texts("filter", q.Filter, maxPatterns, maxText); err != nil {
		return err
	}
	return texts("records", q.Records, maxRecords, maxText)
}

// await waits for an update's end, but only so long: then it is handed back as it
// stands.
func (h *Handler) await(w http.ResponseWriter, r *http.Request, id int64) (service.Update, error) {
	keepOpen(w)
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Limits.Wait)
	defer cancel()
	u, err := h.running.Load().service.Wait(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, service.ErrClosed) { // it is left in the journal for the next start
		err = r.Context().Err()
	}
	return u, err
}

// keepOpen takes the deadline for reading the request off: the request has been
// read, and its connection is now watched for the client's going away.
func keepOpen(w http.ResponseWriter) {
	// A writer without deadlines fails here, and has none to take off.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

func (h *Handler) updates(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	q := service.Query{State: service.State(p.string("state")), Client: p.string("client"), Ops: p.string("ops"),
		After: p.number("after", 0, 0, math.MaxInt64), Before: p.number("before", 0, 0, math.MaxInt64), Newest: p.bool("newest")}
	limit := p.number("limit", 100, 1, maxPage)
	if q.State != "" && !slices.Contains(journal.States(), q.State) {
		p.fail("state", "%v", spelling.NotOneOf(string(q.State),
			spelling.Each(journal.States(), func(s journal.State) string { return string(s) })))
	}
	if err := p.check(); err != nil {
		return err
	}
	q.Limit = int(limit) + 1
	found, err := h.running.Load().service.Updates(r.Context(), q)
	if err != nil {
		return err
	}
	page := Updates{Updates: append([]Update{}, found[:min(len(found), int(limit))]...)}
	if len(found) > int(limit) {
		page.Next = page.Updates[limit-1].ID
	}
	return send(w, http.StatusOK, page)
}

func (h *Handler) update(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	id, wait := p.path("id", math.MaxInt64), p.bool("wait")
	if err := p.check(); err != nil {
		return err
	}
	u, err := h.running.Load().service.Update(r.Context(), id)
	if err == nil && wait {
		u, err = h.await(w, r, u.ID)
	}
	return respond(w, u, err)
}

func (h *Handler) cancel(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	id := p.path("id", math.MaxInt64)
	if err := p.check(); err != nil {
		return err
	}
	s := h.running.Load().service
	u, err := s.Update(r.Context(), id)
	if err == nil {
		err = mine(w, u.Client)
	}
	if err != nil {
		return err
	}
	u, err = s.Cancel(r.Context(), id)
	return respond(w, u, err)
}

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
	wants, open := h.running.Load().service.Client(name)
	return send(w, http.StatusOK, Client{name, wants, open})
}

// renew has a client's leases begin again.
func (h *Handler) renew(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
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
	req := Request{Wish: q, Client: r.PathValue("name"), Ops: r.PathValue("ops"), Enable: new(true)}
	tag, err := match(r)
	if err == nil {
		err = req.asked(w, r)
	}
	if err != nil {
		return err
	}
	order := req.order()
	order.Set, order.Match = true, tag
	return h.submitted(w, r, order, q.Wait)
}

// submitted asks for an update, and answers once it is durable; with wait, once it has ended.
func (h *Handler) submitted(w http.ResponseWriter, r *http.Request, order service.Request, wait bool) error {
	order.Waits, order.Parent = wait, traceOf(r)
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
