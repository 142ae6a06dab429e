// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// settings are what a case can say of its machine, by the first word of a line.
var settings = map[string]func(s *stage, rest string) error{
	"arch": func(s *stage, rest string) (err error) {
		if s.code.Arch, err = cpus.ParseArch(rest); err == nil {
			s.code.Traits = s.code.Arch.Traits()
		}
		return err
	},
	"layout": func(s *stage, rest string) error { // "pair": a site was two instructions
		s.code.Layout = isa.Pair
		return only(rest, "pair")
	},
	"length": func(s *stage, rest string) error { // of sites, in bytes: a piece of a program
		n, err := strconv.Atoi(rest)
		region, ok := x86_64.Region(n)
		if err != nil || !ok || s.code.Arch == nil || s.code.Traits.Name != x86_64.Name {
			return fmt.Errorf("length %q: want 1 to 8 bytes of x86_64, whose sites have the lengths of their instructions", rest)
		}
		s.code.Arch, s.code.Traits = region, region.Traits()
		return nil
	},
	"cpus": func(s *stage, rest string) (err error) {
		s.m.Roles, err = cpus.ParseRoles(rest)
		return err
	},
	"fetch": func(s *stage, rest string) (err error) {
		s.code.Fetch, err = cpus.ParseFetch(rest)
		return err
	},
	"refs": func(s *stage, rest string) (err error) {
		s.m.Refs, err = int3.ParseRefs(rest)
		return err
	},
	"slots": func(s *stage, rest string) (err error) {
		s.m.Slots, err = strconv.Atoi(rest)
		return err
	},
	"queued":  func(s *stage, rest string) error { s.m.Filling = poke.AsQueued; return only(rest, "in any order") },
	"preempt": func(s *stage, rest string) error { s.m.Preempt = true; return only(rest, "") },
	"always":  func(s *stage, rest string) error { s.code.Always = true; return only(rest, "traced") },
	"deaf": func(s *stage, rest string) (err error) { // interrupts do not make the CPU fetch afresh
		s.code.Deaf, err = bit(rest, "cpu")
		return err
	},
	"nmis": func(s *stage, rest string) (err error) { // come to no other one
		at, ok := strings.CutPrefix(rest, "at ")
		if !ok {
			return fmt.Errorf("%q: want \"at cpu\" and a number", rest)
		}
		s.code.Disturbed, err = bit(at, "cpu")
		return err
	},
	"probed": func(s *stage, rest string) (err error) { // somebody else's breakpoint is there throughout
		s.code.Probed, err = bit(rest, "site")
		return err
	},
	"without": func(s *stage, rest string) error {
		switch rest {
		case "literals": // what is patched is no traced function
			s.code.Traits.CallOps = false
		case "masked-rounds": // remote fences are interrupts like others
			s.code.Traits.MaskedRounds = false
		default:
			return fmt.Errorf("%q: %w", rest, spelling.NotOneOf(rest, []string{"literals", "masked-rounds"}))
		}
		return nil
	},
	"attached": func(s *stage, rest string) error { // ops that may be called from the start
		for name := range strings.SplitSeq(rest, ", ") {
			ops, err := place(name)
			if err != nil {
				return err
			}
			s.m.Attached = append(s.m.Attached, ops)
		}
		return nil
	},
}

// machine reads one line about the case's machine.
func (s *stage) machine(text string) error {
	what, rest, _ := strings.Cut(text, " ")
	set, ok := settings[what]
	if !ok {
		return fmt.Errorf("%q: %w", what, spelling.NotOneOf(what, slices.Sorted(maps.Keys(settings))))
	}
	return set(s, rest)
}

// only refuses what is not the only thing that can stand there.
func only(rest, want string) error {
	if rest != want {
		return fmt.Errorf("%q: want %q", rest, want)
	}
	return nil
}

// bit reads the number of a CPU or a site.
func bit(rest, what string) (uint64, error) {
	number, ok := strings.CutPrefix(rest, what+" ")
	n, err := strconv.ParseUint(number, 10, 6)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q: want %q and a number", rest, what)
	}
	return 1 << n, nil
}
