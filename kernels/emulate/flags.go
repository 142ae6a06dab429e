// SPDX-License-Identifier: Apache-2.0

package emulate

// flags are those of the last result. Parity is not kept.
type flags struct{ zero, sign, carry, overflow bool }

// result sets the flags of a number of so many bytes.
func (f *flags) result(v uint64, bytes int) {
	f.zero, f.sign = v&mask(bytes) == 0, v>>(8*bytes-1)&1 == 1
}

// logic is the result of and, or, xor, test.
func (f *flags) logic(v uint64, bytes int) uint64 {
	f.carry, f.overflow = false, false
	f.result(v, bytes)
	return v
}

// add is a + b, and a carry.
func (f *flags) add(a, b uint64, carry bool, bytes int) uint64 {
	v := a + b
	if carry {
		v++
	}
	top := 8*bytes - 1
	f.carry = (a&b|(a|b)&^v)>>top&1 == 1
	f.overflow = (a^v)&(b^v)>>top&1 == 1
	f.result(v, bytes)
	return v
}

// sub is a - b, and a borrow.
func (f *flags) sub(a, b uint64, borrow bool, bytes int) uint64 {
	v := a - b
	if borrow {
		v--
	}
	top := 8*bytes - 1
	f.carry = (^a&b|(^a|b)&v)>>top&1 == 1
	f.overflow = (a^b)&(a^v)>>top&1 == 1
	f.result(v, bytes)
	return v
}

// holds tells whether a condition holds, as instructions number them: overflow, below,
// equal, below or equal, sign, parity, less, less or equal, and each the other way round.
func (f *flags) holds(condition int) bool {
	var yes bool
	switch condition >> 1 {
	case 0:
		yes = f.overflow
	case 1:
		yes = f.carry
	case 2:
		yes = f.zero
	case 3:
		yes = f.carry || f.zero
	case 4:
		yes = f.sign
	case 6:
		yes = f.sign != f.overflow
	case 7:
		yes = f.zero || f.sign != f.overflow
	}
	return yes != (condition&1 == 1)
}
