// SPDX-License-Identifier: Apache-2.0

// Package image reads a Linux kernel's image: the file that a machine boots, or the ELF
// file that it was made of. It unpacks it, decodes the symbol table that the kernel
// carries for itself, and finds the tables of the places that the kernel patches at run
// time: the records of ftrace in the order in which the kernel walks them, the branches
// of static keys, the sites of static calls, tracepoints and trace events. It decodes
// direct calls, so that the code itself shows a mechanism: mechanisms.rules says which
// calls show which mechanism, and rules.go reads such rules.
//
// A file may be anything: every read is bounded, and a structure that the package does not
// understand is an error in one line. It guesses nothing.
package image

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

var le = binary.LittleEndian

// Kernel is what an image says. It is not changed once it has been read, but for what
// [Kernel.Calls] remembers: one goroutine at a time.
type Kernel struct {
	*vmlinux.Kernel

	Records *records.Kernel
	Keys    Keys
	Sites   Sites
	Events  []Event
	Config  string // CONFIG_IKCONFIG's text; "" where the image carries none

	decoder
	layouts     layouts
	types       *btf.Spec         // nil where the image has none
	tracepoints map[uint64]string // their names by address
	called      map[string]map[string]int
	unnamed     bool // no symbol of data is there
	batch       Batch
	batchErr    error
	batchRan    bool
}

// Open reads an image from a file.
func Open(path string) (*Kernel, error) {
	k, err := vmlinux.Open(path)
	if err != nil {
		return nil, err
	}
	return Of(k), nil
}

// Of takes a kernel apart. The notes name the tables that are missing or not understood.
func Of(linked *vmlinux.Kernel) *Kernel {
	k := &Kernel{Kernel: linked, decoder: decoders[linked.Arch.Name], called: map[string]map[string]int{}}
	k.config()
	k.readLayouts()
	k.readKeys()
	k.Records = records.OfKernel(linked)
	k.readSites()
	k.readEvents()
	return k
}

// Table is the records in the kernel's groups.
func (k *Kernel) Table() (*records.Table, error) { return k.Records.Table() }

// CallOps tells whether each record has a literal that names an ops
// (CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS): then nothing is left to patch in the common
// entry, and its label is not there.
func (k *Kernel) CallOps() bool {
	return k.Arch.Magic != "" && k.Has("ftrace_caller") && !k.Has("ftrace_call")
}

// Preempt is how the kernel says that it preempts tasks; "" where it does not say.
func (k *Kernel) Preempt() string {
	for _, p := range []string{"PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"} {
		for word := range strings.FieldsSeq(k.Banner) {
			if word == p {
				return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(p, "PREEMPT_"), "PREEMPT"))
			}
		}
	}
	return ""
}

// configMagic stands before the packed configuration (kernel/configs.c).
const configMagic = "IKCFG_ST"

func (k *Kernel) config() {
	for _, s := range k.Segments {
		i := bytes.Index(s.Data, []byte(configMagic))
		if i < 0 {
			continue
		}
		if p := unpack.Of(s.Data[i+len(configMagic):]); p != nil {
			if b, err := p.Bytes(s.Data[i+len(configMagic):], 1<<20); err == nil {
				k.Config = string(b)
				return
			}
		}
		k.Note("the configuration inside the image cannot be read")
	}
}
