// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// TestKernelImage: a boot image gives the table that its kernel has after boot, from a file and
// as a stream, packed or not: sorted, without empty entries and init text. On riscv64 the
// record is the second instruction since Linux 6.16.
func TestKernelImage(t *testing.T) {
	image := string(fakekernel.Make("offsets-last").Data)
	want := []Raw{{fakekernel.Base + fakekernel.Text + 4, "_stext", ""}, {fakekernel.Base + fakekernel.Text + 68, "function_00002", ""}}
	old := []byte(image)
	copy(old[bytes.Index(old, []byte("version 9.9.9"))+8:], "6.12.")
	for name, text := range map[string]string{"plain": image, "gzip": gzipped(t, image), "xz": xzed(t, image)} {
		for _, open := range []func() (*Table, error){
			func() (*Table, error) { return readString(text, Options{}) },
			func() (*Table, error) {
				return Open(context.Background(), tempFile(t, "Image", text), Options{Arch: "riscv64"})
			},
		} {
			tab, err := open()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := cmp.Diff(want, raws(tab)); d != "" || tab.Arch() != "riscv64" {
				t.Errorf("%s: %s, %s", name, tab.Arch(), d)
			}
		}
	}
	tab, err := readString(string(old), Options{})
	if err != nil || tab.Addr(0) != want[0].Addr-4 || tab.Addr(1) != want[1].Addr-4 {
		t.Errorf("before Linux 6.16: %v, %v", tab, err)
	}
	if _, err := Open(context.Background(), tempFile(t, "Image", image), Options{Arch: "arm64"}); err == nil {
		t.Error("an image of riscv64 was taken for one of arm64")
	}
}

// TestDamagedRecords: entries that name no place in text are no records, and a table with many of
// them is noted.
func TestDamagedRecords(t *testing.T) {
	for _, mark := range []uint64{1, fakekernel.Base + fakekernel.Syms, ^uint64(0)} {
		s := fakekernel.Make("offsets-last")
		binary.LittleEndian.PutUint64(s.Data[fakekernel.Tables:], mark)
		k, err := vmlinux.Read("f", bytes.NewReader(s.Data), int64(len(s.Data)))
		if err != nil {
			t.Fatal(err)
		}
		r := OfKernel(k)
		if len(r.Sites) != 1 || r.Invalid != 1 || len(k.Notes) != 1 || !strings.Contains(k.Notes[0], "1 of 3 entries") {
			t.Errorf("%#x: %d records, %d are none, %q", mark, len(r.Sites), r.Invalid, k.Notes)
		}
	}
	k, err := vmlinux.Read("f", bytes.NewReader(fakekernel.Make("offsets-last").Data), fakekernel.Size)
	if err != nil || len(OfKernel(k).Sites) != 2 || len(k.Notes) != 0 {
		t.Errorf("whole: %v, %q", err, k.Notes)
	}
}
