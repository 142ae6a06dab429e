// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Options are what some sources need besides themselves. The zero value is
// right for all others.
type Options struct {
	// Kallsyms is a file in the format of /proc/kallsyms, maybe packed, from
	// the same boot as the list. Needed for available_filter_functions,
	// which has no addresses; other formats ignore it.
	Kallsyms string

	// Arch is the architecture that the source is expected to be for:
	// x86_64, arm64, riscv64, or "" for any. An ELF file of another one is
	// refused. With Kallsyms it tells how far behind its symbol a record
	// lies: 4 bytes on arm64 and riscv64, where the patchable instruction is
	// the second one, and 0 on x86_64 and where the architecture is not known.
	Arch string
}

// Arches are the architectures that records are known for.
var Arches = []string{"x86_64", "arm64", "riscv64"}

func (o Options) validate() error {
	if o.Arch != "" && !slices.Contains(Arches, o.Arch) {
		return fmt.Errorf("architecture %q: not one of %s", o.Arch, strings.Join(Arches, ", "))
	}
	return nil
}

// Open makes a table from what src names:
//
//   - a built-in table (Builtins); a file of that name needs ./ in front
//   - gen:KEY=VALUE,... a generated table (see the package's documentation)
//   - a file; its content tells the format, see Read
//
// A malformed source fails with a *ParseError. A table that declares another architecture than
// Options.Arch is refused.
func Open(ctx context.Context, src string, opt Options) (*Table, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	t, err := open(ctx, src, opt)
	if err == nil && opt.Arch != "" && t.arch != "" && t.arch != opt.Arch {
		return nil, fmt.Errorf("records %s are of %s, not of %s", src, t.arch, opt.Arch)
	}
	return t, err
}

func open(ctx context.Context, src string, opt Options) (*Table, error) {
	if b, ok := FindBuiltin(src); ok {
		return b.load()
	}
	if spec, ok := strings.CutPrefix(src, genPrefix); ok {
		return generate(ctx, src, spec)
	}
	f, err := inputs.Open(src)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknownSource(src, err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, &ParseError{File: src, Reason: "a directory, not a file of records"}
	}
	// A file that is not packed is read in place: with its debug information a vmlinux is hundreds
	// of megabytes.
	head := make([]byte, vmlinux.HeadBytes)
	if n, _ := f.ReadAt(head, 0); st.Mode().IsRegular() && vmlinux.Looks(head[:n]) {
		return readLinked(ctx, src, f, st.Size(), opt)
	}
	return Read(ctx, src, f, opt)
}

// unknownSource explains that src is no source, and suggests the nearest name.
func unknownSource(src string, err error) error {
	names := BuiltinNames()
	hint := ""
	if near := spelling.Nearest(src, names); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near)
	}
	return fmt.Errorf(
		"records %q: no such file and no such table; %sbuilt-in tables are %s, generated ones start with %s (%w)",
		src,
		hint,
		strings.Join(names, ", "),
		genPrefix,
		err,
	)
}

// Read makes a table from a stream. The content tells what it is, possibly
// packed with gzip, xz, zstd, bzip2, lz4 or lzma:
//
//   - a kernel: vmlinuz, Image, zboot, vmlinux. Its records are those that it has after boot
//   - another ELF file: a module, any program with patchable entries
//   - CSV with the header address,symbol,module,group
//   - the kernel's available_filter_functions_addrs: address symbol [module]
//   - the kernel's available_filter_functions: symbol [module], needs Options.Kallsyms
//
// file is what errors and the table call it. Text may start with a byte order
// mark and end its lines with CR LF; blank lines are passed over.
func Read(ctx context.Context, file string, r io.Reader, opt Options) (*Table, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	in, err := unpacked(ctx, file, r)
	if err != nil {
		return nil, err
	}
	head, err := in.Peek(MaxLine)
	if err != nil && err != io.EOF {
		return nil, readError(file, "", err)
	}
	if vmlinux.Looks(head) {
		data, err := unpack.All(in, 0, vmlinux.MaxUnpacked) // it does not lie in a file of its own
		if err != nil {
			return nil, readError(file, "packed", err)
		}
		return readLinked(ctx, file, bytes.NewReader(data), int64(len(data)), opt)
	}
	if err := checkText(file, head); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, utf8BOM) {
		head = head[len(utf8BOM):]
		if _, err := in.Discard(len(utf8BOM)); err != nil {
			return nil, err
		}
	}
	l := &lines{ctx: ctx, file: file, r: in}
	switch detect(head) {
	case formatCSV:
		return readCSV(l)
	case formatAddrs:
		return newBuilder(file).readAddrs(l, "")
	default:
		return readFunctions(l, opt)
	}
}

// checkText tells text from anything else by its first bytes.
func checkText(file string, head []byte) error {
	if len(head) == 0 {
		return &ParseError{File: file, Reason: "empty"}
	}
	for i, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return &ParseError{File: file, Value: fmt.Sprintf("byte 0x%02x at offset %d", c, i),
				Reason: "not text, not ELF, not a kernel image, and not packed in a known way"}
		}
	}
	return nil
}

type format uint8

const (
	formatAddrs format = iota
	formatFunctions
	formatCSV
)

// detect tells the text formats apart by the first line that is not blank.
func detect(head []byte) format {
	head = bytes.TrimLeft(head, " \t\r\n")
	first, _, _ := bytes.Cut(head, []byte("\n"))
	first = bytes.TrimSuffix(first, []byte("\r"))
	if bytes.IndexByte(first, ',') >= 0 {
		return formatCSV
	}
	_, rest := field(first)
	second, _ := field(rest)
	if _, isModule := bracketed(second); len(second) == 0 || isModule {
		return formatFunctions
	}
	return formatAddrs
}

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
