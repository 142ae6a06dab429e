// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

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
	syms, err := openKallsyms(l.ctx, opt.Kallsyms)
	if err != nil {
		return nil, err
	}
	syms.offset = entryOffset(opt.Arch)
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

// entryOffset is how far behind its symbol a record lies when all that is known
// is the architecture: behind the first instruction of the entry on arm64
// (mov x9, lr) and riscv64 (auipc), where landing pads are not compiled in.
// On x86_64 it is 0 or, behind endbr64, 4, differing from function to function.
func entryOffset(arch string) Addr {
	switch arch {
	case "arm64", "riscv64":
		return 4
	}
	return 0
}

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
