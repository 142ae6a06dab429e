// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"io"
)

// entry is one file or folder of an initramfs.
type entry struct {
	name string
	mode uint32 // of stat(2), with its type
	text []byte
}

const (
	folder     = 0o040755
	executable = 0o100755
	plain      = 0o100644
)

// writeCPIO writes an archive in the "newc" form, which the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst, init/initramfs.c).
func writeCPIO(w io.Writer, entries []entry) error {
	var b bytes.Buffer
	pad := func() {
		for b.Len()%4 != 0 {
			b.WriteByte(0)
		}
	}
	for i, e := range append(entries, entry{name: "TRAILER!!!"}) {
		if len(e.text) > 1<<32-1 {
			return fmt.Errorf("initramfs: %s has %d bytes, more than the format can say", e.name, len(e.text))
		}
		b.WriteString("070701")
		fields := [13]uint32{0: uint32(i + 1), 1: e.mode, 4: 1, 6: uint32(len(e.text)), 11: uint32(len(e.name) + 1)}
		for _, f := range fields {
			fmt.Fprintf(&b, "%08X", f)
		}
		b.WriteString(e.name)
		b.WriteByte(0)
		pad()
		b.Write(e.text)
		pad()
	}
	_, err := b.WriteTo(w)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}
