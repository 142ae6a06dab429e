// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
)

// names finds records by symbol and by address.
type names struct {
	table            *records.Table
	bySymbol, byAddr []int32
}

func newNames(t *records.Table) *names {
	n := &names{table: t, bySymbol: make([]int32, t.Len())}
	for i := range n.bySymbol {
		n.bySymbol[i] = int32(i)
	}
	n.byAddr = slices.Clone(n.bySymbol)
	slices.SortFunc(n.bySymbol, func(a, b int32) int { return cmp.Compare(t.Symbol(int(a)), t.Symbol(int(b))) })
	slices.SortFunc(n.byAddr, func(a, b int32) int { return cmp.Compare(t.Addr(int(a)), t.Addr(int(b))) })
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
			return nil, &FieldError{"records", fmt.Sprintf("%q: no such symbol or address", clip(name))}
		}
		for _, rec := range found {
			if err := able(int(rec)); err != nil {
				return nil, &FieldError{"records", fmt.Sprintf("%q: cannot be patched: %v", clip(name), err)}
			}
			which = append(which, int(rec))
		}
	}
	slices.Sort(which)
	return slices.Compact(which), nil
}

// find is the records of that symbol, or the one at that address.
func (n *names) find(name string) []int32 {
	in, key := n.bySymbol, func(rec int32) int { return cmp.Compare(n.table.Symbol(int(rec)), name) }
	if hex, ok := strings.CutPrefix(name, "0x"); ok {
		if a, err := strconv.ParseUint(hex, 16, 64); err == nil {
			in, key = n.byAddr, func(rec int32) int { return cmp.Compare(n.table.Addr(int(rec)), records.Addr(a)) }
		}
	}
	from, _ := slices.BinarySearchFunc(in, 0, func(rec int32, _ int) int { return key(rec) })
	to := from
	for to < len(in) && key(in[to]) == 0 {
		to++
	}
	return in[from:to]
}

// clip shortens what a message quotes.
func clip(s string) string {
	if len(s) > maxName {
		return s[:maxName] + "..."
	}
	return s
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
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
	out := make([]int, len(which))
	for i, rec := range which {
		out[i] = Number(s.cfg.Table.Len(), at, rec)
	}
	return out
}

// users is how many clients and ops want a record.
func (s *Service) users(now *coordinator.Snapshot, record int) (n int) {
	for ops := range s.layers() {
		n += now.Users(Number(s.cfg.Table.Len(), ops, record))
	}
	return n
}
