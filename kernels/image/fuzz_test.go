// SPDX-License-Identifier: Apache-2.0

package image

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var long = flag.Bool("long", false, "run slow tests")

// FuzzKallsyms: whatever stands in an image in place of its symbols, reading them ends, and
// symbols that are read ascend.
func FuzzKallsyms(f *testing.F) {
	s := makeSynthetic("offsets-last")
	f.Add(uint32(0), []byte{1, 2, 3})
	f.Add(uint32(0x1000), []byte{0xff, 0xff, 0xff, 0xff, 0x80})
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		d := slices.Clone(s.data[synSyms:])
		copy(d[int(at)%len(d):], b)
		y, err := readKallsyms(&memory{segments: []segment{{0, d}}})
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(y.all, func(a, b Symbol) int {
			switch {
			case a.Addr < b.Addr:
				return -1
			case a.Addr > b.Addr:
				return 1
			}
			return 0
		}) {
			t.Error("symbols do not ascend")
		}
	})
}

// FuzzTables: whatever stands in the tables, no more entries are read than fit there.
func FuzzTables(f *testing.F) {
	s := makeSynthetic("offsets-last")
	f.Add(uint32(0), []byte{1, 2, 3})
	f.Add(uint32(0x1000), []byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		d := slices.Clone(s.data)
		copy(d[synTables+at%(synSyms-synTables):synSyms], b)
		k, err := Read("f", d)
		if err != nil {
			return
		}
		k.use(t)
		if n := len(k.Records.Sites); n > (synSyms-synTables)/8 {
			t.Errorf("%d records", n)
		}
	})
}

// FuzzTypes: so is type information, which may be anything: what is not understood leaves
// the structures as Linux has had them.
func FuzzTypes(f *testing.F) {
	f.Add([]byte("\x9f\xeb\x01\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"))
	f.Add([]byte("\x9f\xeb"))
	f.Fuzz(func(t *testing.T, b []byte) {
		end := synBase + uint64(len(b))
		k := &Kernel{memory: &memory{segments: []segment{{synBase, b}}},
			symbols: newSymbols("", []Symbol{{Addr: synBase, Name: "__start_BTF"}, {Addr: end, Name: "__stop_BTF"}})}
		k.readLayouts()
		if !k.layouts.fromTypes && (k.layouts.class != 16 || k.layouts.event != 24 || k.layouts.key != 8) {
			t.Errorf("%+v", k.layouts)
		}
		if n := k.Slots(); n < 0 {
			t.Errorf("%d slots", n)
		}
	})
}

// scribbles are three kinds of damage: bytes here and there, a part that is another part, and a part that is gone.
var scribbles = []func(r *rand.Rand, d []byte){
	func(r *rand.Rand, d []byte) {
		for range r.IntN(len(d) >> 8) {
			d[r.IntN(len(d))] = byte(r.Uint32())
		}
	},
	func(r *rand.Rand, d []byte) {
		from := r.IntN(len(d))
		copy(d[r.IntN(len(d)):], slices.Clone(d[from:min(len(d), from+r.IntN(1<<16))]))
	},
	func(r *rand.Rand, d []byte) {
		at := r.IntN(len(d))
		clear(d[at:min(len(d), at+r.IntN(1<<20))])
	},
}

// TestScribbledSynthetic: images that are damaged are read, or refused in one line. Symbols and tables are hit as often
// as the text. With -long, 200 images.
func TestScribbledSynthetic(t *testing.T) {
	n := 6
	if *long {
		n = 200
	}
	s := makeSynthetic("offsets-last")
	read := 0
	for i := range n {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		d := slices.Clone(s.data)
		part := [][]byte{d, d[synTables:synSyms], d[synSyms:]}[i/len(scribbles)%3]
		scribbles[i%len(scribbles)](r, part)
		k, err := Read("scribbled", d)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%d: %q", i, err)
			}
			continue
		}
		read++
		k.use(t)
	}
	if read == 0 || n == 200 && read == n {
		t.Errorf("%d of %d are read", read, n)
	}
}

// TestNotRead: what is no image is refused by its first page, however large it is, in one line.
func TestNotRead(t *testing.T) {
	for begin, want := range map[string]string{"": "not a kernel image", "MZ": "not a kernel image",
		"\x7fELF": "4096 MiB, more than 1024"} {
		file := filepath.Join(t.TempDir(), "sparse")
		if err := os.WriteFile(file, []byte(begin), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 4<<30); err != nil {
			t.Skipf("skipped: no file of 4 GiB with a hole in it: %v", err)
		}
		if _, err := Open(file); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", begin, err, want)
		}
	}
}
