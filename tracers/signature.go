// SPDX-License-Identifier: Apache-2.0

package tracers

import "fmt"

// Signature is what a function takes and gives back, by the names of types.
type Signature struct {
	Args   []string
	Return string // "" for nothing
}

// Uses are the arguments that a program looks at, a bit each, and the result.
type Uses uint16

// UsesReturn says that a program looks at the result, UsesArg that it looks at an
// argument, counted from 0.
const UsesReturn Uses = 1 << 15

// UsesArg is the other half of UsesReturn.
func UsesArg(n int) Uses { return 1 << n }

// sameFor refuses functions that differ from the first one in what a program looks
// at: it was verified for that one's types (btf_check_func_part_match, "bpf: tracing:
// add support to record and check the accessed args", RFC v2, July 2025). Functions
// without a known signature are accepted.
func (c *Core) sameFor(o *Ops, p Prog, recs []int, source string) error {
	if c.Signature == nil || len(recs) == 0 {
		return nil
	}
	first := c.Signature(recs[0])
	for _, rec := range recs[1:] {
		if why := p.Uses.differ(first, c.Signature(rec)); why != "" {
			return refuse(EINVAL, o, why, source).at(c.Records[rec])
		}
	}
	return nil
}

// differ says in what two functions differ that a program looks at, "" for nothing.
func (u Uses) differ(first, other Signature) string {
	if u&UsesReturn != 0 && first.Return != other.Return {
		return fmt.Sprintf("the program looks at a result of type %q, and this function's is %q", first.Return,
			other.Return)
	}
	for n := range 15 {
		if u&UsesArg(n) == 0 {
			continue
		}
		if want, got := first.arg(n), other.arg(n); want != got {
			return fmt.Sprintf("the program looks at argument %d of type %q, and this function's is %q", n, want, got)
		}
	}
	return ""
}

// arg is the type of an argument, "" where there are not so many.
func (s Signature) arg(n int) string {
	if n >= len(s.Args) {
		return ""
	}
	return s.Args[n]
}
