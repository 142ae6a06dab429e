// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"debug/elf"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// emulator is how kernels of an architecture are booted.
type emulator struct {
	Arch   string `col:"arch,key"`
	GOARCH string `col:"goarch"`
	QEMU   string `col:"qemu"`    // the program
	Debian string `col:"package"` // that it is in
	// riscv64's has a thread for each processor: its firmware waits for others in a loop, of which one for all sees no end.
	Machine []string `col:"machine"`
	Line    []string `col:"console"`
	Counted string   `col:"counted,maybe"` // also on the line, where interrupts are counted and no step is recorded
}

//go:embed emulators.csv
var emulatorTable string

var emulators = sheet.Must[emulator]("emulators.csv", emulatorTable)

// ErrNotBootable is a file that no emulator here boots.
var ErrNotBootable = errors.New("no kernel image that can be booted")

// bootable finds out how an image is booted. QEMU does not load EFI's zboot, or images that are
// packed whole: bootable writes their contents to dir, as the file to boot.
func bootable(kernel, dir string) (file string, e *emulator, err error) {
	head, err := headOf(kernel)
	if err != nil {
		return "", nil, err
	}
	file = kernel
	if unpack.Of(head) != nil || bytes.HasPrefix(head, []byte("MZ\x00\x00zimg")) {
		if file, err = unpacked(kernel, dir); err == nil {
			head, err = headOf(file)
		}
		if err != nil {
			return "", nil, err
		}
	}
	e, why := recognise(head)
	if why == "" && bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		why = noEntry(file)
	}
	if why != "" {
		return "", nil, fmt.Errorf("%s: %w: %s", kernel, ErrNotBootable, why)
	}
	return file, e, nil
}

// headOf is the first bytes of a file.
func headOf(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read kernel: %w", err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return nil, fmt.Errorf("read kernel %s: %w", file, err)
	}
	return head[:n], nil
}

// unpacked writes what is inside of a packed image into a folder.
func unpacked(file, dir string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read kernel: %w", err)
	}
	if b, err = vmlinux.Unpack(b, vmlinux.MaxUnpacked); err != nil {
		return "", fmt.Errorf("%s: %w: %w", file, ErrNotBootable, err)
	}
	inside := filepath.Join(dir, "kernel")
	if err := os.WriteFile(inside, b, 0o600); err != nil {
		return "", fmt.Errorf("unpack kernel %s: %w", file, err)
	}
	return inside, nil
}

// recognise reads from the head of an image what it is.
func recognise(head []byte) (*emulator, string) {
	arch := vmlinux.ArchOf(head)
	if arch == nil {
		return nil, "it does not begin as one"
	}
	for _, e := range emulators {
		if e.Arch == arch.Name {
			return &e, ""
		}
	}
	return nil, "no emulator is known for " + arch.Name
}

// entryNote is XEN_ELFNOTE_PHYS32_ENTRY (include/xen/interface/elfnote.h): where a machine
// enters an ELF file that it boots by itself (PVH). QEMU wants it on x86.
const entryNote = 18

// noEntry says why an ELF file cannot be booted; "" if it can.
func noEntry(file string) string {
	f, err := elf.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		notes, err := io.ReadAll(io.LimitReader(p.Open(), 1<<16))
		for le := binary.LittleEndian; err == nil && len(notes) >= 12; {
			name, desc := (le.Uint32(notes)+3)&^3, (le.Uint32(notes[4:])+3)&^3
			if le.Uint32(notes[8:]) == entryNote && bytes.HasPrefix(notes[12:], []byte("Xen\x00")) {
				return ""
			}
			notes = notes[min(uint64(len(notes)), 12+uint64(name)+uint64(desc)):]
		}
	}
	return "it is an ELF file without an entry for PVH (CONFIG_PVH); boot the vmlinuz or Image that was made of it"
}
