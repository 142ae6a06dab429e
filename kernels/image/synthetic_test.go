// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// inMemory reads an image that lies in memory.
func inMemory(file string, b []byte) (*Kernel, error) {
	k, err := vmlinux.Read(file, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	return Of(k), nil
}

// TestTables: in every layout of kallsyms, the tables hold what was written into them.
func TestTables(t *testing.T) {
	for _, layout := range fakekernel.Layouts {
		s := fakekernel.Make(layout)
		s.Iterator()
		k, err := inMemory("f", s.Data)
		if err != nil {
			t.Errorf("%s: %v", layout, err)
			continue
		}
		check(t, s, k)
	}
}

// check compares the tables with what fakekernel.Make wrote.
func check(t *testing.T, s *fakekernel.Kernel, k *Kernel) {
	t.Helper()
	r := k.Records
	if want := []uint64{fakekernel.Base + fakekernel.Text + 4, fakekernel.Base + fakekernel.Text + 68}; !slices.Equal(r.Sites, want) || r.Marks != 4 || r.Empty != 1 ||
		r.Init != 1 || r.Invalid != 0 ||
		r.Order != 1 {
		t.Errorf("%s: records %+v", s.Layout, r)
	}
	const key = fakekernel.Base + fakekernel.Tables + 0x1008
	if want := []uint64{fakekernel.Base + fakekernel.Text + 68, fakekernel.Base + fakekernel.Text + 100}; k.Keys.Entries != 3 || k.Keys.Init != 1 ||
		!slices.Equal(k.Keys.Branches[key], want) || k.Name(key) != "__tracepoint_a_point+0x8" {
		t.Errorf("%s: keys %+v", s.Layout, k.Keys)
	}
	if calls := k.StaticCalls(); len(calls) != 1 || calls[0] != (Call{"tp_func_a_point", true, 1}) {
		t.Errorf("%s: static calls %+v", s.Layout, calls)
	}
	if !slices.Equal(k.Events, []Event{{"a_group", "a_point", "a_point"}}) {
		t.Errorf("%s: events %+v", s.Layout, k.Events)
	}
	if k.Release != "9.9.9-synthetic" || k.Preempt() != "rt" || k.Arch.Name != "riscv64" || k.Form != "Image" {
		t.Errorf("%s: %s %s %s %s", s.Layout, k.Release, k.Preempt(), k.Arch.Name, k.Form)
	}
	if _, unknown := k.Mechanisms(); !slices.ContainsFunc(
		unknown,
		func(u string) bool { return strings.HasPrefix(u, UpdateRounds) },
	) {
		t.Errorf("%s: a kernel without any code is understood: %v", s.Layout, unknown)
	}
	table, err := k.Table()
	if err != nil || table.Len() != 2 || table.Symbol(0) != "_stext" || table.Symbol(1) != "function_00002" {
		t.Errorf("%s: table %v, %v", s.Layout, table, err)
	}
}

// FuzzImage: whatever is written into an image at up to two places, it is read or refused
// in one line.
func FuzzImage(f *testing.F) {
	s := fakekernel.Make("offsets-last")
	f.Add(uint32(fakekernel.Syms), []byte{1, 2, 3}, uint32(fakekernel.Tables), []byte{0xff})
	f.Add(uint32(0x38), []byte("XXXX"), uint32(0), []byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, at1 uint32, b1 []byte, at2 uint32, b2 []byte) {
		d := slices.Clone(s.Data)
		copy(d[at1%fakekernel.Size:], b1)
		copy(d[at2%fakekernel.Size:], b2)
		k, err := inMemory("f", d)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		k.use(t)
	})
}
