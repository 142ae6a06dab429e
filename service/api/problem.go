// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

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

// Details of problems whose errors say what is none of a client's business.
const (
	unwritable = "the journal cannot be written; the server's log says why"
	full       = "the server's disk is full: nothing is accepted until there is room"
	stopping   = "the service is stopping, or the request took too long"
	inside     = "something failed inside; the server's log says what, under this request_id"
	damage     = "what was asked for is damaged in the journal; the server's log says where"
)

// answers are what errors are answered with.
var answers = []struct {
	err    error
	status int
	kind   string // what the type ends with, by which programs tell problems apart; "": about:blank
	field  string
	detail string // "": the error
}{
	{service.ErrQueueFull, http.StatusTooManyRequests, "queue-full", "", ""},
	{service.ErrClientQueueFull, http.StatusTooManyRequests, "client-queue-full", "", ""},
	{service.ErrTooManyClients, http.StatusTooManyRequests, "too-many-clients", "", ""},
	{lab.ErrFull, http.StatusTooManyRequests, "too-many-runs", "", ""},
	{errStreams, http.StatusTooManyRequests, "too-many-streams", "", ""},
	{service.ErrNotFound, http.StatusNotFound, "not-found", "", ""},
	{service.ErrKeyReused, http.StatusConflict, "key-reused", "key", ""},
	{service.ErrChanged, http.StatusPreconditionFailed, "changed", "If-Match", ""},
	{service.ErrTooLate, http.StatusConflict, "too-late", "", ""},
	{cpus.ErrLastOne, http.StatusConflict, "last-cpu", "", ""},
	{service.ErrNoForecast, http.StatusConflict, "no-forecast", "", ""},
	{service.ErrNoTrace, http.StatusConflict, "no-trace", "", ""},
	{service.ErrBudget, http.StatusConflict, "over-budget", "", ""},
	{journal.ErrFull, http.StatusInsufficientStorage, "disk-full", "", full},
	{service.ErrBroken, http.StatusServiceUnavailable, "broken", "", unwritable},
	{journal.ErrBroken, http.StatusServiceUnavailable, "broken", "", unwritable},
	{service.ErrClosed, http.StatusServiceUnavailable, "stopping", "", stopping},
	{lab.ErrClosed, http.StatusServiceUnavailable, "stopping", "", stopping},
	{context.Canceled, http.StatusServiceUnavailable, "", "", stopping},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "", "", stopping},
}

// typePrefix is what types of problems begin with; one without a name of its own is about:blank, and
// its status says all (RFC 9457, 4.2.1).
const typePrefix = "urn:textpoke:problem:"

func typed(kind string, p *Problem) *Problem {
	if kind != "" {
		p.Type = typePrefix + kind
	}
	return p
}

// problemOf words an error for the client. Internal causes stay in the log.
func problemOf(err error) *Problem {
	var own *Problem
	var rate *rateError
	var field *service.FieldError
	var size *http.MaxBytesError
	var damaged *journal.DamagedError
	switch {
	case errors.As(err, &own):
		p := *own // it is given a request's id
		return &p
	case errors.As(err, &field):
		return badField(field.Field, "%s", field.Reason)
	case errors.As(err, &size):
		return problem(http.StatusRequestEntityTooLarge, "", "the body has more than %d bytes", size.Limit)
	case errors.As(err, &rate):
		p := typed("rate-limited", problem(http.StatusTooManyRequests, "", "%v", rate))
		p.retry = strconv.Itoa(int(math.Ceil(rate.after.Seconds()))) // whole seconds, as headers have them
		return p
	case errors.As(err, &damaged):
		return typed("damaged", problem(http.StatusInternalServerError, "", damage))
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return typed(a.kind, problem(a.status, a.field, "%s", cmp.Or(a.detail, err.Error())))
		}
	}
	if journal.Passing(err) {
		return problem(http.StatusServiceUnavailable, "", unwritable)
	}
	return problem(http.StatusInternalServerError, "", inside)
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
