// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"github.com/ulikunitz/xz/lzma"
)

// Limits on what is read, against files that unpack to more than a machine holds. A
// distribution's kernel unpacks to 30 to 130 MiB.
const (
	MaxFile     = 1 << 30   // bytes of a file; an ELF file with debugging information is not read whole
	MaxUnpacked = 256 << 20 // bytes of a kernel in memory
	MaxModule   = 128 << 20 // bytes of an unpacked module
)

// packing is one way to pack a kernel (scripts/Makefile.lib of Linux: cmd_gzip and
// its neighbours).
type packing struct {
	name, magic string
	open        func(io.Reader) (io.Reader, error)
}

// packings are all that kernels are packed with but LZO, whose reader nobody keeps.
var packings = []packing{
	{"gzip", "\x1f\x8b", openGzip},
	{"xz", "\xfd7zXZ\x00", openXZ},
	{"zstd", "\x28\xb5\x2f\xfd", openZstd},
	{"bzip2", "BZh", func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{"lz4", "\x02\x21\x4c\x18", openLZ4}, // the legacy frame: lz4 -l
	{"lzma", "\x5d\x00\x00", openLZMA},
}

const magicLZO = "\x89LZO\x00\x0d\x0a\x1a\x0a"

func openGzip(r io.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r)
	if err == nil {
		z.Multistream(false) // what follows is not the kernel's
	}
	return z, err
}

// openXZ reads x86's filter for branches too (BCJ), with which scripts/xz_wrap.sh
// packs x86 kernels.
func openXZ(r io.Reader) (io.Reader, error) {
	z, err := xz.NewReader(r, MaxModule)
	if err == nil {
		z.Multistream(false)
	}
	return z, err
}

func openZstd(r io.Reader) (io.Reader, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(MaxModule),
		zstd.WithDecoderMaxMemory(MaxUnpacked))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

func openLZMA(r io.Reader) (io.Reader, error) {
	return lzma.ReaderConfig{DictCap: 1 << 12}.NewReader(r)
}

// packedWith is how some bytes are packed, nil if they are not.
func packedWith(b []byte) *packing {
	for i := range packings {
		if bytes.HasPrefix(b, []byte(packings[i].magic)) {
			return &packings[i]
		}
	}
	return nil
}

// unpack reads the first packed stream of b, at most limit bytes. What follows it is
// left alone where something does: the kernel's build appends the size (cmd_size_append),
// and some payloads are padded.
func (p *packing) unpack(b []byte, limit int) ([]byte, error) {
	r, err := p.open(bytes.NewReader(b))
	if err != nil {
		return nil, fail(p.name+" data", "%s", cutShort(err))
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	var out bytes.Buffer
	out.Grow(min(sizeOf(b), limit) + bytes.MinRead)
	n, err := io.Copy(&out, io.LimitReader(r, int64(limit)+1))
	switch {
	case n > int64(limit):
		return nil, fail(p.name+" data", "unpacks to more than %d MiB", limit>>20)
	case err != nil && !p.whole(b, out.Len()):
		return nil, fail(p.name+" data", "%s", cutShort(err))
	}
	return out.Bytes(), nil
}

// sizeOf is how much room what is packed takes: the size that the build appends in four
// bytes, where that is likely.
func sizeOf(b []byte) int {
	const most = 20 // times smaller than it was
	if len(b) >= 4 {
		if n := int(le.Uint32(b[len(b)-4:])); n >= len(b) && n <= most*len(b) {
			return n
		}
	}
	return 6 * len(b)
}

// whole tells whether a stream was read to its end although the reader stumbled over
// what follows: the build appends the unpacked size in four bytes, which readers of
// zstd and lz4 take for another frame (cmd_zstd22_with_size, cmd_lz4_with_size).
func (p *packing) whole(b []byte, n int) bool {
	if p.name != "zstd" && p.name != "lz4" {
		return false
	}
	for at := len(b) - 4; at >= 0 && at >= len(b)-64; at-- {
		if n > 0 && int(le.Uint32(b[at:])) == n {
			return true
		}
	}
	return false
}
