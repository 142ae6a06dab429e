// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

// kallsyms finds the text symbols of a running kernel by name.
type kallsyms struct {
	file   string
	offset Addr // added to each symbol's address
	texts  map[symbolKey]*candidates
	all    []Addr // of all text symbols, ascending

	before symbolKey // of the record before
	last   Addr      // its symbol's address, once resolved
	behind int       // records without a symbol of their own since that one
}

type symbolKey struct{ symbol, module string }

// candidates are the text symbols of one name in one module, ascending.
type candidates struct {
	addrs  []Addr
	listed int // records of that name and module
	again  int // of them, those right behind another one
	taken  int // of them have an address,
	used   int // which is below addrs[used]
	placed int // unnamed records that have one
}

// unnamed is how many of the records have no symbol of their own: the functions
// that they are of were weak and lost to another one, and the kernel lists them
// by the symbol before them. Kernels that can tell such records apart list them as
// invalid instead; those of arm64 could not in Linux 6.1 (FTRACE_MCOUNT_MAX_OFFSET,
// include/linux/ftrace.h).
func (c *candidates) unnamed() int { return max(c.listed-len(c.addrs), 0) }

// readKallsyms reads lines of address, type, name and module in brackets
// (kernel/kallsyms.c, s_show), and keeps text symbols: t and T, and weak
// functions, w and W.
func readKallsyms(ctx context.Context, file string, r io.Reader) (*kallsyms, error) {
	in, err := unpacked(ctx, file, r)
	if err != nil {
		return nil, err
	}
	k := &kallsyms{file: file, texts: map[symbolKey]*candidates{}}
	l := &lines{ctx: ctx, file: file, r: in}
	zeros := 0
	err = l.each(func(line []byte) error {
		zero, err := k.addLine(l.n, line)
		if zero {
			zeros++
		}
		return err
	})
	if err != nil {
		return nil, readError(file, "", err)
	}
	switch {
	case len(k.texts) == 0 && zeros > 0:
		return nil, &ParseError{File: file,
			Reason: "all addresses are zero: kptr_restrict hides them; read it as root with kernel.kptr_restrict at 0 or 1"}
	case len(k.texts) == 0:
		return nil, &ParseError{File: file,
			Reason: "holds no text symbols; lines like \"ffffffff81000000 T _text\" are expected"}
	}
	for _, c := range k.texts {
		slices.Sort(c.addrs)
		k.all = append(k.all, c.addrs...)
	}
	slices.Sort(k.all)
	return k, nil
}

// addLine takes one line in. It tells whether the line is a text symbol whose
// address is hidden.
func (k *kallsyms) addLine(n int, line []byte) (zero bool, err error) {
	fail := func(value, reason string) error {
		return &ParseError{File: k.file, Line: n, Value: value, Reason: reason}
	}
	addr, rest := field(line)
	if len(addr) == 0 {
		return false, nil
	}
	a, reason := parseHex(addr)
	if reason != "" {
		return false, fail(quoted("address", addr), reason)
	}
	kind, rest := field(rest)
	if len(kind) != 1 {
		return false, fail(quoted("type", kind), "not one letter as in /proc/kallsyms")
	}
	name, rest := field(rest)
	if len(name) == 0 {
		return false, fail("symbol", "missing")
	}
	mod, _ := field(rest)
	module, ok := bracketed(mod)
	if !ok && len(mod) > 0 {
		return false, fail(quoted("field", mod), "a module in brackets is expected")
	}
	if !strings.Contains("tTwW", string(kind)) {
		return false, nil
	}
	if a == 0 {
		return true, nil
	}
	key := symbolKey{string(name), string(module)}
	c := k.texts[key]
	if c == nil {
		c = &candidates{}
		k.texts[key] = c
	}
	c.addrs = append(c.addrs, a)
	return false, nil
}

// list notes that the list holds a record of that name. Reason says why it can
// have no address, "" if it can.
func (k *kallsyms) list(symbol, module []byte) (reason string) {
	c := k.texts[symbolKey{string(symbol), string(module)}]
	if c == nil {
		in := "the core kernel"
		if len(module) > 0 {
			in = quoted("module", module)
		}
		return fmt.Sprintf("not among the text symbols of %s in %s", in, k.file)
	}
	c.listed++
	if key := (symbolKey{string(symbol), string(module)}); key == k.before {
		c.again++
	} else {
		k.before = key
	}
	if c.unnamed() > c.again {
		return fmt.Sprintf("listed more often than %s has text symbols of that name, %d, and not one behind the other",
			k.file, len(c.addrs))
	}
	return ""
}

// resolve gives all records of the list their addresses.
func (k *kallsyms) resolve(b *builder) error {
	k.before = symbolKey{}
	for i := range b.addrs {
		key := symbolKey{b.names.at(i), b.mods.at(i)}
		c := k.texts[key]
		if key == k.before && c.placed < c.unnamed() {
			c.placed++
			k.behind++
			var ok bool
			if b.addrs[i], ok = k.unnamed(c.unnamed()); !ok {
				b.line = b.lineOf(i)
				return b.fail(
					quoted("symbol", key.symbol),
					fmt.Sprintf(
						"listed more often than %s has text symbols of that name, %d, and there is no room for another function "+
							"before the next symbol",
						k.file,
						len(c.addrs),
					),
				)
			}
			continue
		}
		k.last, k.behind = c.next(key.module == k.before.module, k.last), 0
		k.before, b.addrs[i] = key, k.last+k.offset
	}
	return nil
}

// next is the symbol of the next record.
//
// The k-th record of a name and module is its k-th text symbol, ascending. When
// some functions of a repeated name have no record (notrace), that a load unit's
// records ascend helps: symbols below the record before are passed over, as long
// as enough are left.
func (c *candidates) next(sameUnit bool, last Addr) Addr {
	pick := c.used
	if spare := len(c.addrs) - c.used - (c.listed - c.taken); spare > 0 && sameUnit {
		room := c.addrs[c.used : c.used+spare+1]
		above := sort.Search(len(room), func(i int) bool { return room[i] > last })
		if above < len(room) {
			pick += above
		}
	}
	c.used, c.taken = pick+1, c.taken+1
	return c.addrs[pick]
}

// unnamed places a record that has no symbol, one of so many: somewhere between
// the last symbol and the next one, where functions begin.
func (k *kallsyms) unnamed(of int) (Addr, bool) {
	const align = 8
	step := Addr(2 * align) // behind the last symbol of all
	if i := sort.Search(len(k.all), func(i int) bool { return k.all[i] > k.last }); i < len(k.all) {
		step = (k.all[i] - k.last) / Addr(of+1) &^ (align - 1)
	}
	return k.last + Addr(k.behind)*step + k.offset, step >= 2*align
}
