// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// groups walks over the groups of records, and searches in the one whose range
// holds the address: lookup_rec in kernel/trace/ftrace.c, which ftrace's own
// breakpoint handler used until Linux 5.5.
type groups struct {
	addrs []records.Addr
	ends  []int // one past the last slot of each group
}

func newGroups(b Batch) *groups {
	if len(b.Addrs) == 0 {
		return &groups{}
	}
	return &groups{b.Addrs, append(append([]int(nil), b.Starts...), len(b.Addrs))}
}

func (x *groups) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	first := 0
	for _, end := range x.ends {
		p.Comparisons++
		if at >= x.addrs[first] {
			p.Comparisons++
			if at <= x.addrs[end-1] {
				if slot, ok := search(x.addrs[first:end], at, p); ok {
					return first + slot, true
				}
			}
		}
		first = end
	}
	return 0, false
}

func (x *groups) Len() int { return len(x.addrs) }
