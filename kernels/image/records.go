// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"slices"

	"github.com/textpoke/textpoke/records"
)

// Records are what ftrace can patch, in the order in which the kernel walks them.
type Records struct {
	Marks   int      // entries of the table, __mcount_loc
	Empty   int      // of them, of weak functions that lost, emptied by the build
	Init    int      // of them, in text that is thrown away after boot
	Invalid int      // of them, of weak functions that lost, listed and never patched
	Order   int      // descents in the table as it stands; the kernel sorts it
	Sites   []uint64 // the others
	Pages   int      // of records that the kernel takes
	places  []int    // where each of them stands among the marks, in order
}

// markBytes is an entry of the table: an address.
const markBytes = 8

// invalidName is what the kernel calls a record of a weak function that lost, where it
// looks for them at boot (test_for_valid_rec, kernel/trace/ftrace.c, since Linux 6.0).
const invalidName = "__ftrace_invalid_address__"

func (k *Kernel) readRecords() {
	if !k.Has("__start_mcount_loc") {
		k.findMarks()
	}
	_, b := k.table("__start_mcount_loc", "__stop_mcount_loc", markBytes)
	r := &k.Records
	var marks []uint64
	for ; len(b) >= markBytes; b = b[markBytes:] {
		r.Marks++
		mark := le.Uint64(b)
		if mark == 0 {
			r.Empty++
			continue
		}
		if len(marks) > 0 && mark < marks[len(marks)-1] {
			r.Order++
		}
		marks = append(marks, mark)
	}
	slices.Sort(marks) // ftrace_process_locs
	k.pick(marks)
	r.Pages = records.Pages(r.Marks)
}

// pick keeps the marks that the kernel patches.
func (k *Kernel) pick(marks []uint64) {
	r, behind := &k.Records, k.behind(marks)
	for i, mark := range marks {
		_, offset, ok := k.Symbol(mark)
		switch {
		case k.discarded(mark):
			r.Init++
		case !ok || offset > behind:
			r.Invalid++
		default:
			r.Sites = append(r.Sites, k.arch.record(k, mark))
			r.places = append(r.places, i)
		}
	}
}

// anywhere is the distance of a record from its symbol where nobody looks at it.
const anywhere = ^uint64(0)

// behind is how far behind its function's symbol a record may lie: nothing, or the four
// bytes of a landing pad where most functions begin with one (FTRACE_MCOUNT_MAX_OFFSET,
// arch/x86/include/asm/ftrace.h). Kernels that do not look for weak functions patch them.
func (k *Kernel) behind(marks []uint64) uint64 {
	if k.arch.magic != "" || !k.contains(invalidName) {
		return anywhere
	}
	at := map[uint64]int{}
	for _, mark := range marks {
		if _, offset, ok := k.Symbol(mark); ok {
			at[offset]++
		}
	}
	if at[4] > at[0] {
		return 4
	}
	return 0
}

// Table is the records as package records has them, in the kernel's groups.
func (k *Kernel) Table() (*records.Table, error) {
	raw := make([]records.Raw, len(k.Records.Sites))
	for i, at := range k.Records.Sites {
		y, _, _ := k.Symbol(at)
		raw[i] = records.Raw{Addr: records.Addr(at), Symbol: cmp.Or(y.Name, "unknown")}
	}
	return records.New(k.File, k.arch.name, raw, k.groups()...)
}

// groups are runs of records as the kernel's pages cut them, which are filled before
// anything is thrown away.
func (k *Kernel) groups() (out []records.Group) {
	first, limit, sizes := 0, 0, records.GroupPages(k.Records.Pages)
	for i, place := range k.Records.places {
		for place >= limit && len(sizes) > 0 {
			if i > first {
				out = append(out, records.Group{First: first, Last: i})
				first = i
			}
			limit += sizes[0] * records.RecordsPerPage
			sizes = sizes[1:]
		}
	}
	if n := len(k.Records.places); n > first {
		out = append(out, records.Group{First: first, Last: n})
	}
	return out
}
