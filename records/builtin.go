// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
)

//go:embed data/*.zst
var builtinData embed.FS

// Builtin is a table that comes with the program: the records of a real kernel
// after boot, in the order in which it walks them.
type Builtin struct {
	Name    string
	Arch    string
	Kernel  string // version
	Records int
	Modules int // modules that were loaded

	// CorePages is how many pages the kernel had taken for the core kernel's
	// records at boot, as it reports them. It then removed the records of init
	// functions from the groups, but kept the groups: so there are more pages
	// than the records need.
	CorePages int
	About     string // what is special about it
}

// The kernels are Debian's, with available_filter_functions_addrs read after
// boot.
var builtins = []Builtin{
	{Name: "x86_64-6.12", Arch: "x86_64", Kernel: "6.12", Records: 42757, CorePages: 176,
		About: "core kernel only"},
	{Name: "x86_64-6.12-modules", Arch: "x86_64", Kernel: "6.12", Records: 44444, Modules: 12, CorePages: 176,
		About: "modules loaded, unloaded and loaded again: their addresses do not all ascend"},
	{Name: "arm64-6.12", Arch: "arm64", Kernel: "6.12", Records: 48048, CorePages: 192,
		About: "core kernel only"},
	{Name: "riscv64-7.2", Arch: "riscv64", Kernel: "7.2", Records: 41845, CorePages: 168,
		About: "core kernel only"},
}

// Builtins are the built-in tables. The slice is the caller's.
func Builtins() []Builtin { return append([]Builtin(nil), builtins...) }

// BuiltinNames are the names of the built-in tables.
func BuiltinNames() []string {
	return spelling.Each(builtins, func(b Builtin) string { return b.Name })
}

// DefaultFor is the name of the built-in table for an architecture, "" if there
// is none.
func DefaultFor(arch string) string {
	return spelling.First(builtins, func(b Builtin) bool { return b.Arch == arch }).Name
}

// FindBuiltin is the built-in table of a name, if there is one.
func FindBuiltin(name string) (Builtin, bool) {
	if i := slices.Index(BuiltinNames(), name); i >= 0 {
		return builtins[i], true
	}
	return Builtin{}, false
}

// load reads the kernel's list. The records fill the core kernel's groups in order;
// where exactly removing the init records left the borders between groups is not
// recorded.
func (b Builtin) load() (*Table, error) {
	ctx := context.Background() // it takes milliseconds, and nothing is cut short by it
	f, err := builtinData.Open("data/" + b.Name + ".zst")
	if err != nil {
		return nil, fmt.Errorf("built-in table %s: %w", b.Name, err)
	}
	defer f.Close()
	in, err := unpacked(ctx, b.Name, f)
	if err != nil {
		return nil, err
	}
	build := newBuilder(b.Name)
	build.corePages = b.CorePages
	return build.readAddrs(&lines{ctx: ctx, file: b.Name, r: in}, b.Arch)
}

// invalidPrefix starts the name under which the kernel lists the record of a
// weak function that was overridden: it is disabled and never patched
// (FTRACE_INVALID_FUNCTION, include/linux/ftrace.h, Linux 6.0 and later).
var invalidPrefix = []byte("__ftrace_invalid_address__")

// readAddrs reads the kernel's available_filter_functions_addrs (Linux 6.5 and
// later): address, symbol, module in brackets. Records of overridden weak
// functions are left out.
func (b *builder) readAddrs(l *lines, arch string) (*Table, error) {
	err := b.each(l, func(line []byte) error {
		addr, rest := field(line)
		a, reason := parseHex(addr)
		if reason != "" {
			return b.fail(quoted("address", addr), reason)
		}
		symbol, rest := field(rest)
		module, err := b.moduleField(symbol, rest)
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(symbol, invalidPrefix):
			b.skip()
			return nil
		}
		return b.add(a, symbol, module)
	})
	if err != nil {
		return nil, err
	}
	return b.finishSome(arch)
}

// moduleField reads the end of a line behind the symbol: nothing, or a module
// in brackets.
func (b *builder) moduleField(symbol, rest []byte) ([]byte, error) {
	f, rest := field(rest)
	if len(f) == 0 {
		return nil, nil
	}
	module, ok := bracketed(f)
	if !ok {
		if len(symbol) == 1 {
			return nil, b.fail(quoted("field", f),
				"a module in brackets is expected; this looks like /proc/kallsyms, which lists symbols, not records")
		}
		return nil, b.fail(quoted("field", f), "a module in brackets is expected")
	}
	if extra, _ := field(rest); len(extra) > 0 {
		return nil, b.fail(quoted("field", extra), "nothing is expected behind the module")
	}
	return module, nil
}

// readFunctions reads the kernel's available_filter_functions: symbol, module in
// brackets. Addresses come from opt.Kallsyms; records of overridden weak
// functions, which have no symbol, are left out.
func readFunctions(l *lines, opt Options) (*Table, error) {
	if opt.Kallsyms == "" {
		return nil, &ParseError{File: l.file,
			Reason: "a list of functions without addresses; it needs the /proc/kallsyms of the same boot (kallsyms)"}
	}
	f, err := inputs.Open(opt.Kallsyms)
	if err != nil {
		return nil, fmt.Errorf("kallsyms: %w", err)
	}
	defer f.Close()
	syms, err := readKallsyms(l.ctx, opt.Kallsyms, f)
	if err != nil {
		return nil, err
	}
	// A record lies behind the first instruction of the entry on arm64 (mov x9, lr) and riscv64 (auipc), where landing
	// pads are not compiled in. On x86_64 it lies 0 or, behind endbr64, 4 bytes behind its symbol, differing from function
	// to function.
	if opt.Arch == "arm64" || opt.Arch == "riscv64" {
		syms.offset = 4
	}
	b := newBuilder(l.file)
	err = b.each(l, func(line []byte) error {
		symbol, rest := field(line)
		if bytes.HasPrefix(symbol, invalidPrefix) {
			b.skip()
			return nil
		}
		module, err := b.moduleField(nil, rest)
		if err != nil {
			return err
		}
		if reason := syms.list(symbol, module); reason != "" {
			return b.fail(quoted("symbol", symbol), reason)
		}
		return b.add(unresolved, symbol, module)
	})
	if err == nil {
		err = syms.resolve(b)
	}
	if err != nil {
		return nil, err
	}
	return b.finishSome("")
}

// unresolved stands for an address that only the whole list tells.
const unresolved Addr = 1

// WriteAddrs writes the table in the format of available_filter_functions_addrs,
// which does not tell groups.
func WriteAddrs(w io.Writer, t *Table) error {
	bw := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for i := range t.Len() {
		line = strconv.AppendUint(line[:0], uint64(t.Addr(i)), 16)
		line = append(line, ' ')
		line = append(line, t.Symbol(i)...)
		if m := t.Module(i); m != "" {
			line = append(line, " ["...)
			line = append(line, m...)
			line = append(line, ']')
		}
		line = append(line, '\n')
		if _, err := bw.Write(line); err != nil {
			return fmt.Errorf("write addresses: %w", err)
		}
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	return nil
}
