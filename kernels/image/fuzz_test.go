// SPDX-License-Identifier: Apache-2.0

package image

import (
	"slices"
	"testing"
)

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
