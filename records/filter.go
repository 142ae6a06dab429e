// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Filter chooses records the way writing to the kernel's set_ftrace_filter does.
// The zero Filter chooses all.
type Filter struct {
	terms []term
	words []string
}

// term is one write.
type term struct {
	remove bool
	index  int // 1 and up: the record of that number; 0: by name

	fn      glob
	anyFn   bool // no function given: all of the module
	byMod   bool
	mod     glob
	anyMod  bool // every module
	without bool // all but that module
}

// Empty tells whether the filter chooses all records of every table.
func (f Filter) Empty() bool { return len(f.terms) == 0 }

// String is the filter as one expression that ParseFilter reads; "" if it chooses
// all.
func (f Filter) String() string { return strings.Join(f.words, " ") }

// ParseFilter reads filter expressions; each may hold several, separated by
// blanks. They apply in order: each adds what it matches, with ! in front it
// removes that from the chosen ones. If the very first one removes, all
// records are chosen before it. (There the kernel removes from its empty filter,
// which changes nothing.)
//
//	vfs_read            that function
//	vfs_* *end *lock*   beginning, end, anywhere
//	a*b ?x [a-f]* [!_]* a glob as in the kernel's lib/glob.c; \ quotes
//	:mod:ext4           all functions of a module
//	foo*:mod:ext4       those of that name
//	:mod:*              all functions of all modules
//	*lock*:mod:!ext4    everywhere but in that module
//	!EXPRESSION         removes
//	17                  the 17th record, counted from 1
func ParseFilter(exprs []string) (Filter, error) {
	var f Filter
	for _, e := range exprs {
		words := strings.Fields(e)
		if len(words) == 0 {
			return Filter{}, fmt.Errorf("filter %q: empty", e)
		}
		for _, w := range words {
			t, reason := parseTerm(w)
			if reason != "" {
				return Filter{}, fmt.Errorf("filter %q: %s", w, reason)
			}
			f.terms = append(f.terms, t)
			f.words = append(f.words, w)
		}
	}
	return f, nil
}

func parseTerm(expr string) (t term, reason string) {
	fn, rest, command := strings.Cut(expr, ":")
	fn, t.remove = strings.CutPrefix(fn, "!")
	if command {
		mod, ok := strings.CutPrefix(rest, "mod:")
		if !ok {
			return t, "unknown command behind the colon; only :mod:MODULE is a filter"
		}
		mod, t.without = strings.CutPrefix(mod, "!")
		if strings.Contains(mod, ":") {
			return t, "a module's name has no colon"
		}
		t.byMod, t.mod = true, parseGlob(mod)
		t.anyMod = mod == "" || t.mod.all()
	}
	switch {
	case fn == "" && !command:
		return t, "names no function"
	case fn != "" && '0' <= fn[0] && fn[0] <= '9':
		// No function's name starts with a digit (MATCH_INDEX).
		n, err := strconv.ParseUint(fn, 0, 31)
		if err != nil || n == 0 {
			return t, "starts with a digit, but is not the number of a record, counted from 1"
		}
		if command {
			return t, "a record's number and a module exclude each other"
		}
		t.index = int(n)
	}
	t.fn = parseGlob(fn)
	t.anyFn = fn == "" || t.fn.all()
	return t, ""
}

// Match returns the chosen records' indices in the table, ascending; all of them
// for an empty filter, none (an empty slice) if nothing matches.
func (f Filter) Match(t *Table) []int {
	match, _ := f.MatchContext(context.Background(), t) // which does not end
	return match
}

// MatchContext is Match, unless ctx ends first: it is looked at before each pass over the
// table.
func (f Filter) MatchContext(ctx context.Context, t *Table) ([]int, error) {
	n := t.Len()
	chosen := make([]bool, n)
	if f.Empty() || f.terms[0].remove {
		for i := range chosen {
			chosen[i] = true
		}
	}
	err := f.walk(ctx, t, func(k, record int) { chosen[record] = !f.terms[k].remove })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(spelling.Numbers(n), func(i int) bool { return !chosen[i] }), nil
}

// ErrNoMatch means that a filter chooses no record of a table.
var ErrNoMatch = errors.New("no record matches")

// Only is the table of the chosen records; the table itself for an empty filter. The error is [ErrNoMatch] where nothing
// matches.
func (f Filter) Only(t *Table) (*Table, error) {
	if f.Empty() {
		return t, nil
	}
	var chosen []Raw
	for _, i := range f.Match(t) {
		chosen = append(chosen, Raw{Addr: t.Addr(i), Symbol: t.Symbol(i), Module: t.Module(i)})
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s: %w %q", t.Name(), ErrNoMatch, f)
	}
	return New(t.Name(), t.Arch(), chosen)
}

// Len is how many expressions the filter has: what Match costs grows with it.
func (f Filter) Len() int { return len(f.terms) }

// Unmatched lists the expressions that match no record of a table, added or
// removed: the kernel refuses to write such a one (EINVAL).
func (f Filter) Unmatched(t *Table) (exprs []string) {
	matched := make([]bool, len(f.terms))
	_ = f.walk(context.Background(), t, func(k, _ int) { matched[k] = true }) // which does not end
	for k, found := range matched {
		if !found {
			exprs = append(exprs, f.words[k])
		}
	}
	return exprs
}

// walk tells visit which record matches which expression, in the order of the expressions. A
// list of plain names that follow each other, all added or all removed, is one pass over the
// table: their order makes no difference.
func (f Filter) walk(ctx context.Context, t *Table, visit func(k, record int)) error {
	for from := 0; from < len(f.terms); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		to := from
		for to < len(f.terms) && f.terms[to].plain() && f.terms[to].remove == f.terms[from].remove {
			to++
		}
		if to-from < 2 {
			for i := range f.terms[from].all(t) {
				visit(from, i)
			}
			from++
			continue
		}
		named := make(map[string][]int, to-from)
		for k := from; k < to; k++ {
			named[f.terms[k].fn.pattern] = append(named[f.terms[k].fn.pattern], k)
		}
		for i := range t.Len() {
			for _, k := range named[t.Symbol(i)] {
				visit(k, i)
			}
		}
		from = to
	}
	return nil
}

// plain tells whether the term is just the name of a function.
func (t *term) plain() bool {
	return t.index == 0 && !t.byMod && !t.anyFn && t.fn.kind == globFull
}

// all are the records that the term matches.
func (t term) all(tab *Table) iter.Seq[int] {
	return func(yield func(int) bool) {
		if t.index > 0 {
			if t.index <= tab.Len() {
				yield(t.index - 1)
			}
			return
		}
		// A module's name is matched once, not for each of its records.
		names := tab.modules.list()
		inModule := make([]bool, len(names))
		for id, name := range names {
			inModule[id] = (id != 0 && (t.anyMod || t.mod.match(name))) != t.without // as ftrace_match_record does
		}
		for i := range tab.Len() {
			if t.byMod && !inModule[tab.modules.id(i)] {
				continue
			}
			if (t.anyFn || t.fn.match(tab.Symbol(i))) && !yield(i) {
				return
			}
		}
	}
}
