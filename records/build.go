// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// MaxRecords bounds every table: a hundred million records are 800 MB of
// addresses.
const MaxRecords = 100_000_000

// maxNames bounds the bytes of all symbols of a table, which 32-bit offsets
// must reach.
const maxNames = 1<<32 - 1

// Raw is one record given explicitly.
type Raw struct {
	Addr   Addr
	Symbol string
	Module string // "" for the core kernel
}

// New makes a table of explicit records. Without groups the kernel's rule cuts
// them (GroupSizes). Given groups must follow one another, cover all records and
// ascend inside. It fails with a *ParseError on a zero or repeated address, a name
// that is empty or holds blanks, and on wrong groups.
func New(name, arch string, recs []Raw, groups ...Group) (*Table, error) {
	b := newBuilder(name)
	for _, r := range recs {
		if err := b.add(r.Addr, []byte(r.Symbol), []byte(r.Module)); err != nil {
			return nil, err
		}
	}
	if len(groups) > 0 {
		if err := b.setGroups(groups); err != nil {
			return nil, err
		}
	}
	return b.finish(arch)
}

// builder collects records as a source delivers them.
type builder struct {
	file    string
	line    int   // line of the record being added; 0 for sources without lines
	header  int   // lines in front of the first record
	skipped []int // for each line passed over later: how many records came before it

	addrs   []Addr
	lengths []uint8 // of sites, as far as records have had one
	names   blobSymbols
	mods    runModules
	known   map[string]uint32 // numbers in mods.names
	groups  []Group           // nil: by the kernel's rule

	corePages int // see kernelGroups
}

func newBuilder(file string) *builder {
	b := &builder{file: file, known: map[string]uint32{"": 0}}
	b.mods.names = []string{""}
	return b
}

// fail makes an error at the current line.
func (b *builder) fail(value, reason string) error {
	return &ParseError{File: b.file, Line: b.line, Value: value, Reason: reason}
}

// add appends one record. The names are copied.
func (b *builder) add(addr Addr, symbol, module []byte) error {
	switch {
	case addr == 0:
		return b.fail(quoted("address", "0"), "no code is there; kptr_restrict hides addresses by printing zeros")
	case len(symbol) == 0:
		return b.fail("symbol", "missing")
	case !printable(symbol):
		return b.fail(quoted("symbol", symbol), "holds blanks or control characters")
	case len(b.addrs) == MaxRecords:
		return b.fail("", fmt.Sprintf("more than %d records", MaxRecords))
	case len(b.names.blob)+len(symbol) > maxNames:
		return b.fail("", fmt.Sprintf("more than %d bytes of symbols", uint64(maxNames)))
	}
	if err := b.addModule(module); err != nil {
		return err
	}
	b.addrs = append(b.addrs, addr)
	b.names.blob = append(b.names.blob, symbol...)
	b.names.ends = append(b.names.ends, uint32(len(b.names.blob)))
	return nil
}

// addModule extends the current run of modules or starts the next.
func (b *builder) addModule(module []byte) error {
	m, end := &b.mods, uint32(len(b.addrs)+1)
	if r := len(m.ends) - 1; r >= 0 && m.names[m.ids[r]] == string(module) {
		m.ends[r] = end
		return nil
	}
	id, ok := b.known[string(module)]
	if !ok {
		if !printable(module) {
			return b.fail(quoted("module", module), "holds blanks or control characters")
		}
		id = uint32(len(m.names))
		m.names = append(m.names, string(module))
		b.known[m.names[id]] = id
	}
	m.ends, m.ids = append(m.ends, end), append(m.ids, id)
	return nil
}

// printable tells whether a name survives being printed in a list: no blanks,
// no control characters.
func printable(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// skip notes that a line was passed over without giving a record.
func (b *builder) skip() { b.skipped = append(b.skipped, len(b.addrs)) }

// where names record i for an error: by its line if the source has lines.
func (b *builder) where(i int) string {
	if b.line == 0 {
		return fmt.Sprintf("record %d", i)
	}
	return fmt.Sprintf("line %d", b.lineOf(i))
}

// lineOf is the line that gave record i: one line each, but for the header and
// for lines passed over.
func (b *builder) lineOf(i int) int {
	over := sort.Search(len(b.skipped), func(k int) bool { return b.skipped[k] > i })
	return b.header + i + 1 + over
}

// setGroups takes explicit groups.
func (b *builder) setGroups(groups []Group) error {
	next := 0
	for k, g := range groups {
		if g.First != next || g.Last <= g.First || g.Last > len(b.addrs) {
			return b.fail(fmt.Sprintf("group %d of records %d to %d", k, g.First, g.Last),
				fmt.Sprintf("must start at record %d, hold some and end by %d", next, len(b.addrs)))
		}
		for i := g.First + 1; i < g.Last; i++ {
			if b.addrs[i] < b.addrs[i-1] {
				return b.fail(fmt.Sprintf("group %d", k),
					fmt.Sprintf("record %d lies below record %d; records ascend inside a group", i, i-1))
			}
		}
		next = g.Last
	}
	if next != len(b.addrs) {
		return b.fail("groups", fmt.Sprintf("end at record %d of %d", next, len(b.addrs)))
	}
	b.groups = slices.Clone(groups)
	return nil
}

// finishSome is finish for a file of a kernel or a compiler. A file without a record
// is of another kind.
func (b *builder) finishSome(arch string) (*Table, error) {
	if len(b.addrs) == 0 {
		return nil, &ParseError{File: b.file, Reason: "holds no records"}
	}
	return b.finish(arch)
}

// finish checks the whole and makes the table.
func (b *builder) finish(arch string) (*Table, error) {
	t := &Table{
		name: b.file, arch: arch,
		addrs: b.addrs, lengths: b.lengths, groups: b.groups, symbols: &b.names, modules: &b.mods,
	}
	if n := len(b.addrs) - len(b.lengths); b.lengths != nil {
		t.lengths = append(b.lengths, make([]uint8, n)...)
	}
	if t.groups == nil {
		t.groups = kernelGroups(t.addrs, t.modules, b.corePages)
	}
	if i, j, ok := t.duplicate(); ok {
		err := &ParseError{File: b.file, Value: quoted("address", t.addrs[i].String())}
		err.Reason = fmt.Sprintf("the same on %s and %s", b.where(i), b.where(j))
		if b.line > 0 {
			err.Line, err.Reason = b.lineOf(j), "already on "+b.where(i)
		}
		return nil, err
	}
	return t, nil
}

// duplicate finds two records with one address.
func (t *Table) duplicate() (i, j int, found bool) {
	asc := t.ascending()
	for k := 1; k < len(asc); k++ {
		if asc[k] == asc[k-1] {
			i = slices.Index(t.addrs, asc[k])
			j = i + 1 + slices.Index(t.addrs[i+1:], asc[k])
			return i, j, true
		}
	}
	return 0, 0, false
}

// ascending are the table's addresses in ascending order. Shared with the table
// where that is sorted already: do not write.
func (t *Table) ascending() []Addr {
	if slices.IsSorted(t.addrs) {
		return t.addrs
	}
	asc := make([]Addr, 0, len(t.addrs))
	// Load units rarely interleave: putting the groups in order is then all
	// the sorting there is to do.
	if len(t.groups) < len(t.addrs)/16 {
		groups := slices.Clone(t.groups)
		slices.SortFunc(groups, func(a, b Group) int {
			return cmp.Compare(t.addrs[a.First], t.addrs[b.First])
		})
		for _, g := range groups {
			asc = append(asc, t.addrs[g.First:g.Last]...)
		}
	} else {
		asc = append(asc, t.addrs...)
	}
	if !slices.IsSorted(asc) {
		slices.Sort(asc)
	}
	return asc
}
