// SPDX-License-Identifier: Apache-2.0

// Package unpack unpacks files of kernels: gzip, xz, zstd, bzip2, lz4 and lzma
// (scripts/Makefile.lib of Linux: cmd_gzip and its neighbours). The first bytes of a file
// tell which. Memory is bounded: no dictionary is larger than [Window], and
// [Packing.Bytes] holds little more than its result.
package unpack

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Window is the largest dictionary that an unpacker may ask for, in bytes: that of the
// kernel's build (scripts/xz_wrap.sh and cmd_zstd22 of Linux 6.12).
const Window = 128 << 20

// Layers is how many packings and forms may be wrapped around each other: gzip around
// zboot around gzip around an Image is the most that is built.
const Layers = 4

// Packing is one way to pack.
type Packing struct {
	Name  string
	magic string
	open  func(io.Reader) (io.Reader, error)
	into  func(b, buffer []byte) ([]byte, error) // without a history beside the buffer; nil for a packing that needs none
}

var packings = []*Packing{
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }, nil},
	// x86's filter for branches (BCJ), with which scripts/xz_wrap.sh packs, is read too.
	{"xz", "\xfd7zXZ\x00", func(r io.Reader) (io.Reader, error) { return xz.NewReader(r, Window) }, nil},
	{"zstd", "\x28\xb5\x2f\xfd", openZstd, zstdInto},
	{"bzip2", "BZh", func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }, nil},
	{"lz4", "\x02\x21\x4c\x18", openLZ4, nil}, // the legacy frame: lz4 -l, as the kernel's build makes it
	{"lz4", "\x04\x22\x4d\x18", openLZ4, nil}, // the standard frame
	{"lzma", "\x5d\x00\x00", func(r io.Reader) (io.Reader, error) { return lzma.ReaderConfig{DictCap: Window}.NewReader(r) }, nil},
}

func openZstd(r io.Reader) (io.Reader, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(Window), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// zstdInto unpacks into a buffer of the data's size. The size that the build appends is no frame.
func zstdInto(b, buffer []byte) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(Window),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out, err := z.DecodeAll(b, buffer)
	if errors.Is(err, zstd.ErrMagicMismatch) {
		err = nil
	}
	return out, err
}

// Of is how a file is packed that begins with these bytes, nil if it is not.
func Of(head []byte) *Packing {
	return spelling.First(packings, func(p *Packing) bool { return bytes.HasPrefix(head, []byte(p.magic)) })
}

// Open reads the unpacked content of r. The reader may have to be closed.
func (p *Packing) Open(r io.Reader) (io.Reader, error) { return p.open(r) }

// Bytes unpacks the first packed stream of b, at most limit bytes. It leaves alone what
// follows the stream: the kernel's build appends the size (cmd_size_append), and some
// payloads are padded. Errors are *[inputs.ParseError] without a file's name.
func (p *Packing) Bytes(b []byte, limit int) ([]byte, error) {
	likely, said := likelySize(b)
	if said && likely <= limit && p.into != nil {
		if out, err := p.into(b, make([]byte, 0, likely)); err == nil && len(out) == likely {
			return out, nil
		}
	}
	r, err := p.open(bytes.NewReader(b))
	if err != nil {
		return nil, p.fail(err)
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	if one, ok := r.(interface{ Multistream(bool) }); ok {
		one.Multistream(false)
	}
	out, err := All(r, min(likely, limit), limit)
	var much tooMuch
	if err != nil && !errors.As(err, &much) && whole(b, len(out)) {
		err = nil
	}
	if err != nil {
		return nil, p.fail(err)
	}
	return out, nil
}

func (p *Packing) fail(err error) error {
	return &inputs.ParseError{Value: p.Name + " data", Reason: Reason(err)}
}

// Reason words what is wrong with packed data.
func Reason(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "cut short"
	case errors.Is(err, xz.ErrBuf):
		return "cut short or corrupt"
	}
	return err.Error()
}

// likelySize is how much room what is packed takes: the size that the build appends in
// four bytes, where that is likely and so said.
func likelySize(b []byte) (n int, said bool) {
	const most = 20 // times smaller than it was
	if len(b) >= 4 {
		if n := int(binary.LittleEndian.Uint32(b[len(b)-4:])); n >= len(b) && n <= most*len(b) {
			return n, true
		}
	}
	return 6 * len(b), false
}

// whole tells whether a stream was read to its end although the reader stumbled over
// what follows: the build appends the unpacked size in four bytes, which some readers
// take for another frame (cmd_zstd22_with_size, cmd_lz4_with_size).
func whole(b []byte, n int) bool {
	for at := len(b) - 4; at >= 0 && at >= len(b)-64; at-- {
		if n > 0 && int(binary.LittleEndian.Uint32(b[at:])) == n {
			return true
		}
	}
	return false
}

// chunk is how many bytes are unpacked at a time behind the likely size.
const chunk = 8 << 20

// All reads r to its end, at most limit bytes. It expects about likely bytes. A buffer that doubles
// would hold up to three times the data while it grows; chunks hold it once, and are put together
// at the end if the first one, of the likely size, did not take it all.
func All(r io.Reader, likely, limit int) ([]byte, error) {
	var done [][]byte
	now, n := make([]byte, 0, max(likely, 512)+1), 0
	for {
		if len(now) == cap(now) {
			done, now = append(done, now), make([]byte, 0, chunk)
		}
		k, err := r.Read(now[len(now):cap(now)])
		now, n = now[:len(now)+k], n+k
		switch {
		case n > limit:
			return nil, tooMuch(limit)
		case err == nil:
			continue
		case len(done) > 0:
			now = slices.Concat(append(done, now)...)
		}
		if err == io.EOF {
			err = nil
		}
		return now, err
	}
}

// tooMuch is a limit in bytes that what is unpacked exceeds.
type tooMuch int

func (t tooMuch) Error() string { return fmt.Sprintf("unpacks to more than %d MiB", int(t)>>20) }
