// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/binary"
	"fmt"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
)

// references is a word that tells handlers whether a batch is there.
type references struct {
	at   uint64
	size int
	name string
}

// referencesOf are the words that patchers store to when they publish a batch: a count of references, of all CPUs
// (in bp_desc since efd608fa7403, Linux 6.1, which stable releases have from 5.10 on; arch/x86/kernel/alternative.c) or
// of each (text_poke_array_refs since 6.16); before, a pointer to the batch (bp_desc). perCPU is where the offset of
// each CPU's variables lies.
func referencesOf(k *image.Kernel) (r references, perCPU uint64) {
	if at, ok := k.Addr("text_poke_array_refs"); ok {
		offsets, there := k.Addr("__per_cpu_offset")
		if there {
			return references{at, 4, "text_poke_array_refs"}, offsets
		}
	}
	at, ok := k.Addr("bp_desc")
	switch {
	case ok && k.Touches("text_poke_bp_batch", at+refsIn):
		return references{at + refsIn, 4, "bp_desc.refs"}, 0
	case ok:
		return references{at, 8, "bp_desc"}, 0
	}
	return references{}, 0
}

// refsIn is where struct bp_patching_desc has its count, behind a pointer and a number.
const refsIn = 12

// watchReferences has the machine stop at stores that publish a batch.
func (x *recorder) watchReferences(cpu int) error {
	of, perCPU := referencesOf(x.kernel)
	x.refs = map[uint64]*count{}
	if of.name == "" {
		x.Watched = append(x.Watched, "no rule finds what publishes a batch: it is not recorded")
		return nil
	}
	x.Watched = append(x.Watched, fmt.Sprintf("publish %s (%s is there)", of.name, of.name))
	if perCPU == 0 {
		x.refs[of.at] = &count{size: of.size}
		return x.Insert(gdb.Stores(of.at, of.size))
	}
	for n := range x.CPUs {
		offset, err := x.Word(cpu, perCPU+uint64(8*n))
		if err != nil {
			return err
		}
		x.refs[of.at+offset] = &count{size: of.size, name: fmt.Sprint(n)}
		if err := x.Insert(gdb.Stores(of.at+offset, of.size)); err != nil {
			return err
		}
	}
	return nil
}

// referred is a CPU that has stored to a word of references. What an instruction does is known from its first time on:
// where two CPUs store at a time, the server tells of one, and the word has changed by both.
func (x *recorder) referred(cpu int, at, pc uint64) error {
	c := x.refs[at]
	if c == nil {
		return fmt.Errorf("the machine stopped for a store to %#x, which is not watched", at)
	}
	b, err := x.Read(cpu, at, c.size)
	if err != nil {
		return err
	}
	was := c.value
	c.value = binary.LittleEndian.Uint64(append(b, 0, 0, 0, 0)[:8])
	s, p := Step{CPU: cpu, Kind: x.counts[pc], Name: c.name}, x.handler(cpu)
	switch more := c.value > was; {
	case s.Kind != "":
	case c.value == was:
		return nil
	case p != nil && more:
		s.Kind = Take
	case p != nil:
		s.Kind = Give
	case more:
		s.Kind = Publish
	default:
		s.Kind = Unpublish
	}
	x.counts[pc] = s.Kind
	if p != nil && s.Kind == Take {
		if p.took { // another CPU has changed the word meanwhile, and it tried again
			return nil
		}
		p.took = true
	}
	x.Steps = append(x.Steps, s)
	return nil
}

// handler is the call of a breakpoint's handler that a CPU is in; nil for none.
func (x *recorder) handler(cpu int) *pending {
	for _, list := range x.returns {
		for i := range list {
			if list[i].cpu == cpu && list[i].kind == Leave {
				return &list[i]
			}
		}
	}
	return nil
}
