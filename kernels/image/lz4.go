// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"errors"
	"io"
)

// A kernel packed with LZ4 is a legacy frame (scripts/Makefile.lib, cmd_lz4: lz4 -l): a
// magic number, then blocks, each behind its length in four bytes, little-endian
// (lib/decompress_unlz4.c, 6.12; github.com/lz4/lz4, doc/lz4_Frame_format.md, "Legacy frame").
const (
	lz4Block = 8 << 20                      // bytes that a block unpacks to, at most
	lz4Bound = lz4Block + lz4Block/255 + 16 // bytes of one that could not be packed
	lz4Match = 4                            // bytes of the shortest match
)

var errLZ4 = errors.New("lz4: corrupt block")

// lz4Reader unpacks a legacy frame block by block.
type lz4Reader struct {
	r        *bufio.Reader
	packed   []byte
	unpacked []byte
	rest     []byte // of unpacked, still to be read
}

func openLZ4(r io.Reader) (io.Reader, error) {
	z := &lz4Reader{r: bufio.NewReader(r)}
	_, err := z.r.Discard(4) // the magic number, which was looked at
	return z, err
}

func (z *lz4Reader) Read(b []byte) (int, error) {
	for len(z.rest) == 0 {
		if err := z.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, z.rest)
	z.rest = z.rest[n:]
	return n, nil
}

// next unpacks a block. What cannot be the length of one ends the frame: the build appends
// the unpacked size (cmd_lz4_with_size).
func (z *lz4Reader) next() error {
	var length [4]byte
	if _, err := io.ReadFull(z.r, length[:]); err != nil {
		return io.EOF
	}
	n := int64(le.Uint32(length[:]))
	if _, err := z.r.Peek(1); n == 0 || n > lz4Bound || err == io.EOF {
		return io.EOF
	}
	if z.packed == nil {
		z.packed, z.unpacked = make([]byte, lz4Bound), make([]byte, 0, lz4Block)
	}
	if _, err := io.ReadFull(z.r, z.packed[:n]); err != nil {
		return io.ErrUnexpectedEOF
	}
	var err error
	z.rest, err = unpackLZ4(z.unpacked, z.packed[:n])
	return err
}

// unpackLZ4 appends what a block unpacks to, as far as there is room (doc/lz4_Block_format.md):
// sequences of literals, and a match in what is unpacked already, which the last one lacks.
func unpackLZ4(out, b []byte) ([]byte, error) {
	for len(b) > 0 {
		token := b[0]
		literals, rest, err := lz4Length(int(token>>4), b[1:])
		if err != nil || literals > len(rest) || literals > cap(out)-len(out) {
			return nil, errLZ4
		}
		out = append(out, rest[:literals]...)
		if b = rest[literals:]; len(b) == 0 {
			return out, nil
		}
		if len(b) < 2 {
			return nil, errLZ4
		}
		back := int(le.Uint16(b))
		match, rest, err := lz4Length(int(token&15), b[2:])
		if match += lz4Match; err != nil || back == 0 || back > len(out) || match > cap(out)-len(out) {
			return nil, errLZ4
		}
		for b = rest; match > 0; { // a match may go on in what it makes
			n := min(match, back)
			out = append(out, out[len(out)-back:len(out)-back+n]...)
			match -= n
		}
	}
	return nil, errLZ4
}

// lz4Length reads a length that begins with four bits: 15 of them go on in bytes, of which
// 255 go on, too.
func lz4Length(n int, b []byte) (int, []byte, error) {
	if n < 15 {
		return n, b, nil
	}
	for i, more := range b {
		if n += int(more); more != 255 {
			return n, b[i+1:], nil
		}
		if n > lz4Block {
			break
		}
	}
	return 0, nil, errLZ4
}
