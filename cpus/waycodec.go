// SPDX-License-Identifier: Apache-2.0

package cpus

// The fields of a word about ways, from the lowest bit: the CPU's own, then what an NMI
// has interrupted, and where on its ways that was.
const (
	bitsWay = 3
	bitsOn  = 4
	bitsCR3 = 4

	atOn    = bitsWay
	atCR3   = atOn + bitsOn
	bitsOwn = atCR3 + bitsCR3

	_ = uint(64 - (CodecBits + 2*bitsOwn)) // it must fit
)

// PackWay writes what a CPU knows of the ways that it goes, and what an NMI has
// interrupted.
func (k *Codec) PackWay(c, under *CPU) uint64 {
	w := packWay(c)
	if c.InNMI() {
		w |= k.Pack(under)<<bitsOwn | packWay(under)<<(bitsOwn+CodecBits)
	}
	return w
}

func packWay(c *CPU) uint64 { return uint64(c.way) | uint64(c.at)<<atOn | uint64(c.cr3)<<atCR3 }

// UnpackWay reads what PackWay has written; under keeps its ID and Role.
func (k *Codec) UnpackWay(w uint64, c, under *CPU) {
	if unpackWay(w, c); c.InNMI() {
		k.Unpack(w>>bitsOwn&(1<<CodecBits-1), under)
		unpackWay(w>>(bitsOwn+CodecBits), under)
		return
	}
	*under = CPU{ID: under.ID, Role: under.Role}
}

func unpackWay(w uint64, c *CPU) {
	c.way, c.at, c.cr3 = Section(w&(1<<bitsWay-1)), uint8(w>>atOn&(1<<bitsOn-1)), uint8(w>>atCR3&(1<<bitsCR3-1))
}
