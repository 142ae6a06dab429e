// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/service/lab"
)

// retryAfter is after how many seconds it is worth trying again when too much
// waits: an update of all records takes a fraction of that.
const retryAfter = "1"

func problem(status int, field, format string, args ...any) *Problem {
	return &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Field: field, Detail: fmt.Sprintf(format, args...),
	}
}

func badField(field, format string, args ...any) *Problem {
	return problem(http.StatusBadRequest, field, format, args...)
}

var errStreams = errors.New("too many streams of events are open")

// kinds are the problems that programs tell apart, by what a type ends with.
var kinds = []struct {
	err  error
	kind string
}{
	{service.ErrQueueFull, "queue-full"}, {service.ErrClientQueueFull, "client-queue-full"},
	{service.ErrTooManyClients, "too-many-clients"}, {lab.ErrFull, "too-many-runs"}, {errStreams, "too-many-streams"},
	{service.ErrNotFound, "not-found"}, {service.ErrKeyReused, "key-reused"}, {service.ErrChanged, "changed"},
	{service.ErrTooLate, "too-late"}, {cpus.ErrLastOne, "last-cpu"}, {service.ErrNoForecast, "no-forecast"},
	{service.ErrNoTrace, "no-trace"}, {service.ErrBudget, "over-budget"}, {journal.ErrFull, "disk-full"},
	{service.ErrBroken, "broken"}, {journal.ErrBroken, "broken"}, {service.ErrClosed, "stopping"}, {lab.ErrClosed, "stopping"},
}

// typePrefix is what types of problems begin with; one without a name of its own is about:blank, and
// its status says all (RFC 9457, 4.2.1).
const typePrefix = "urn:textpoke:problem:"

// problemOf words an error for the client. Internal causes stay in the log.
func problemOf(err error) *Problem {
	p := worded(err)
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			p.Type = typePrefix + k.kind
			break
		}
	}
	if damaged := (*journal.DamagedError)(nil); errors.As(err, &damaged) {
		p.Type, p.Detail = typePrefix+"damaged", "what was asked for is damaged in the journal; the server's log says where"
	}
	return p
}

// worded is an error in words.
func worded(err error) *Problem {
	var own *Problem
	var rate *rateError
	var field *service.FieldError
	var size *http.MaxBytesError
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case errors.As(err, &own):
		p := *own // it is given a request's id
		return &p
	case errors.As(err, &field):
		return badField(field.Field, "%s", field.Reason)
	case errors.As(err, &size):
		return problem(http.StatusRequestEntityTooLarge, "", "the body has more than %d bytes", size.Limit)
	case errors.As(err, &rate):
		p := problem(http.StatusTooManyRequests, "", "%v", rate)
		p.Type, p.retry = typePrefix+"rate-limited", rate.seconds()
		return p
	case is(service.ErrQueueFull),
		is(service.ErrClientQueueFull),
		is(service.ErrTooManyClients),
		is(lab.ErrFull),
		is(errStreams):
		return problem(http.StatusTooManyRequests, "", "%v", err)
	case is(service.ErrNotFound), is(journal.ErrNotFound):
		return problem(http.StatusNotFound, "", "%v", err)
	case is(service.ErrKeyReused):
		return problem(http.StatusConflict, "key", "%v", err)
	case is(service.ErrChanged):
		return problem(http.StatusPreconditionFailed, "If-Match", "%v", err)
	case is(service.ErrTooLate), is(cpus.ErrLastOne), is(service.ErrNoForecast), is(service.ErrNoTrace), is(service.ErrBudget):
		return problem(http.StatusConflict, "", "%v", err)
	case is(journal.ErrFull):
		return problem(
			http.StatusInsufficientStorage,
			"",
			"the server's disk is full: nothing is accepted until there is room",
		)
	case is(service.ErrBroken), is(journal.ErrBroken), journal.Passing(err):
		return problem(http.StatusServiceUnavailable, "", "the journal cannot be written; the server's log says why")
	case is(service.ErrClosed), is(lab.ErrClosed), is(context.Canceled), is(context.DeadlineExceeded):
		return problem(http.StatusServiceUnavailable, "", "the service is stopping, or the request took too long")
	}
	return problem(http.StatusInternalServerError, "",
		"something failed inside; the server's log says what, under this request_id")
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	h := w.Header()
	p.RequestID = h.Get(requestIDHeader)
	h.Set("Content-Type", "application/problem+json")
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		h.Set("Retry-After", cmp.Or(p.retry, retryAfter))
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="textpoke"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who does not read it has gone
}
