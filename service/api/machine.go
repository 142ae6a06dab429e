// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service"
)

func (h *Handler) records(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	q := service.RecordQuery{Filter: p.list("filter"), Enabled: p.bool("enabled"), After: int(p.number("after", -1, 0, math.MaxInt32))}
	limit := int(p.number("limit", 100, 1, maxPage))
	if err := p.check(); err != nil {
		return err
	}
	if err := texts("filter", q.Filter, maxPatterns, maxText); err != nil {
		return err
	}
	q.Limit = limit + 1
	found, err := h.running.Load().service.Records(r.Context(), q)
	if err != nil {
		return err
	}
	page := Records{Records: found[:min(len(found), limit)]}
	if len(found) > limit {
		page.Next = &page.Records[limit-1].Index
	}
	return send(w, http.StatusOK, page)
}

func (h *Handler) cpus(w http.ResponseWriter, r *http.Request) error {
	found, err := h.running.Load().service.CPUs(r.Context())
	return respond(w, CPUs{found}, err)
}

// status is everything that a screen shows, at one moment.
func (h *Handler) status(w http.ResponseWriter, r *http.Request) error {
	now, err := h.running.Load().service.Status(r.Context())
	return respond(w, now, err)
}

// plug unplugs a CPU or plugs it in; asked for twice, it is done once.
func (h *Handler) plug(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	id := int(p.path("id", math.MaxInt32))
	if err := p.check(); err != nil {
		return err
	}
	var q Plug
	if err := h.readBody(w, r, &q); err != nil {
		return err
	}
	if q.Online == nil {
		return badField("online", "is missing: true to plug in, false to unplug")
	}
	s := h.running.Load().service
	if err := s.Plug(r.Context(), id, *q.Online); err != nil {
		return err
	}
	all, err := s.CPUs(r.Context())
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, all[id])
}

func (h *Handler) interrupts(w http.ResponseWriter, _ *http.Request) error {
	var b strings.Builder
	if err := h.running.Load().service.Interrupts(&b); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
	return nil
}

func (h *Handler) stats(w http.ResponseWriter, _ *http.Request) error {
	return send(w, http.StatusOK, h.running.Load().service.Stats())
}

// maxBuffers is how many vectors are compared at once.
const maxBuffers = 16

// compare counts the cost of switching everything that is enabled now, vector by vector.
func (h *Handler) compare(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	list := p.string("buffers")
	if err := p.check(); err != nil {
		return err
	}
	if list == "" {
		list = "256," + sched.Dynamic.String()
	}
	names := strings.Split(list, ",")
	if len(names) > maxBuffers {
		return badField("buffers", "%d of them, want at most %d", len(names), maxBuffers)
	}
	var buffers []sched.Buffer
	for i, name := range names {
		b, err := sched.ParseBuffer(name)
		if err != nil {
			return badField(fmt.Sprintf("buffers[%d]", i), "%v", err)
		}
		buffers = append(buffers, b)
	}
	rows, err := h.running.Load().service.Compare(r.Context(), buffers)
	if err != nil {
		return err
	}
	out := Compare{Costs: []Cost{}}
	for _, row := range rows {
		out.Records = row.Patches
		out.Costs = append(out.Costs, Cost{
			Buffer: row.Buffer.String(), Patches: row.Patches, Flushes: row.Flushes, FlushFull: row.FlushFull,
			FlushOrder: row.FlushOrder, Rounds: row.Rounds, IPIs: row.IPIs, IPIsPerCPU: row.IPIsPerCPU,
			BufferBytes: row.BufferBytes,
		})
	}
	return send(w, http.StatusOK, out)
}
