// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"slices"
)

// Stats describe a table.
type Stats struct {
	Records       int
	Groups        int
	Modules       int // distinct modules
	ModuleRecords int // records that live in modules
	OrderBreaks   int // records whose address is below their predecessor's

	// Distances between neighbours in the order of addresses, in bytes. They
	// are 0 with fewer than two records; the largest is often the hole between
	// the core kernel and its modules.
	SpacingMin, SpacingMedian, SpacingMax uint64

	Span       uint64 // bytes from the lowest to the highest address
	Misaligned int    // records whose address is not 4 modulo 8, where functions aligned to 8 bytes put it
}

// ModuleShare is the share of records that live in modules, from 0 to 1.
func (s Stats) ModuleShare() float64 { return share(s.ModuleRecords, s.Records) }

// MisalignedShare is the share of misaligned records, from 0 to 1.
func (s Stats) MisalignedShare() float64 { return share(s.Misaligned, s.Records) }

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// Stats counts.
func (t *Table) Stats() Stats {
	s := Stats{Records: t.Len(), Groups: len(t.groups)}
	seen := make([]bool, len(t.modules.list()))
	for i, a := range t.addrs {
		if i > 0 && a < t.addrs[i-1] {
			s.OrderBreaks++
		}
		if a%8 != 4 {
			s.Misaligned++
		}
		if m := t.modules.id(i); m != 0 {
			s.ModuleRecords++
			if !seen[m] {
				seen[m] = true
				s.Modules++
			}
		}
	}
	if t.Len() < 2 {
		return s
	}
	asc := t.ascending()
	s.Span = uint64(asc[len(asc)-1] - asc[0])
	gaps := make([]Addr, len(asc)-1)
	for i := range gaps {
		gaps[i] = asc[i+1] - asc[i]
	}
	slices.Sort(gaps)
	s.SpacingMin, s.SpacingMax = uint64(gaps[0]), uint64(gaps[len(gaps)-1])
	s.SpacingMedian = uint64(gaps[len(gaps)/2])
	return s
}

// CheckSites verifies that sites of that many bytes, one at each record, do not
// overlap.
func (t *Table) CheckSites(siteLen int) error {
	asc := t.ascending()
	for k := 1; k < len(asc); k++ {
		if gap := asc[k] - asc[k-1]; gap < Addr(max(siteLen, 0)) {
			i, j := slices.Index(t.addrs, asc[k-1]), slices.Index(t.addrs, asc[k])
			return fmt.Errorf("records %s: %s and %s are %d bytes apart, and a site has %d",
				t.name, t.Describe(i), t.Describe(j), gap, siteLen)
		}
	}
	return nil
}
