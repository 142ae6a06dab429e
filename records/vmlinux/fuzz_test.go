// SPDX-License-Identifier: Apache-2.0

package vmlinux_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// FuzzKallsyms: whatever stands in an image in place of its symbols, reading them ends, and
// symbols that are read ascend.
func FuzzKallsyms(f *testing.F) {
	s := fakekernel.Make("offsets-last")
	f.Add(uint32(0), []byte{1, 2, 3})
	f.Add(uint32(0x1000), []byte{0xff, 0xff, 0xff, 0xff, 0x80})
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		d := slices.Clone(s.Data[fakekernel.Syms:])
		copy(d[int(at)%len(d):], b)
		y, err := vmlinux.ReadSymbols(&vmlinux.Memory{Segments: []vmlinux.Segment{{Data: d}}})
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(y.All, func(a, b vmlinux.Symbol) int {
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

// FuzzUnwrap: so is any file.
func FuzzUnwrap(f *testing.F) {
	for _, magic := range []string{"\x1f\x8b", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "BZh", "\x02\x21\x4c\x18", "\x5d\x00\x00"} {
		f.Add([]byte(magic + "rest"))
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte("MZ\x00\x00zimg\x10\x00\x00\x00\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := read(b); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q", err)
		}
	})
}

// TestNotRead: what is no image is refused by its first page, however large it is, in one line.
func TestNotRead(t *testing.T) {
	for begin, want := range map[string]string{"": "not a kernel image", "MZ": "not a kernel image",
		"\x7fELF": "ELF file: ", "\x1f\x8b": "4096 MiB, more than 256"} {
		file := filepath.Join(t.TempDir(), "sparse")
		if err := os.WriteFile(file, []byte(begin), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 4<<30); err != nil {
			t.Skipf("skipped: no file of 4 GiB with a hole in it: %v", err)
		}
		if _, err := vmlinux.Open(file); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", begin, err, want)
		}
	}
}
