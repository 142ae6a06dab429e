// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// defaultOps is the tracer of those who name none: the kernel's function tracer.
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
	if err := q.keyed(r); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	if err := mine(w, q.Client); err != nil {
		return err
	}
	if dry {
		return h.plan(w, r, &q)
	}
	return h.submitted(w, r, q.order(), q.Wait)
}

// order is the service's form of the request.
func (q *Request) order() service.Request {
	return service.Request{Client: q.Client, Key: q.Key, Ops: q.Ops, Enable: *q.Enable, Lease: q.Lease, Filter: q.Filter, Records: q.Records,
		Deadline: q.deadline(), Hold: q.Hold}
}

// deadline is the zero time for none.
func (q *Request) deadline() time.Time {
	if q.Deadline == nil {
		return time.Time{}
	}
	return *q.Deadline
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
		p.fail("state", "%v", spelling.NotOneOf(string(q.State), stateNames()))
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

func stateNames() (names []string) {
	for _, s := range journal.States() {
		names = append(names, string(s))
	}
	return names
}
