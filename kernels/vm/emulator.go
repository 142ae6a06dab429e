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
	"strconv"
	"strings"
	"sync"
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

// emulatorFor reads from the head of an image what it is. What the kernel's EFI stub
// makes of an image is the head of a Windows program, in which its machine stands
// (arch/*/kernel/efi-header.S, arch/x86/boot/header.S).
func emulatorFor(image string) (*emulator, error) {
	f, err := os.Open(image)
	if err != nil {
		return nil, fmt.Errorf("read kernel: %w", err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return nil, fmt.Errorf("read kernel %s: %w", image, err)
	}
	e, why := recognise(head[:n])
	if why != "" {
		return nil, fmt.Errorf("%s: %w: %s", image, ErrNotBootable, why)
	}
	return e, nil
}

func recognise(head []byte) (*emulator, string) {
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return nil, "it is an ELF file; boot the vmlinuz or Image that was made of it"
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return nil, "it is packed by gzip; unpack it first"
	case len(head) < 0x40 || !bytes.HasPrefix(head, []byte("MZ")):
		return nil, "it does not begin as one"
	case string(head[4:8]) == "zimg":
		return nil, "it is an EFI zboot image, which QEMU does not load; unpack it first"
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
