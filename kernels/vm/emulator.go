// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// emulator is how kernels of an architecture are booted.
type emulator struct {
	arch, goarch  string
	qemu, debian  string // the program, and Debian's package of it
	pe            uint16 // the machine of its images as Windows numbers them
	machine, line []string
}

//go:embed emulators.csv
var emulatorTable string

var emulators = sync.OnceValue(func() []emulator {
	rows, err := csv.NewReader(strings.NewReader(emulatorTable)).ReadAll()
	if err != nil {
		panic(err) // a table of ours
	}
	var out []emulator
	for _, r := range rows[1:] {
		pe, err := strconv.ParseUint(r[4], 16, 16)
		if err != nil {
			panic(err)
		}
		out = append(out, emulator{arch: r[0], goarch: r[1], qemu: r[2], debian: r[3], pe: uint16(pe),
			machine: strings.Fields(r[5]), line: strings.Fields(r[6])})
	}
	return out
})

// ErrNotBootable is a file that no emulator here boots.
var ErrNotBootable = errors.New("no kernel image that can be booted")

// bootable finds out how an image is booted. QEMU loads neither EFI's zboot nor images
// that are packed whole: what is inside is written to dir, and is the file to boot.
func bootable(kernel, dir string) (file string, e *emulator, err error) {
	head, err := headOf(kernel)
	if err != nil {
		return "", nil, err
	}
	file = kernel
	if packed(head) {
		if file, err = unpacked(kernel, dir); err == nil {
			head, err = headOf(file)
		}
		if err != nil {
			return "", nil, err
		}
	}
	e, why := recognise(head)
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

// packed tells whether an image is to be unpacked before it is booted.
func packed(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x1f\x8b")) || bytes.HasPrefix(head, []byte("MZ\x00\x00zimg"))
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

// recognise reads from the head of an image what it is. What the kernel's EFI stub
// makes of an image is the head of a Windows program, in which its machine stands
// (arch/*/kernel/efi-header.S, arch/x86/boot/header.S).
func recognise(head []byte) (*emulator, string) {
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return nil, "it is an ELF file; boot the vmlinuz or Image that was made of it"
	case len(head) < 0x40 || !bytes.HasPrefix(head, []byte("MZ")):
		return nil, "it does not begin as one"
	}
	at := binary.LittleEndian.Uint32(head[0x3c:])
	if at > uint32(len(head)-6) || string(head[at:at+4]) != "PE\x00\x00" {
		return nil, "it begins as a program for EFI and has no header of one"
	}
	machine := binary.LittleEndian.Uint16(head[at+4:])
	for _, e := range emulators() {
		if e.pe == machine {
			return &e, ""
		}
	}
	return nil, fmt.Sprintf("its machine %#04x is none of %s", machine, strings.Join(Archs(), ", "))
}

// Archs are the architectures of which kernels can be booted.
func Archs() (names []string) {
	for _, e := range emulators() {
		names = append(names, e.arch)
	}
	return names
}
