// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/tracefs"
)

// RecordQuery chooses records, in the table's order.
type RecordQuery struct {
	Filter  []string // expressions of records.ParseFilter; none for all
	Enabled bool     // only those that are
	After   int      // only greater indexes; -1 from the first on
	Limit   int      // 0: 100
}

// Record is one record and who wants it.
type Record struct {
	Index   int    `json:"index"` // in the table, from 0
	Address string `json:"address"`
	Symbol  string `json:"symbol"`
	Module  string `json:"module,omitempty"`
	Group   int    `json:"group"`
	Enabled bool   `json:"enabled"`
	Users   int    `json:"users"` // client and ops that want it
}

// Records lists records with their present state, all as of one moment: what the
// journal has, so that a restart takes back nothing that is shown here.
func (s *Service) Records(ctx context.Context, q RecordQuery) ([]Record, error) {
	which, err := s.match(ctx, q.Filter)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	var some []int
	now := s.coord.Snapshot()
	for _, i := range which {
		if i > q.After && len(some) < q.Limit && (!q.Enabled || s.users(now, i) > 0) {
			some = append(some, i)
		}
	}
	return s.records(some), nil
}

// records is records of the table as they are now.
func (s *Service) records(which []int) []Record {
	t, out := s.cfg.Table, []Record{}
	for _, i := range which {
		out = append(out, Record{Index: i, Address: t.Addr(i).String(), Symbol: t.Symbol(i), Module: t.Module(i)})
	}
	now, group := s.coord.Snapshot(), 0
	for i := range out {
		for out[i].Index >= t.Groups()[group].Last {
			group++
		}
		out[i].Group = group
		out[i].Users = s.users(now, out[i].Index)
		out[i].Enabled = out[i].Users > 0
	}
	return out
}

// Unplug takes a CPU out, and Plug brings it back; one that is so already stays so. It is not remembered: after a
// restart all CPUs have the roles that they were given.
func (s *Service) Unplug(ctx context.Context, cpu int) error {
	return s.plug(ctx, cpu, false)
}

// Plug is the other half of Unplug.
func (s *Service) Plug(ctx context.Context, cpu int) error { return s.plug(ctx, cpu, true) }

// Interrupts prints the interrupts of the CPUs that are online, laid out as
// /proc/interrupts.
func (s *Service) Interrupts(w io.Writer) error { return s.live.Interrupts(w) }

// Violations are the first of the promises that the machine has seen broken.
func (s *Service) Violations() []cpus.Violation { return s.live.Violations() }

func (s *Service) plug(ctx context.Context, cpu int, in bool) error {
	if n := len(s.live.CPUs()); cpu < 0 || cpu >= n {
		return &FieldError{"cpu", fmt.Sprintf("%d: there are %d", cpu, n)}
	}
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	switch err := s.live.Plug(ctx, cpu, in); {
	case errors.Is(err, cpus.ErrAlready): // whoever asked first has done it
		return nil
	case err != nil:
		return err
	}
	now := s.live.Now()
	s.events.add(&Event{Kind: Plugged, CPU: &cpu, Hit: in, FromNS: now, UntilNS: now})
	return nil
}

// whileAlive is ctx, ended by Close too, so that no caller waits for a machine that has gone.
func (s *Service) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.alive, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Line is a line of a machine's trace.
type Line = tracefs.Line

// Trace tells the lines of what a client wants, and of nothing else, until ctx ends or tell fails: with some ops, or,
// for "", with functions and events. Lines that tell of lost events come too, whoever has lost them. missed is how many
// lines of the client's were left out because tell was too slow. The first who reads gets what the machine still holds.
func (s *Service) Trace(ctx context.Context, client, ops string, tell func(lines []Line, missed int) error) error {
	if ops != "" && !s.served(ops) {
		return s.check(&Request{Ops: ops})
	}
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	m := &mine{service: s, client: client, ops: ops, as: -1}
	return s.live.Trace(ctx, ops, m.keep, tell)
}

// mine is what a client wants, as lines name it.
type mine struct {
	service     *Service
	client, ops string
	as          int64 // of Service.ends
	names       map[string]bool
}

// keep tells whether a line is the client's.
func (m *mine) keep(l *Line) bool {
	if l.Lost > 0 {
		return true
	}
	if now := m.service.ends.Load(); now != m.as {
		m.as = now
		m.look()
	}
	return m.names[l.Kind+" "+l.Name]
}

// look reads what the client wants. Lines do not tell functions of one name apart, nor an event's group.
func (m *mine) look() {
	m.names = map[string]bool{}
	t := m.service.cfg.Table
	for _, w := range m.service.store.WantsOf(m.client) {
		if m.ops != "" && w.Ops != m.ops {
			continue
		}
		for _, rec := range w.Which {
			name := tracefs.Function{Name: t.Symbol(rec), Module: t.Module(rec)}.String()
			_, event, isEvent := strings.Cut(name, "/")
			if isEvent {
				name = event
			}
			m.names[w.Ops+" "+name] = true
		}
	}
}
