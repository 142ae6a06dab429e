// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"

	"github.com/cilium/ebpf/btf"
)

// layouts are what the kernel's own type information says of the structures that are
// read, or what they have been since Linux 5.0 where an image carries none.
type layouts struct {
	class     uint64 // of struct trace_event_call: its struct trace_event_class
	event     uint64 // ... its tracepoint, or its name
	system    uint64 // of struct trace_event_class: the name of its group
	key       uint64 // of struct tracepoint: its static key
	poke      uint64 // bytes of struct text_poke_loc; 0 where it is not known
	vector    uint64 // entries of the array of them; 0 where it is not in a structure
	fromTypes bool   // the image says so
}

func (k *Kernel) readLayouts() {
	k.layouts = layouts{class: 16, event: 24, system: 0, key: 8}
	from, to, ok := k.Limits("__start_BTF", "__stop_BTF")
	if !ok {
		k.Note("no type information (BTF): structures are read as Linux has had them since 5.0")
		return
	}
	b := k.Span(from, to)
	if b == nil {
		k.Note("type information lies outside of the image")
		return
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(b))
	if err != nil {
		k.Note("type information: %v", err)
		return
	}
	k.types = spec
	l := &k.layouts
	l.fromTypes = true
	member(spec, "trace_event_call", "class", &l.class)
	member(spec, "trace_event_call", "tp", &l.event)
	member(spec, "trace_event_class", "system", &l.system)
	member(spec, "tracepoint", "key", &l.key)
	var array *btf.Struct
	if spec.TypeByName("smp_text_poke_array", &array) == nil { // since 6.16
		for _, m := range array.Members {
			if a, ok := m.Type.(*btf.Array); ok {
				l.vector = uint64(a.Nelems)
			}
		}
	}
	for _, name := range []string{"smp_text_poke_loc", "text_poke_loc"} { // since 6.16, before
		var s *btf.Struct
		if spec.TypeByName(name, &s) == nil && s.Size > 0 {
			l.poke = uint64(s.Size)
		}
	}
}

// Members are the names of a structure's members, as type information has them; none where
// there is none.
func (k *Kernel) Members(structure string) map[string]bool {
	var s *btf.Struct
	if k.types == nil || k.types.TypeByName(structure, &s) != nil {
		return nil
	}
	out := map[string]bool{}
	for _, m := range s.Members {
		out[m.Name] = true
	}
	return out
}

// member reads where a member lies in a structure, also inside of a union without a name. It leaves
// *at as it was where there is no such member.
func member(spec *btf.Spec, structure, name string, at *uint64) {
	var s *btf.Struct
	if spec.TypeByName(structure, &s) != nil {
		return
	}
	for _, m := range s.Members {
		if m.Name == name {
			*at = uint64(m.Offset.Bytes())
		}
		if u, ok := m.Type.(*btf.Union); ok && m.Name == "" {
			for _, inner := range u.Members {
				if inner.Name == name {
					*at = uint64((m.Offset + inner.Offset).Bytes())
				}
			}
		}
	}
}
