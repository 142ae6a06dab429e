// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"
)

// Limits on packed input, against files that unpack to more than the machine
// holds.
const (
	MaxUnpacked   = 8 << 30  // bytes that one packed text may become; it is read as a stream
	MaxPackedELF  = 1 << 30  // bytes that a packed ELF file may become; it is kept in memory
	maxLayers     = 4        // packings inside each other
	maxDictionary = 64 << 20 // bytes of xz's dictionary; what xz -9 uses
)

var (
	magicGzip  = []byte{0x1f, 0x8b}
	magicXZ    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	magicELF   = []byte{0x7f, 'E', 'L', 'F'}
	utf8BOM    = []byte{0xef, 0xbb, 0xbf}
	unsupplied = []struct{ magic, what string }{
		{"\x28\xb5\x2f\xfd", "packed with zstd; unpack it first (unzstd)"},
		{"BZh", "packed with bzip2; unpack it first (bunzip2)"},
		{"MZ", "a bootable kernel image; the ELF file inside is needed (the kernel's scripts/extract-vmlinux)"},
	}
)

// source is input whose packing has been peeled off.
type source struct {
	ctx    context.Context
	file   string
	r      *bufio.Reader // holds at least the first MaxLine bytes
	packed bool
}

// unpack peels gzip and xz off, however often they are wrapped around each
// other. Content decides, not the name.
func unpack(ctx context.Context, file string, r io.Reader) (*source, error) {
	s := &source{ctx: ctx, file: file, r: bufio.NewReaderSize(r, MaxLine)}
	for range maxLayers {
		head, err := s.r.Peek(len(magicXZ))
		if err != nil && err != io.EOF {
			return nil, readError(file, "", err)
		}
		var kind string
		var inner io.Reader
		switch {
		case bytes.HasPrefix(head, magicGzip):
			kind = "gzip"
			inner, err = gzip.NewReader(s.r)
		case bytes.HasPrefix(head, magicXZ):
			kind = "xz"
			inner, err = newXZ(s.r)
		default:
			return s, nil
		}
		if err != nil {
			return nil, readError(file, kind, err)
		}
		s.packed = true
		s.r = bufio.NewReaderSize(&layer{ctx: ctx, file: file, kind: kind, r: inner}, MaxLine)
	}
	return nil, &ParseError{File: file, Reason: fmt.Sprintf("packed more than %d times", maxLayers-1)}
}

// newXZ opens an xz stream after a look at the dictionary that its first block
// asks for: the reader allocates whatever it says, up to 4 GiB.
// The layout is from the .xz file format 1.2, sections 2.1.1 and 3.1: a stream
// header of 12 bytes, then size, flags, optional sizes, and the filters: number
// 0x21 is LZMA2, with one byte of properties (5.3.1).
func newXZ(r *bufio.Reader) (io.Reader, error) {
	head, _ := r.Peek(40)
	if len(head) > 14 {
		flags, rest := head[13], head[14:]
		for _, bit := range []byte{0x40, 0x80} {
			if flags&bit == 0 {
				continue
			}
			for len(rest) > 0 && rest[0]&0x80 != 0 { // a multibyte integer
				rest = rest[1:]
			}
			rest = rest[min(1, len(rest)):]
		}
		if flags&3 == 0 && len(rest) > 2 && rest[0] == 0x21 && rest[1] == 1 {
			if d := rest[2]; d <= 40 && xzDictionary(d) > maxDictionary {
				return nil, fmt.Errorf("dictionary of %d MiB, more than %d", xzDictionary(d)>>20, maxDictionary>>20)
			}
		}
	}
	tail := &tailReader{r: r}
	x, err := xz.NewReader(tail)
	if err != nil {
		return nil, err
	}
	return &wholeXZ{x, tail}, nil
}

// wholeXZ insists that an xz file ends with a stream's footer. The reader below
// takes one that stops at the border of a block for complete.
type wholeXZ struct {
	io.Reader
	tail *tailReader
}

func (x *wholeXZ) Read(p []byte) (int, error) {
	n, err := x.Reader.Read(p)
	if err == io.EOF && x.tail.last != [2]byte{'Y', 'Z'} {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// tailReader remembers the last two bytes that are not zero, which may pad the
// end of a file: an xz stream's last bytes are YZ.
type tailReader struct {
	r    *bufio.Reader
	last [2]byte
}

func (t *tailReader) note(c byte) {
	if c != 0 {
		t.last[0], t.last[1] = t.last[1], c
	}
}

func (t *tailReader) ReadByte() (byte, error) {
	c, err := t.r.ReadByte()
	if err == nil {
		t.note(c)
	}
	return c, err
}

func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	for _, c := range p[:n] {
		t.note(c)
	}
	return n, err
}

// xzDictionary is the size in bytes that a property byte stands for.
func xzDictionary(d byte) uint64 {
	return (2 | uint64(d)&1) << (d/2 + 11)
}

// layer is one packing being peeled off. It counts what comes out and turns the
// unpacker's errors into ones that name the file.
type layer struct {
	ctx  context.Context
	file string
	kind string
	r    io.Reader
	n    int64
}

func (l *layer) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, fmt.Errorf("read %s: %w", l.file, err)
	}
	n, err := l.r.Read(p)
	l.n += int64(n)
	if l.n > MaxUnpacked {
		return 0, &ParseError{File: l.file, Value: l.kind + " data", Reason: fmt.Sprintf("unpacks to more than %d GiB",
			MaxUnpacked>>30)}
	}
	if err != nil && err != io.EOF {
		err = readError(l.file, l.kind, err)
	}
	return n, err
}

// readError names the file and the packing that a read failed in. Errors that
// already do, from a layer below, stay as they are.
func readError(file, kind string, err error) error {
	var parse *ParseError
	switch {
	case errors.As(err, &parse), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case kind == "":
		return fmt.Errorf("read %s: %w", file, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &ParseError{File: file, Value: kind + " data", Reason: "cut short"}
	}
	return &ParseError{File: file, Value: kind + " data", Reason: err.Error()}
}
