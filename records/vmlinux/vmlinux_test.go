// SPDX-License-Identifier: Apache-2.0

package vmlinux_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

func gz(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestNoKernel: what is no kernel is refused in one line that names the file.
func TestNoKernel(t *testing.T) {
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	twice := []byte("hello")
	for range unpack.Layers + 1 {
		twice = gz(t, twice)
	}
	raw := make([]byte, 4096)
	copy(raw[0x38:], "ARM\x64")
	for name, b := range map[string][]byte{
		"empty": nil, "text": []byte("hello, world"), "zeros": make([]byte, 1<<16), "an ELF header alone": elf,
		"text that is packed": gz(t, []byte("hello")), "packed again and again": twice,
		"a packed file that is cut short": gz(t, bytes.Repeat([]byte("kernel"), 1000))[:40],
		"a raw image without a banner":    raw,
		"a header of EFI " +
			"zboot": append([]byte("MZ\x00\x00zimg\xff\xff\xff\xff\xff\xff\xff\xff"), make([]byte, 100)...),
	} {
		_, err := read(b)
		if err == nil || !strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLayouts: every layout of kallsyms gives the same symbols.
func TestLayouts(t *testing.T) {
	for _, layout := range fakekernel.Layouts {
		s := fakekernel.Make(layout)
		k, err := read(s.Data)
		if layout == "offsets-last,place-relative" {
			// Nothing absolute says where it is linked, and no pointer to an iterator.
			if err == nil || !strings.Contains(err.Error(), "where it is linked cannot be told") {
				t.Errorf("%s: %v", layout, err)
			}
			s = fakekernel.Make(layout)
			s.Iterator()
			k, err = read(s.Data)
		}
		if err != nil {
			t.Errorf("%s: %v", layout, err)
			continue
		}
		if n, got := len(k.All), k.Layout; n != len(s.Names) || got != layout {
			t.Errorf("%s: %d symbols in layout %s, want %d", layout, n, got, len(s.Names))
		}
		for i, y := range s.Names {
			if k.All[i] != y {
				t.Fatalf("%s: symbol %d is %v, want %v", layout, i, k.All[i], y)
			}
		}
		if at := k.Segments[0].Addr; at != fakekernel.Base {
			t.Errorf("%s: linked at %#x", layout, at)
		}
	}
}

// read reads a kernel that is called f.
func read(b []byte) (*vmlinux.Kernel, error) {
	return vmlinux.Read("f", bytes.NewReader(b), int64(len(b)))
}
