// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/records/unpack"
)

// MaxUnpacked bounds what one packed text may become, in bytes; it is read as a stream.
const MaxUnpacked = 8 << 30

var (
	magicELF = []byte{0x7f, 'E', 'L', 'F'}
	utf8BOM  = []byte{0xef, 0xbb, 0xbf}
)

// unpacked is input whose packing has been peeled off, however often it is wrapped. The
// content decides, not the name. The reader holds at least the first MaxLine bytes.
func unpacked(ctx context.Context, file string, r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, MaxLine)
	for range unpack.Layers {
		head, err := in.Peek(8)
		if err != nil && err != io.EOF {
			return nil, readError(file, "", err)
		}
		p := unpack.Of(head)
		if p == nil {
			return in, nil
		}
		inner, err := p.Open(in)
		if err != nil {
			return nil, readError(file, p.Name, err)
		}
		in = bufio.NewReaderSize(&layer{ctx: ctx, file: file, kind: p.Name, r: inner}, MaxLine)
	}
	return nil, &ParseError{File: file, Reason: fmt.Sprintf("packed more than %d times", unpack.Layers-1)}
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
	}
	return &ParseError{File: file, Value: kind + " data", Reason: unpack.Reason(err)}
}
