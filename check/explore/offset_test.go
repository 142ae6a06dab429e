// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
)

// TestOffsets: a store of a whole site is seen in part where no fetch reads the site at once:
// of five bytes of x86_64's, where they lie in two quadwords and fetches are of one; of four
// bytes of riscv64's between two words, and with whole quadwords only where they lie in two.
func TestOffsets(t *testing.T) {
	for offset := range 8 {
		for _, c := range []struct {
			setup   Setup
			invalid bool
			torn    bool
		}{
			{Setup{Arch: x86_64.Arch, Fetch: cpus.Quadword}, false, offset+5 > 8},
			{Setup{Arch: x86_64.Arch, Fetch: cpus.Weak}, false, true},
			{Setup{Arch: riscv64.Plain, Fetch: cpus.Weak}, offset%2 != 0, offset%4 == 2},
			{Setup{Arch: riscv64.Plain, Fetch: cpus.Quadword}, offset%2 != 0, offset == 6},
			{Setup{Arch: riscv64.Arch, Fetch: cpus.Weak}, offset != 4, false},
		} {
			s := c.setup
			s.Protocol, s.Roles, s.Sites = poke.Named("word", s.Arch.Traits()), make([]cpus.Role, 2), 1
			s.Offset = Offset(offset + 1)
			m, err := s.Model()
			if (err != nil) != c.invalid || (s.CanLie() != nil) != c.invalid {
				t.Errorf("%s at %d: %v, %v", s.Arch.Traits().Layout, offset, err, s.CanLie())
			}
			if err != nil {
				continue
			}
			if at := int(m.Code.Sites[0] % 8); at != offset {
				t.Errorf("sites at %d, want %d", at, offset)
			}
			r, err := Explore(context.Background(), m, Options{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			if torn := r.Violation != nil && r.Violation.Property == cpus.TornFetch; torn != c.torn {
				t.Errorf("%s, fetch %s, at %d: %v, want torn %t", s.Arch.Traits().Name, s.Fetch, offset, r.Violation, c.torn)
			}
		}
	}
}

// TestUsualOffset: none asked for is 4, and 0 of a pair, whose record is its second half.
func TestUsualOffset(t *testing.T) {
	for protocol, want := range map[string]Offset{"word": 5, "fence-per-write": 1} {
		s := Setup{Arch: riscv64.Arch, Protocol: poke.Named(protocol, riscv64.Arch.Traits()), Roles: make([]cpus.Role, 2), Sites: 1}
		usual, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		s.Offset = want
		asked, err := s.Model()
		if err != nil || asked.Code.Sites[0] != usual.Code.Sites[0] {
			t.Errorf("%s: %v, %v", protocol, asked.Code.Sites, err)
		}
	}
}

func TestParseOffset(t *testing.T) {
	for i, name := range OffsetNames() {
		if o, err := ParseOffset(name); err != nil || o.String() != name || int(o) != i+1 {
			t.Errorf("%s: %v, %v", name, o, err)
		}
	}
	for _, bad := range []string{"8", "-1", "", "all", "4 "} {
		if _, err := ParseOffset(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
