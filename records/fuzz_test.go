// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// fuzzText runs a text, as it is and packed, through Read.
func fuzzText(t *testing.T, text string, opt Options) {
	tab, err := readString(text, opt)
	checkParsed(t, tab, err)
	if err != nil {
		return
	}
	var csv strings.Builder
	if err := WriteCSV(&csv, tab); err != nil {
		t.Fatal(err)
	}
	back, err := readString(csv.String(), Options{})
	if err != nil {
		t.Fatalf("CSV of it is not understood: %v", err)
	}
	for i := range tab.Len() {
		if back.Describe(i) != tab.Describe(i) {
			t.Fatalf("record %d: %s became %s", i, tab.Describe(i), back.Describe(i))
		}
	}
}

func FuzzAddrs(f *testing.F) {
	for _, s := range []string{addrsText, "", "\ufeff1 a\r\n", "zz b\n", "1 a [m]\n2 b [n]\n1 c\n", "0 a\n", "1 a b\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzzText(t, text, Options{}) })
}

func FuzzPackings(f *testing.F) {
	f.Add([]byte(gzipped(f, addrsText)))
	f.Add([]byte(xzed(f, addrsText)))
	f.Add([]byte(gzipped(f, xzed(f, addrsText))))
	f.Add([]byte("\xfd7zXZ\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzText(t, string(data), Options{}) })
}

func FuzzFunctions(f *testing.F) {
	f.Add("first\ntwin\ntwin [ext4]\n", kallsymsText)
	f.Add("a\n", "0 T a\n")
	f.Add("a\nb [m]\na\n", "1 t a\n3 t a\n2 t b\t[m]\n")
	f.Add("0 [\r]\n", kallsymsText)
	path := f.TempDir() + "/kallsyms"
	f.Fuzz(func(t *testing.T, list, kallsyms string) {
		if err := os.WriteFile(path, []byte(kallsyms), 0o600); err != nil {
			t.Fatal(err)
		}
		tab, err := readString(list, Options{Kallsyms: path, Arch: "riscv64"})
		checkParsed(t, tab, err)
	})
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"1,a,,0\n2,b,m,1\n", "1,a,,\n", "1,\"a,\"\"b\",\"m\",3\r\n", "2,a,,0\n1,b,,0\n",
		"1,\"a\n", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rows string) { fuzzText(t, csvHeader+"\n"+rows, Options{}) })
}

func FuzzELF(f *testing.F) {
	for machine, arch := range elfArches {
		b := elfBuild{machine: machine, kind: elf.ET_DYN}
		text := b.text(0x1000, armFunction(true))
		b.function("f", text, 0x1008)
		b.entries(0x2000, 0x1000, 0)
		b.section(elfSec{name: ".rela.dyn", kind: elf.SHT_RELA, flags: elf.SHF_ALLOC, data: rela(0x2000, arch.relative, 0,
			0x1000)})
		f.Add(b.bytes(f))
		b.kind = elf.ET_REL
		b.secs[len(b.secs)-1] = elfSec{name: ".rela.p", kind: elf.SHT_RELA, info: 2, data: rela(0, arch.absolute, 1, 0)}
		f.Add(b.bytes(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tab, err := readELF(context.Background(), "in", bytes.NewReader(data), int64(len(data)), Options{})
		checkParsed(t, tab, err)
		if tab != nil && (tab.Arch() == "" || tab.Len() == 0) {
			t.Fatalf("architecture %q, %d records", tab.Arch(), tab.Len())
		}
	})
}

func FuzzGen(f *testing.F) {
	for _, s := range []string{"", "n=0", "n=10,groups=3", "order=random,n=7",
		"modules=0.5,misaligned=1,seed=18446744073709551615,n=50", "base=0,spacing=16,n=3", "n=1e3", "order=sort"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := parseGen("gen:"+spec, spec)
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		if s.n > 5000 {
			return // right, but slow
		}
		tab, err := Open(context.Background(), "gen:"+spec, Options{})
		checkParsed(t, tab, err)
		if err == nil && tab.Len() != s.n {
			t.Fatalf("%d records, want %d", tab.Len(), s.n)
		}
	})
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"vfs_*", "!*lock*", "[a-", `\`, ":mod:ext4", "*:mod:!*", "a*b?[!x]", "3", "a b !c",
		"***a"} {
		f.Add(s)
	}
	tab := filterTable(f)
	f.Fuzz(func(t *testing.T, expr string) {
		filter, err := ParseFilter([]string{expr})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") || !strings.HasPrefix(err.Error(), "filter ") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		last := -1
		for _, i := range filter.Match(tab) {
			if i <= last || i >= tab.Len() {
				t.Fatalf("index %d behind %d", i, last)
			}
			last = i
		}
	})
}
