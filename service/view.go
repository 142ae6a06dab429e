// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
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

// Records lists records with their present state, all at one moment. It shows the journal's
// state, so that a restart does not take it back.
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

// records is records of the table with their present state.
func (s *Service) records(which []int) []Record {
	t, out := s.cfg.Table, []Record{}
	now, group := s.coord.Snapshot(), 0
	for _, i := range which {
		for i >= t.Groups()[group].Last {
			group++
		}
		users := s.users(now, i)
		out = append(out, Record{i, t.Addr(i).String(), t.Symbol(i), t.Module(i), group, users > 0, users})
	}
	return out
}

// Interrupts prints the interrupts of the CPUs that are online, laid out as
// /proc/interrupts.
func (s *Service) Interrupts(w io.Writer) error { return s.live.Interrupts(w) }

// Plug brings a CPU in, or takes it out; one that is so already stays so. It is not remembered: after a restart all CPUs
// have the roles that they were given.
func (s *Service) Plug(ctx context.Context, cpu int, in bool) error {
	if n := len(s.live.CPUs()); cpu < 0 || cpu >= n {
		return &FieldError{"id", fmt.Sprintf("%d: there are %d", cpu, n)}
	}
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	switch err := s.live.Plug(ctx, cpu, in); {
	case errors.Is(err, cpus.ErrAlready): // an earlier request has done it
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

// Trace tells only the lines of a client's wants, until ctx ends or tell fails: with some ops, or, for "", with functions
// and events. Lines that tell of lost events come too, for every client. missed is how many
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

// names finds records by symbol and by address.
type names struct {
	table            *records.Table
	bySymbol, byAddr []int
}

func newNames(t *records.Table) *names {
	n := &names{t, spelling.Numbers(t.Len()), spelling.Numbers(t.Len())}
	slices.SortFunc(n.bySymbol, func(a, b int) int { return cmp.Compare(t.Symbol(a), t.Symbol(b)) })
	slices.SortFunc(n.byAddr, func(a, b int) int { return cmp.Compare(t.Addr(a), t.Addr(b)) })
	return n
}

// MaxPatterns is how many expressions a filter has at most: each is held against every
// record.
const MaxPatterns = 100

// match is the records that a filter chooses. Few filters are held against the records
// at the same time, so that the others do not keep the machine from its cores; the rest
// wait, and who has gone is not worked for.
func (s *Service) match(ctx context.Context, exprs []string) ([]int, error) {
	f, err := records.ParseFilter(exprs)
	if err == nil && f.Len() > MaxPatterns {
		err = fmt.Errorf("%d patterns, want at most %d", f.Len(), MaxPatterns)
	}
	if err != nil {
		return nil, &FieldError{"filter", err.Error()}
	}
	select {
	case s.matching <- struct{}{}:
		defer func() { <-s.matching }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return f.MatchContext(ctx, s.cfg.Table)
}

// choose is the records that a request is about, ascending.
func (s *Service) choose(ctx context.Context, r *Request) (which []int, err error) {
	able := func(rec int) error { return s.live.Patchable(r.Ops, rec) }
	if len(r.Filter) == 0 {
		return s.names.named(r.Records, able)
	}
	if which, err = s.match(ctx, r.Filter); err != nil {
		return nil, err
	}
	which = slices.DeleteFunc(which, func(rec int) bool { return able(rec) != nil })
	if len(which) == 0 {
		return nil, &FieldError{"filter", "leaves no record that can be patched"}
	}
	return which, nil
}

// named is the records of that symbol or address, ascending.
func (n *names) named(list []string, able func(int) error) (which []int, err error) {
	for _, name := range list {
		found := n.find(name)
		if len(found) == 0 {
			return nil, &FieldError{"records", fmt.Sprintf("%q: no such symbol or address", inputs.Clip(name, maxName))}
		}
		for _, rec := range found {
			if err := able(rec); err != nil {
				return nil, &FieldError{"records", fmt.Sprintf("%q: cannot be patched: %v", inputs.Clip(name, maxName), err)}
			}
			which = append(which, rec)
		}
	}
	slices.Sort(which)
	return slices.Compact(which), nil
}

// find is the records of that symbol, or the one at that address.
func (n *names) find(name string) []int {
	in, key := n.bySymbol, func(rec int) int { return cmp.Compare(n.table.Symbol(rec), name) }
	if hex, ok := strings.CutPrefix(name, "0x"); ok {
		if a, err := strconv.ParseUint(hex, 16, 64); err == nil {
			in, key = n.byAddr, func(rec int) int { return cmp.Compare(n.table.Addr(rec), records.Addr(a)) }
		}
	}
	from, _ := slices.BinarySearchFunc(in, 0, func(rec, _ int) int { return key(rec) })
	to := from
	for to < len(in) && key(in[to]) == 0 {
		to++
	}
	return in[from:to]
}

// Identity is what the journal of a table's updates is about: SHA-256 of every
// record's address, symbol and module, and their names as the kernel prints them.
func Identity(t *records.Table) journal.Identity {
	h := sha256.New()
	var b []byte
	names := make([]string, t.Len())
	for i := range t.Len() {
		if names[i] = t.Symbol(i); t.Module(i) != "" {
			names[i] += " [" + t.Module(i) + "]"
		}
		b = binary.BigEndian.AppendUint64(b[:0], uint64(t.Addr(i)))
		b = append(b, t.Symbol(i)...)
		b = append(append(b, 0), t.Module(i)...)
		h.Write(append(b, 0))
	}
	return journal.Identity{Records: t.Name(), Hash: hex.EncodeToString(h.Sum(nil)), Count: t.Len(), Names: names}
}

// A machine with ops of its own (Config.Ops) switches a record for each of them by itself: a function for the function
// tracer, and for the graph tracer. The coordinator and the machine know such a pair by one number, Number. On a machine
// for any ops, a record is on while any ops wants it, and its number is its place in the table.

// Number is what a record with the ops of that place is switched by, in a table of so many records.
func Number(records, ops, record int) int { return ops*records + record }

// Split is the other way round.
func Split(records, number int) (ops, record int) { return number / records, number % records }

// layers is how many numbers a record has.
func (s *Service) layers() int { return max(len(s.cfg.Ops), 1) }

// served tells whether the machine has these ops.
func (s *Service) served(ops string) bool { return s.cfg.Ops == nil || slices.Contains(s.cfg.Ops, ops) }

// numbers are what records with ops are switched by. The ops are the machine's.
func (s *Service) numbers(ops string, which []int) []int {
	at := max(slices.Index(s.cfg.Ops, ops), 0)
	if at == 0 {
		return which
	}
	return spelling.Each(which, func(rec int) int { return Number(s.cfg.Table.Len(), at, rec) })
}

// users is how many clients and ops want a record.
func (s *Service) users(now *coordinator.Snapshot, record int) (n int) {
	for ops := range s.layers() {
		n += now.Users(Number(s.cfg.Table.Len(), ops, record))
	}
	return n
}
