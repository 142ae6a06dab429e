// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// placed is a job on records of modules ("" for the core kernel) at given addresses.
func placed(t *testing.T, arch string, at map[records.Addr]string, order ...records.Addr) *Job {
	t.Helper()
	var raw []records.Raw
	for i, addr := range order {
		raw = append(raw, records.Raw{Addr: addr, Symbol: fmt.Sprint("f", i), Module: at[addr]})
	}
	c := config(t, arch, "native", "gen:n=1", "2")
	var err error
	if c.Table, err = records.New("t", "", raw); err != nil {
		t.Fatal(err)
	}
	return newJob(t, c)
}

// TestCommonEntry: the common entry is in the page that is 4096 bytes below the core kernel's lowest record, be
// modules below it; without a core kernel, below the lowest of all.
func TestCommonEntry(t *testing.T) {
	at := map[records.Addr]string{0x7004: "b", 0x9004: "a", 0xa004: "a"}
	for _, tt := range []struct {
		order []records.Addr
		want  records.Addr
	}{
		{[]records.Addr{0x5004, 0x7004, 0x4004, 0x9004}, 0x3000}, {[]records.Addr{0x9004, 0x7004, 0xe004, 0xd004}, 0xc000},
		{[]records.Addr{0x7004, 0xd004, 0x9004, 0xe004}, 0xc000}, {[]records.Addr{0x9004, 0x7004, 0xa004}, 0x6000},
		{[]records.Addr{0x7004, 0x9004, 0xa004}, 0x6000},
	} {
		if got := placed(t, "x86_64", at, tt.order...).entry(); got != tt.want {
			t.Errorf("%x: %#x, want %#x", tt.order, got, tt.want)
		}
	}
}

// TestTextOfRecords: each record has its site, with its group's number and the text of its own instruction set; there
// and back are each other's opposite. A module's slot for the common entry lies behind its last record, aligned to
// 16.
func TestTextOfRecords(t *testing.T) {
	j := placed(t, "x86_64", map[records.Addr]string{0xf000: "m", 0xf105: "m", 0xe00b: "n"},
		0x5004, 0x7004, 0x4004, 0xf000, 0xf105, 0xe00b)
	s, err := j.sites()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]records.Addr{"m": 0xf200, "n": 0xe100}; !reflect.DeepEqual(j.plts(), want) {
		t.Errorf("%x, want %x", j.plts(), want)
	}
	for rec := range j.Table.Len() {
		on, off := s.patch(rec, true), s.patch(rec, false)
		if on.Addr != j.Table.Addr(rec) || s.records[on.Site] != rec || s.code.Sites[on.Site] != on.Addr ||
			on.OldOps != nopOps || on.NewOps != uint64(s.code.Entry) {
			t.Errorf("record %d: %+v", rec, on)
		}
		group := slices.IndexFunc(j.Table.Groups(), func(g records.Group) bool { return rec < g.Last })
		if int(on.Group) != group {
			t.Errorf("record %d is of group %d, want %d", rec, on.Group, group)
		}
		off.Old, off.New, off.OldOps, off.NewOps = off.New, off.Old, off.NewOps, off.OldOps
		if on != off {
			t.Errorf("%+v, the other way %+v", on, off)
		}
	}
	if got := placed(t, "arm64", nil, 0x5004); got.ops(1) != tracerOps {
		t.Errorf("a literal names %#x", got.ops(1))
	}
}

// TestLookupBatch: an index of groups gets the addresses of each group together, in order, and where each but the
// first begins; other indexes get all of them in order. A defect that leaves them as they were queued does so.
func TestLookupBatch(t *testing.T) {
	for _, lookup := range []int3.Lookup{int3.Vector, int3.Groups} {
		for _, filling := range []poke.Filling{0, poke.AsQueued} {
			c := config(t, "x86_64", "native", "gen:n=40,groups=5,modules=0.4", "2")
			c.Lookup, c.Order, c.Buffer = lookup, sched.Shuffled, sched.Dynamic
			j := newJob(t, c)
			j.mutation.Filling = filling
			group := func(rec int) int {
				return slices.IndexFunc(j.Table.Groups(), func(g records.Group) bool { return rec < g.Last })
			}
			want, from := slices.Clone(j.queue[3:37]), []int(nil)
			if filling != poke.AsQueued {
				slices.SortFunc(want, func(a, b int) int {
					if g := group(a) - group(b); g != 0 && lookup == int3.Groups {
						return g
					}
					return int(int64(j.Table.Addr(a)) - int64(j.Table.Addr(b)))
				})
			}
			var buf int3.Batch
			j.lookupBatch(poke.Range{From: 0, To: 9}, &buf) // whose leftovers do not count
			got := j.lookupBatch(poke.Range{From: 3, To: 37}, &buf)
			for i, rec := range want {
				if got.Addrs[i] != j.Table.Addr(rec) {
					t.Fatalf("%s: place %d is %#x, want %#x", lookup, i, got.Addrs[i], j.Table.Addr(rec))
				}
				if lookup == int3.Groups && i > 0 && group(rec) != group(want[i-1]) {
					from = append(from, i)
				}
			}
			if len(got.Addrs) != len(want) || !slices.Equal(got.Starts, from) {
				t.Errorf("%s: %d addresses, groups at %v, want %d and %v", lookup, len(got.Addrs), got.Starts, len(want), from)
			}
		}
	}
}

// TestShapeOfNothing: where there is no record, sites are as long as the architecture's.
func TestShapeOfNothing(t *testing.T) {
	for arch, want := range map[string]int{"x86_64": 5, "arm64": 4} {
		if got := newJob(t, config(t, arch, "breakpoint", "gen:n=0", "2")).shape.Len; got != want {
			t.Errorf("%s: %d bytes, want %d", arch, got, want)
		}
	}
	for lengths, want := range map[string]int{"1": 1, "1+6+2": 6, "2": 2, "5": 5} {
		j := newJob(t, config(t, "x86_64", "native", "gen:n=9,lengths="+lengths, "2"))
		if got := j.shape.Len; got != want || j.Arch.Traits().FetchLen != want {
			t.Errorf("lengths %s: %d bytes, fetches of %d, want %d", lengths, got, j.Arch.Traits().FetchLen, want)
		}
	}
}

// TestHowFarJumpsGo: a jump of two bytes goes 32 bytes on, everything else to the common entry.
func TestHowFarJumpsGo(t *testing.T) {
	for n, want := range map[uint8]records.Addr{1: 0x40, 2: 0x1022, 5: 0x40, 6: 0x40} {
		if got := target(isa.Site{Addr: 0x1000, Len: n}, 0x40); got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// TestBatchesOfADefect: a batch that takes more than fits is one of all patches, and its vector has as many slots as
// the request says, where there is one.
func TestBatchesOfADefect(t *testing.T) {
	c := config(t, "x86_64", "breakpoint", "gen:n=20,order=sorted", "2")
	c.Buffer.Slots = 8
	for overfull, want := range map[bool]int{false: 3, true: 1} {
		j := newJob(t, c)
		j.mutation.Overfull = overfull
		n := 0
		for range j.batches(len(j.queue), j.at) {
			n++
		}
		if n != want || j.slots() != 8 {
			t.Errorf("overfull %v: %d batches, %d slots", overfull, n, j.slots())
		}
	}
	c.Protocol = "stop-machine"
	if got := newJob(t, c).slots(); got != 0 {
		t.Errorf("without a vector there are %d slots", got)
	}
}

// TestOneCPUTakesNothing: a scenario's rounds are counted though there is nobody to take them, and no CPU takes one.
func TestOneCPUTakesNothing(t *testing.T) {
	both := func(roles string) (out [2]RunRow) {
		c := config(t, "x86_64", "native", "gen:n=4", roles)
		c.Scenario = &Scenario{Name: "function-tracer"}
		for i := range out {
			var err error
			if out[i], err = newJob(t, c).runRow(t.Context(), "", i == 0); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	for i, alone := range both("1") {
		two := both("2")[i]
		if alone.Rounds != two.Rounds || alone.IPIs+alone.IPIsPerCPU+alone.OtherIPIsPerCPU != 0 ||
			two.IPIsPerCPU != two.Rounds || two.IPIs != two.Rounds || two.Rounds <= 3 {
			t.Errorf("%s: %d rounds alone and %d of two; %d and %d interrupts", alone.Direction, alone.Rounds, two.Rounds,
				alone.IPIs, two.IPIs)
		}
	}
	c := config(t, "x86_64", "native", "gen:n=4", "2")
	c.Scenario = &Scenario{Name: "no-such"}
	if _, err := NewJob(c); err == nil || !strings.Contains(err.Error(), `action "no-such": not one of function-tracer,`) {
		t.Errorf("%v", err)
	}
}
