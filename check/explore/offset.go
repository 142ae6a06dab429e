// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strconv"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// Offset is where in an aligned quadword sites begin: an offset from 0 to 7, plus 1. 0 is where
// kernels have them: at 4, and pairs of instructions at 0.
type Offset uint8

// quadword is how many there are.
const quadword = 8

// ParseOffset reads an offset.
func ParseOffset(s string) (Offset, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n >= quadword {
		return 0, fmt.Errorf("%q: want an offset from 0 to %d, or all", s, quadword-1)
	}
	return Offset(n + 1), nil
}

// String is the offset; "" for the usual one.
func (p Offset) String() string {
	if p == 0 {
		return ""
	}
	return strconv.Itoa(int(p) - 1)
}

// OffsetNames are all offsets.
func OffsetNames() (names []string) {
	for p := Offset(1); p <= quadword; p++ {
		names = append(names, p.String())
	}
	return names
}

// Crossings are the offsets at which sites lie across a border of aligned quadwords, each at
// another byte, behind the usual one; or the one that was asked for. A fetch within one
// quadword can do no more than one across a border. With weak fetches, whose every grain may
// be of any version, it makes no difference but on riscv64: see FinerElsewhere.
func (s *Setup) Crossings() ([]Offset, error) {
	list := []Offset{s.Offset}
	longest, err := s.longest()
	if err != nil || s.Fetch == cpus.Weak || s.Offset != 0 {
		return list, err
	}
	for at := *s; at.Offset < quadword; {
		at.Offset++
		rec, err := at.firstRecord()
		if err != nil {
			return nil, err
		}
		site, err := longest.Site(rec, s.Protocol.Layout)
		if err == nil && site.Addr%quadword+records.Addr(site.Len) > quadword { // others are where no site can be
			list = append(list, at.Offset)
		}
	}
	return list, nil
}

// firstRecord is the record of the first site: the usual one, or as many bytes further on as
// the offset is.
func (s *Setup) firstRecord() (records.Addr, error) {
	if s.Offset == 0 {
		return firstSite, nil
	}
	longest, err := s.longest()
	if err != nil {
		return 0, err
	}
	usual, err := longest.Site(firstSite, s.Protocol.Layout)
	return firstSite + (records.Addr(s.Offset-1)-usual.Addr)%quadword, err
}

// CanLie tells why sites cannot lie where they are asked for; nil where they can.
func (s *Setup) CanLie() error {
	rec, err := s.firstRecord()
	if err != nil {
		return err
	}
	longest, err := s.longest()
	if err != nil {
		return err
	}
	_, err = longest.Site(rec, s.Protocol.Layout)
	return err
}

// FinerElsewhere tells whether there can be sites that no fetch sees whole, though it does so of
// these: riscv64's between two words.
func (m *Model) FinerElsewhere() bool {
	at := m.Code.Sites[0]
	elsewhere, err := m.Code.Arch.Site(at+2, m.Code.Layout)
	return err == nil && m.Code.Arch.Grain(elsewhere.Addr) < m.Code.Arch.Grain(at)
}
