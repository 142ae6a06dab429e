// SPDX-License-Identifier: Apache-2.0

package image

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

var long = flag.Bool("long", false, "run slow tests")

// FuzzTables: whatever stands in the tables, no more entries are read than fit there.
func FuzzTables(f *testing.F) {
	s := fakekernel.Make("offsets-last")
	f.Add(uint32(0), []byte{1, 2, 3})
	f.Add(uint32(0x1000), []byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		d := slices.Clone(s.Data)
		copy(d[fakekernel.Tables+at%(fakekernel.Syms-fakekernel.Tables):fakekernel.Syms], b)
		k, err := inMemory("f", d)
		if err != nil {
			return
		}
		k.use(t)
		if n := len(k.Records.Sites); n > (fakekernel.Syms-fakekernel.Tables)/8 {
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
		end := fakekernel.Base + uint64(len(b))
		k := &Kernel{Kernel: &vmlinux.Kernel{Memory: &vmlinux.Memory{Segments: []vmlinux.Segment{{Addr: fakekernel.Base, Data: b}}},
			Symbols: vmlinux.NewSymbols("", []vmlinux.Symbol{{Addr: fakekernel.Base, Name: "__start_BTF"}, {Addr: end, Name: "__stop_BTF"}})}}
		k.readLayouts()
		if !k.layouts.fromTypes && (k.layouts.class != 16 || k.layouts.event != 24 || k.layouts.key != 8) {
			t.Errorf("%+v", k.layouts)
		}
		if n, _ := k.room(); n < 0 {
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
	s := fakekernel.Make("offsets-last")
	read := 0
	for i := range n {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		d := slices.Clone(s.Data)
		part := [][]byte{d, d[fakekernel.Tables:fakekernel.Syms], d[fakekernel.Syms:]}[i/len(scribbles)%3]
		scribbles[i%len(scribbles)](r, part)
		k, err := inMemory("scribbled", d)
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
