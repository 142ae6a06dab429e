// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
)

// lz4Frame reads blocks of LZ4 behind their lengths of four bytes, little-endian. A kernel is a legacy
// frame (lz4 -l: lib/decompress_unlz4.c, 6.12); lz4 by itself writes the standard one, whose checksums
// are skipped (github.com/lz4/lz4, doc/lz4_Frame_format.md). Blocks that need the one before are
// refused: the kernel's build does not make them, and lz4 does only with -BD.
type lz4Frame struct {
	r        *bufio.Reader
	most     int // bytes that a block unpacks to
	sums     int // bytes behind a block
	standard bool
	packed   []byte
	s2       []byte // the block as the library reads it
	unpacked []byte
	rest     []byte // of unpacked, still to be read
}

// lz4Legacy is what a block of a legacy frame unpacks to, at most.
const lz4Legacy = 8 << 20

func openLZ4(r io.Reader) (io.Reader, error) {
	z := &lz4Frame{r: bufio.NewReader(r), most: lz4Legacy}
	var head [6]byte
	if _, err := io.ReadFull(z.r, head[:4]); err != nil {
		return nil, err
	}
	if z.standard = head[0] == 0x04; !z.standard {
		return z, nil
	}
	if _, err := io.ReadFull(z.r, head[4:]); err != nil {
		return nil, err
	}
	flags, size := head[4], head[5]>>4&7
	if flags>>6 != 1 || size < 4 {
		return nil, errors.New("a frame of an unknown version")
	}
	if flags&0x20 == 0 {
		return nil, errors.New("its blocks hang together (lz4 -BD), which is not read")
	}
	z.most = 64 << 10 << (2 * (size - 4))
	z.sums = int(flags >> 4 & 1 * 4)
	more := 1 + int(flags>>3&1)*8 + int(flags&1)*4 // the header's checksum, the frame's size, a dictionary's name
	_, err := z.r.Discard(more)
	return z, err
}

// Read reads what the blocks unpack to.
func (z *lz4Frame) Read(b []byte) (int, error) {
	for len(z.rest) == 0 {
		if err := z.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, z.rest)
	z.rest = z.rest[n:]
	return n, nil
}

// next unpacks a block. A word that cannot be a block's length ends a legacy frame: the build appends
// the whole size (cmd_lz4_with_size of Linux 6.12, scripts/Makefile.lib).
func (z *lz4Frame) next() error {
	var word [4]byte
	if _, err := io.ReadFull(z.r, word[:]); err != nil {
		if z.standard {
			return io.ErrUnexpectedEOF // a standard frame has an end of its own
		}
		return err
	}
	length := binary.LittleEndian.Uint32(word[:])
	plain := z.standard && length>>31 != 0
	n := int(length)
	if z.standard {
		n = int(length &^ (1 << 31))
	}
	bound := z.most + z.most/255 + 16
	_, err := z.r.Peek(1)
	switch {
	case n == 0, !z.standard && (n > bound || err != nil):
		return io.EOF
	case n > bound:
		return fmt.Errorf("a block of %d bytes", n)
	}
	z.packed = slices.Grow(z.packed[:0], n+z.sums)
	block := z.packed[:n+z.sums]
	if _, err := io.ReadFull(z.r, block); err != nil {
		return io.ErrUnexpectedEOF
	}
	if block = block[:n]; plain {
		z.rest = block
		return nil
	}
	z.rest, err = z.unpack(block)
	return err
}

// unpack unpacks a block: the library turns it into one of its own format, before which its length stands.
func (z *lz4Frame) unpack(block []byte) ([]byte, error) {
	const room = binary.MaxVarintLen64
	z.s2 = slices.Grow(z.s2[:0], room+2*len(block)+64) // four bytes become five at worst
	var turn s2.LZ4Converter
	turned, size, err := turn.ConvertBlock(z.s2[:room], block)
	if err != nil || size > z.most {
		return nil, errLZ4
	}
	z.unpacked = slices.Grow(z.unpacked[:0], size)
	length := binary.AppendUvarint(nil, uint64(size))
	at := room - len(length)
	copy(turned[at:], length)
	out, err := s2.Decode(z.unpacked[:size], turned[at:])
	if err != nil {
		return nil, errLZ4
	}
	return out, nil
}

var errLZ4 = errors.New("corrupt block")
