// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"strings"

	"github.com/textpoke/textpoke/kernels/tracefs"
)

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
