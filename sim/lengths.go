// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// settleLengths finds the instruction set of each site where records have lengths of
// their own. CPUs fetch as many bytes as the longest site has: what is behind a
// shorter one never changes.
func (j *Job) settleLengths() (err error) {
	if !j.Table.HasLengths() {
		return nil
	}
	j.sized = map[int]isa.Arch{0: j.Arch}
	usual := j.Arch
	for rec := range j.Table.Len() {
		n := j.Table.Length(rec)
		if j.sized[n] != nil {
			continue
		}
		if j.sized[n], err = cpus.WithLength(usual, n); err != nil {
			return fmt.Errorf("record %s: %w", j.Table.Describe(rec), err)
		}
	}
	usualUsed := false
	for rec := 0; rec < j.Table.Len() && !usualUsed; rec++ {
		usualUsed = j.Table.Length(rec) == 0
	}
	longest := 0
	for n, a := range j.sized {
		if fetch := a.Traits().FetchLen; (n > 0 || usualUsed) && fetch > longest {
			longest, j.Arch = fetch, a
		}
	}
	return nil
}

// archOf is the instruction set with sites as long as the record's.
func (j *Job) archOf(rec int) isa.Arch {
	if j.sized == nil {
		return j.Arch
	}
	return j.sized[j.Table.Length(rec)]
}

// entries tell how long the site of each record of the queue is, nil where all are
// alike. None of them becomes a breakpoint.
func (j *Job) entries() func(int) (int, bool) {
	if j.sized == nil {
		return nil
	}
	return func(i int) (int, bool) { return j.archOf(j.queue[i]).Traits().FetchLen, false }
}

// ahead is how far jumps of two bytes go: to a label of the same function.
const ahead = 32

// target is where an enabled site goes to.
func target(s isa.Site, entry records.Addr) records.Addr {
	if s.Len == 2 {
		return s.Addr + records.Addr(s.Len) + ahead
	}
	return entry
}
