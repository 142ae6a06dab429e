// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const addrsText = "ffffffff81002014 a\nffffffff81002064 b\nffffffffc0203014 m1 [ext4]\nffffffffc0203044 m2 " +
	"[ext4]\nffffffffc0100014 o [loop]\n"

var addrsRaws = []Raw{
	{0xffffffff81002014, "a", ""}, {0xffffffff81002064, "b", ""},
	{0xffffffffc0203014, "m1", "ext4"}, {0xffffffffc0203044, "m2", "ext4"},
	{0xffffffffc0100014, "o", "loop"},
}

func TestReadAddrs(t *testing.T) {
	upper := strings.ReplaceAll(strings.ReplaceAll(addrsText, "ffffffff", "0xFFFFFFFF"), " [", "\t[")
	for name, text := range map[string]string{
		"plain":           addrsText,
		"no last newline": strings.TrimSuffix(addrsText, "\n"),
		"CR LF":           strings.ReplaceAll(addrsText, "\n", "\r\n"),
		"BOM":             "\ufeff" + addrsText,
		"blank lines":     "\n  \n" + strings.ReplaceAll(addrsText, "\n", "\n\n"),
		"0x, capitals":    upper,
		"gzip":            gzipped(t, addrsText),
		"xz":              xzed(t, addrsText),
		"gzip of xz":      gzipped(t, xzed(t, addrsText)),
		"weak function":   strings.Replace(addrsText, "\n", "\nffffffff81002050 __ftrace_invalid_address___16\n", 1),
	} {
		t.Run(name, func(t *testing.T) {
			tab, err := readString(text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(addrsRaws, raws(tab)); d != "" {
				t.Error(d)
			}
			want := []Group{{0, 2}, {2, 4}, {4, 5}}
			if d := cmp.Diff(want, tab.Groups()); d != "" {
				t.Error(d)
			}
			if tab.Name() != "in" || tab.Arch() != "" {
				t.Errorf("name %q, arch %q", tab.Name(), tab.Arch())
			}
		})
	}
}

func TestTextErrors(t *testing.T) {
	gz := gzipped(t, addrsText)
	xzText := xzed(t, addrsText)
	bigDict := xzText[:16] + "\x20" + xzText[17:] // the property byte of LZMA2
	nest := addrsText
	for range 4 {
		nest = gzipped(t, nest)
	}
	for _, c := range []struct{ name, text, want string }{
		{"address", "1 a\n\nzz b\n", `in:3: address "zz": not hexadecimal`},
		{"long address", "11112222333344445 a\n", `in:1: address "11112222333344445": more than 64 bits`},
		{"zero", "0000000000000000 a\n0000000000000000 b\n",
			`in:1: address "0": no code is there; kptr_restrict hides addresses by printing zeros`},
		{"symbol", "1 a\n2\n", `in:2: symbol: missing`},
		{"module", "1 aa b\n", `in:1: field "b": a module in brackets is expected`},
		{"kallsyms", "1 T b\n",
			`in:1: field "b": a module in brackets is expected; this looks like /proc/kallsyms, which lists symbols, not records`},
		{"behind", "1 a [b] c\n", `in:1: field "c": nothing is expected behind the module`},
		{"control", "1 a\n2 \x01\n", `in: byte 0x01 at offset 6: not text, not ELF, not a kernel image, and not packed in a known way`},
		{"late control", "1 a\n" + strings.Repeat("\n", MaxLine) + "2 \x01\n",
			`in:65538: symbol "\x01": holds blanks or control characters`},
		{"twice", "1 a\n\n3 b\n2 c\n\n3 d\n", `in:6: address "0x3": already on line 3`},
		{"long line", "1 a\n2 " + strings.Repeat("x", MaxLine) + "\n", `in:2: line longer than 65536 bytes`},
		{"long value", strings.Repeat("x", 100) + " a\n", `in:1: address "` + strings.Repeat("x", quotedMax) +
			`...": not hexadecimal`},
		{"empty", "", `in: empty`},
		{"blank", "\n \n", `in: a list of functions without addresses; it needs the /proc/kallsyms of the same boot (kallsyms)`},
		{"only weak", "1 __ftrace_invalid_address___1\n", `in: holds no records`},
		{"junk", "\x00\x01\x02", `in: byte 0x00 at offset 0: not text, not ELF, not a kernel image, and not packed in a known way`},
		{"zstd", "\x28\xb5\x2f\xfd\x00\x00", `in: zstd data: cut short`},
		{"bzImage", "MZ\x00\x00",
			`in: not a kernel image: want vmlinuz, vmlinux, Image or zboot`},
		{"short gzip", gz[:len(gz)-9], `in: gzip data: cut short`},
		{"shorter gzip", gz[:4], `in: gzip data: cut short`},
		{"bad gzip", gz[:len(gz)-6] + "xxxxxx", `in: gzip data: gzip: invalid checksum`},
		{"short xz", xzText[:len(xzText)-20], `in: xz data: cut short or corrupt`},
		{"nested", nest, `in: packed more than 3 times`},
		{"dictionary", bigDict, `in: xz data: xz: data is corrupt`},
		{"CSV header", "address,symbol\n", `in:1: header "address,symbol": not address,symbol,module,group`},
		{"CSV short", csvHeader + "\n1,a,\n",
			`in:2: row "1,a,": 3 fields instead of the 4 fields address,symbol,module,group`},
		{"CSV long", csvHeader + "\n1,a,,,\n", `in:2: row "1,a,,,": more than the 4 fields address,symbol,module,group`},
		{"CSV quote", csvHeader + "\n1,\"a,,\n", `in:2: row "1,\"a,,": a quote is not closed, or not followed by a comma`},
		{"CSV address", csvHeader + "\n,a,,\n", `in:2: address "": missing`},
		{"CSV symbol", csvHeader + "\n1,,,\n", `in:2: symbol: missing`},
		{"CSV blank in symbol", csvHeader + "\n1,a b,,\n", `in:2: symbol "a b": holds blanks or control characters`},
		{"CSV blank in module", csvHeader + "\n1,a,b c,\n", `in:2: module "b c": holds blanks or control characters`},
		{"CSV group", csvHeader + "\n1,a,,-1\n", `in:2: group "-1": not a number of a group`},
		{"CSV order", csvHeader + "\n3,a,,0\n\n2,b,,0\n",
			`in:4: address "0x2": below 0x3 before it; addresses ascend inside a group`},
		{"CSV groups", csvHeader + "\n3,a,,1\n2,b,,0\n", `in:3: group 0: stands behind group 1; groups follow one another`},
		{"CSV half grouped", csvHeader + "\n3,a,,1\n2,b,,\n", `in:3: group "": some rows have a group and some have none`},
		{"CSV half grouped 2", csvHeader + "\n3,a,,\n2,b,,1\n", `in:3: group "1": some rows have a group and some have none`},
		{"CSV twice", "\n" + csvHeader + "\n3,a,,0\n\n3,b,,1\n", `in:5: address "0x3": already on line 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readString(c.text, Options{})
			wantError(t, err, c.want)
		})
	}
}

// TestCut cuts packed files everywhere: none is taken for complete.
func TestCut(t *testing.T) {
	for _, whole := range []string{gzipped(t, addrsText), xzed(t, addrsText)} {
		for i := 8; i < len(whole); i++ {
			if _, err := readString(whole[:i], Options{}); err == nil ||
				!strings.HasPrefix(err.Error(), "in: "+packing(whole)+" data: cut short") {
				t.Errorf("%d of %d bytes: %v", i, len(whole), err)
			}
		}
	}
}

func packing(s string) string {
	if strings.HasPrefix(s, "\x1f\x8b") {
		return "gzip"
	}
	return "xz"
}

func TestReadCSV(t *testing.T) {
	text := csvHeader + "\n0x10,\"operator(),\"\"q\"\"\",,2\r\n18,b,\"m\",2\n8,c,,5\n"
	tab, err := readString(text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Raw{{0x10, `operator(),"q"`, ""}, {0x18, "b", "m"}, {8, "c", ""}}
	if d := cmp.Diff(want, raws(tab)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Group{{0, 2}, {2, 3}}, tab.Groups()); d != "" {
		t.Error(d)
	}
	var out strings.Builder
	if err := WriteCSV(&out, tab); err != nil {
		t.Fatal(err)
	}
	wantText := csvHeader + "\n0x10,\"operator(),\"\"q\"\"\",,0\n0x18,b,m,0\n0x8,c,,1\n"
	if d := cmp.Diff(wantText, out.String()); d != "" {
		t.Error(d)
	}
	// Without groups the kernel's rule makes them: a unit per module.
	tab, err = readString(csvHeader+"\n1,a,,\n2,b,,\n3,c,m,\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Group{{0, 2}, {2, 3}}, tab.Groups()); d != "" {
		t.Error(d)
	}
}

// failWriter fails after some bytes.
type failWriter struct{ left int }

var errFull = errors.New("disk full")

func (w *failWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	tab := mustOpen(t, "gen:n=10000", Options{})
	for _, left := range []int{0, 100_000} {
		if err := WriteCSV(&failWriter{left}, tab); !errors.Is(err, errFull) {
			t.Errorf("WriteCSV: %v", err)
		}
		if err := WriteAddrs(&failWriter{left}, tab); !errors.Is(err, errFull) {
			t.Errorf("WriteAddrs: %v", err)
		}
	}
}

const kallsymsText = `0000000000000000 A fixed_percpu_data
ffffffff81000000 T first
ffffffff81000300 t twin
ffffffff81000180 t mid
ffffffff81000200 D data
ffffffff81000100 t twin
ffffffff81000400 W weak
ffffffff81000500 t twin
ffffffffc0000100 t twin	[ext4]
ffffffffc0000200 d data	[ext4]
ffffffffc0000000 t mine	[ext4]
`

func TestReadFunctions(t *testing.T) {
	path := tempFile(t, "k", gzipped(t, kallsymsText))
	for _, c := range []struct {
		name, text, arch string
		want             []Addr // less the common front
	}{
		{"all", "first\ntwin\ntwin\nweak\ntwin\nmine [ext4]\ntwin [ext4]\n", "", []Addr{0, 0x100, 0x300, 0x400, 0x500,
			0x3f000000, 0x3f000100}},
		{"offset", "\nfirst\ntwin\r\n__ftrace_invalid_address___1\n", "arm64", []Addr{4, 0x104}},
		{"no offset", "first\n", "x86_64", []Addr{0}},
		{"kth, not ascending", "weak\ntwin\ntwin\ntwin\n", "", []Addr{0x400, 0x100, 0x300, 0x500}},
		{"one of three, late", "weak\ntwin\n", "", []Addr{0x400, 0x500}},
		{"two of three, late", "mid\ntwin\nweak\ntwin\n", "", []Addr{0x180, 0x300, 0x400, 0x500}},
		{"two of three, not ascending", "weak\ntwin\ntwin\n", "", []Addr{0x400, 0x100, 0x300}},
		{"weak function that lost", "first\ntwin\ntwin\ntwin\ntwin\nweak\n", "arm64", []Addr{4, 0x104, 0x144, 0x304, 0x504,
			0x404}},
		{"two that lost", "first\nfirst\nfirst\n", "arm64", []Addr{4, 0x54, 0xa4}},
		{"behind the last symbol", "first\ntwin [ext4]\ntwin [ext4]\n", "", []Addr{0, 0x3f000100, 0x3f000110}},
		{"one of three, early", "first\ntwin\nweak\n", "", []Addr{0, 0x100, 0x400}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab, err := readString(c.text, Options{Kallsyms: path, Arch: c.arch})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]Addr, tab.Len())
			for i := range got {
				got[i] = tab.Addr(i) - 0xffffffff81000000
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFunctionsErrors(t *testing.T) {
	for _, c := range []struct{ name, text, kallsyms, want string }{
		{"unknown", "first\nzz\n", kallsymsText, `in:2: symbol "zz": not among the text symbols of the core kernel in FILE`},
		{"data", "data\n", kallsymsText, `in:1: symbol "data": not among the text symbols of the core kernel in FILE`},
		{"wrong module", "mine [xfs]\n", kallsymsText,
			`in:1: symbol "mine": not among the text symbols of module "xfs" in FILE`},
		{"too many", "first\n\nweak\nfirst\n", kallsymsText,
			`in:4: symbol "first": listed more often than FILE has text symbols of that name, 1, and not one behind the other`},
		{"no room", "a\na\n\nb\n", "1000 T a\n1018 T b\n",
			`in:2: symbol "a": listed more often than FILE has text symbols of that name, 1, and there is no room for another function before the next symbol`},
		{"extra", "first x\n", kallsymsText, `in:1: address "first": not hexadecimal`},
		{"extra later", "first\nfirst x\n", kallsymsText, `in:2: field "x": a module in brackets is expected`},
		{"hidden", "first\n", "0000000000000000 T first\n0000000000000000 t b\n",
			`FILE: all addresses are zero: kptr_restrict hides them; read it as root with kernel.kptr_restrict at 0 or 1`},
		{"no text", "first\n", "1 D first\n",
			`FILE: holds no text symbols; lines like "ffffffff81000000 T _text" are expected`},
		{"kallsyms address", "first\n", "1 T a\nzz T first\n", `FILE:2: address "zz": not hexadecimal`},
		{"kallsyms type", "first\n", "1 first\n", `FILE:1: type "first": not one letter as in /proc/kallsyms`},
		{"kallsyms symbol", "first\n", "1 T\n", `FILE:1: symbol: missing`},
		{"kallsyms module", "first\n", "1 T a b\n", `FILE:1: field "b": a module in brackets is expected`},
		{"kallsyms short", "first\n", gzipped(t, kallsymsText)[:40], `FILE: gzip data: cut short`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := tempFile(t, "k", c.kallsyms)
			_, err := readString(c.text, Options{Kallsyms: path})
			wantError(t, err, strings.ReplaceAll(c.want, "FILE", path))
		})
	}
	if _, err := readString("a\n", Options{Kallsyms: "/nonexistent"}); err == nil || !strings.Contains(err.Error(),
		"/nonexistent") {
		t.Errorf("missing kallsyms: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		src  string
		opt  Options
		want string
	}{
		{"x86-6.12", Options{},
			`records "x86-6.12": no such file and no such table; did you mean x86_64-6.12? built-in tables are x86_64-6.12, x86_64-6.12-modules, arm64-6.12, riscv64-7.2, generated ones start with gen: (open x86-6.12: no such file or directory)`},
		{"/zzzz/zzzzz/zzzzzz", Options{},
			`records "/zzzz/zzzzz/zzzzzz": no such file and no such table; built-in tables are x86_64-6.12, x86_64-6.12-modules, arm64-6.12, riscv64-7.2, generated ones start with gen: (open /zzzz/zzzzz/zzzzzz: no such file or directory)`},
		{dir, Options{}, dir + ": a directory, not a file of records"},
		{"arm64-6.12", Options{Arch: "arm"}, `architecture "arm": not one of x86_64, arm64, riscv64`},
	} {
		_, err := Open(context.Background(), c.src, c.opt)
		wantError(t, err, c.want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	path := tempFile(t, "a", addrsText)
	for _, src := range []string{path, tempFile(t, "a.gz", gzipped(t, addrsText)), "gen:n=2097152"} {
		if _, err := Open(ctx, src, Options{}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), src) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

func TestNew(t *testing.T) {
	recs := []Raw{{8, "a", ""}, {16, "b", ""}, {4, "c", "m"}}
	tab, err := New("name", "arm64", recs, Group{0, 1}, Group{1, 2}, Group{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	checkTable(t, tab)
	if tab.Name() != "name" || tab.Arch() != "arm64" || len(tab.Groups()) != 3 {
		t.Errorf("%q %q %v", tab.Name(), tab.Arch(), tab.Groups())
	}
	if got, want := fmt.Sprint(tab.Describe(0), ", ", tab.Describe(2)), "0x8 a, 0x4 c [m]"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
	if tab, err = New("name", "", recs); err != nil || len(tab.Groups()) != 2 {
		t.Errorf("by the kernel's rule: %v, %v", tab.Groups(), err)
	}
	for _, c := range []struct {
		recs   []Raw
		groups []Group
		want   string
	}{
		{[]Raw{{8, "a", ""}, {16, "b", ""}, {8, "c", ""}}, nil, `x: address "0x8": the same on record 0 and record 2`},
		{[]Raw{{8, "", ""}}, nil, "x: symbol: missing"},
		{recs, []Group{{0, 3}}, "x: group 0: record 2 lies below record 1; records ascend inside a group"},
		{recs, []Group{{0, 1}, {2, 3}}, "x: group 1 of records 2 to 3: must start at record 1, hold some and end by 3"},
		{recs, []Group{{0, 2}}, "x: groups: end at record 2 of 3"},
		{recs, []Group{{0, 2}, {2, 4}}, "x: group 1 of records 2 to 4: must start at record 2, hold some and end by 3"},
	} {
		_, err := New("x", "", c.recs, c.groups...)
		wantError(t, err, c.want)
	}
}
