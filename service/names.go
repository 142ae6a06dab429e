// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
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

// choose is the records that a request is about, ascending.
func (n *names) choose(r *Request, patchable func(int) bool) (which []int, err error) {
	if len(r.Filter) > 0 {
		f, err := records.ParseFilter(r.Filter)
		if err != nil {
			return nil, &FieldError{"filter", err.Error()}
		}
		which = slices.DeleteFunc(f.Match(n.table), func(rec int) bool { return !patchable(rec) })
		if len(which) == 0 {
			return nil, &FieldError{"filter", "leaves no record that can be patched"}
		}
		return which, nil
	}
	for _, name := range r.Records {
		found := n.find(name)
		if len(found) == 0 {
			return nil, &FieldError{"records", fmt.Sprintf("%q: no such symbol or address", clip(name))}
		}
		for _, rec := range found {
			if !patchable(int(rec)) {
				return nil, &FieldError{"records", fmt.Sprintf("%q: cannot be patched: its alignment does not allow it",
					clip(name))}
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
// record's address, symbol and module.
func Identity(t *records.Table) journal.Identity {
	h := sha256.New()
	var b []byte
	for i := range t.Len() {
		b = binary.BigEndian.AppendUint64(b[:0], uint64(t.Addr(i)))
		b = append(b, t.Symbol(i)...)
		b = append(append(b, 0), t.Module(i)...)
		h.Write(append(b, 0))
	}
	return journal.Identity{Records: t.Name(), Hash: hex.EncodeToString(h.Sum(nil)), Count: t.Len()}
}
