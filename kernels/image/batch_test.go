// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// vectorKernel compiles testdata/vector.c to where kernels lie.
func vectorKernel(t *testing.T, options ...string) *Kernel {
	t.Helper()
	k := Of(fakekernel.Compile(t, "testdata/vector.c", options...))
	for i := range uint64(enough + 100) {
		k.Records.Sites = append(k.Records.Sites, 0xffffffff90000000+16*i)
	}
	return k
}

// TestRunBatch: kernels that nobody has built tell the size of their vectors, how often a batch
// interrupts, and whether a lower address ends one: what stands in the C source.
func TestRunBatch(t *testing.T) {
	for _, c := range []struct {
		slots, rounds int
		unordered     bool
	}{{256, 3, false}, {1, 3, false}, {100, 2, true}, {1000, 5, false}, {0, 3, false}, {0, 3, true}} {
		options := []string{fmt.Sprintf("-DSLOTS=%d", c.slots), fmt.Sprintf("-DROUNDS=%d", c.rounds)}
		if c.unordered {
			options = append(options, "-DUNORDERED")
		}
		k := vectorKernel(t, options...)
		b, err := k.RunBatch()
		want := Batch{Slots: c.slots, Queued: c.slots, Rounds: c.rounds, FromOrder: !c.unordered}
		if c.slots == 0 {
			want.Queued = enough
		}
		if err != nil || b != want {
			t.Errorf("%s: %+v, %v, want %+v", options, b, err, want)
		}
		slots, how := k.Slots()
		if c.slots > 0 && slots != c.slots || c.slots == 0 && slots != Unlimited {
			t.Errorf("%s: %d slots, %s", options, slots, how)
		}
	}
}

// TestRunSingle: a poke of one place ends the batch before it where a lower address does; where none
// does, both are one batch.
func TestRunSingle(t *testing.T) {
	for order, want := range map[string]bool{"-DORDERED": true, "-DUNORDERED": false} {
		k := vectorKernel(t, "-DSLOTS=256", "-DROUNDS=3", order)
		if alone, err := k.RunSingle(); alone != want || err != nil {
			t.Errorf("%s: the batch before is ended: %v, %v", order, alone, err)
		}
		k.Records.Sites = k.Records.Sites[:3]
		if alone, err := k.RunSingle(); alone != want || err != nil {
			t.Errorf("%s, three records: the batch before is ended: %v, %v", order, alone, err)
		}
		k.Records.Sites = k.Records.Sites[:2]
		if _, err := k.RunSingle(); !errors.Is(err, ErrNoBatch) {
			t.Errorf("%s, two records: %v", order, err)
		}
	}
}

// TestSingleIsJudged: a single poke that is executed goes alone, or is queued; where none can be, the reason is told.
func TestSingleIsJudged(t *testing.T) {
	rules := MustRules("single\n\talone if single alone | {error}\n\tqueued if single queued | {error}\n\tnone if single unknown | {error}")
	for order, want := range map[string]string{"-DORDERED": "alone", "-DUNORDERED": "queued"} {
		k := vectorKernel(t, "-DSLOTS=256", "-DROUNDS=3", order)
		if a, ok := k.Judge(&rules[0], nil); !ok || a.Value != want || a.Evidence != "<nil>" {
			t.Errorf("%s: %+v, %v", order, a, ok)
		}
		k.Records.Sites = k.Records.Sites[:2]
		if a, ok := k.Judge(&rules[0], nil); !ok || a.Value != "none" || a.Evidence != ErrNoBatch.Error() {
			t.Errorf("%s, too few records: %+v, %v", order, a, ok)
		}
	}
}

// TestMemoryOfQueues: functions that the code calls for memory give as much as they are asked for, each time elsewhere;
// a buffer that grows keeps its bytes; and bytes are copied and repeated.
func TestMemoryOfQueues(t *testing.T) {
	k := vectorKernel(t, "-DSLOTS=0", "-DROUNDS=3")
	q := k.newQueue()
	names := []string{"__kmalloc", "__kmalloc_cache_noprof", "memcpy", "memset", "krealloc", "text_poke", "__text_poke",
		"mutex_lock", "lock_is_held_type",
		"run_sync"}
	for i, name := range names {
		k.Names[name] = []uint64{uint64(0x1000 + 16*i)}
	}
	k.hook(q)
	call := func(name string, args ...uint64) uint64 {
		t.Helper()
		at, _ := k.Addr(name)
		got, err := q.Call(at, args...)
		if err != nil {
			t.Fatal(name, err)
		}
		return got
	}
	a, b := call("__kmalloc", 16), call("__kmalloc_cache_noprof", 0, 0, 16)
	if a == 0 || b == 0 || a == b {
		t.Fatalf("%#x and %#x", a, b)
	}
	q.Store(a, []byte("some memory here"))
	if got := call("memcpy", b, a, 4); got != b || string(q.Load(b, 5)) != "some\x00" {
		t.Errorf("%#x, %q", got, q.Load(b, 5))
	}
	if got := call("memset", b+4, '!', 2); got != b+4 || string(q.Load(b, 7)) != "some!!\x00" {
		t.Errorf("%#x, %q", got, q.Load(b, 7))
	}
	larger := call("krealloc", a, 32)
	if larger == a || string(q.Load(larger, 16)) != "some memory here" {
		t.Errorf("%#x, %q", larger, q.Load(larger, 16))
	}
	if fresh := call("krealloc", 0, 8); fresh == 0 || q.Load(fresh, 1)[0] != 0 {
		t.Errorf("%#x", fresh)
	}
	call("text_poke", b, a+5, 6)
	call("__text_poke", b+8, a, 2) // without a function
	call("__text_poke", 0x9999, b+12, a+2, 2)
	if got := string(q.Load(b, 14)); got != "memory\x00\x00so\x00\x00me" {
		t.Errorf("%q", got)
	}
	if call("mutex_lock", 1) != 0 || call("lock_is_held_type", 1) != 1 {
		t.Error("locks")
	}
	for rounds := range 2 { // a function that interrupts every CPU
		if got := call("run_sync", 1); got != 0 || q.rounds != rounds+1 {
			t.Errorf("%d, %d rounds", got, q.rounds)
		}
		call("memcpy", b, a, 0)
	}
}

// TestWitnesses: the code says how many slots there are; room for fewer is a contradiction, and
// without code the room is what is told.
func TestWitnesses(t *testing.T) {
	k := vectorKernel(t, "-DSLOTS=256", "-DROUNDS=3")
	k.layouts = layouts{poke: 12, vector: 300}
	if n, how := k.Slots(); n != 256 || !strings.Contains(how, "has room for 300, by its type") {
		t.Error(n, how)
	}
	k.layouts.vector = 255
	if n, how := k.Slots(); n != 0 || !strings.Contains(how, "has room for 255") {
		t.Error(n, how)
	}
	k.layouts.vector = 256
	if n, how := k.Slots(); n != 256 || how != k.batch.said() {
		t.Error(n, how)
	}
	k.layouts.vector = 255
	k.batch, k.batchErr = Batch{}, ErrNoBatch
	if n, how := k.Slots(); n != 255 || !strings.Contains(how, "cannot be executed") {
		t.Error(n, how)
	}
	k.layouts.vector = 0
	if n, how := k.Slots(); n != 0 || !strings.Contains(how, "is not known") {
		t.Error(n, how)
	}
	if n, how := k.room(); n != 0 || how != "its type and the distance of symbols do not tell" {
		t.Error(n, how)
	}
	at := k.reaches() + pageBytes // two variables a page and less apart
	for _, c := range []struct{ distance, vector, want uint64 }{
		{pageBytes, 0, pageBytes / 16}, {pageBytes - 16, 0, 0}, {pageBytes + 4, 256, 256}, {pageBytes + 64, 256, 0},
		{pageBytes - 16, 256, 0},
	} {
		k.layouts = layouts{poke: 16, vector: c.vector}
		all := append(slices.Clone(k.All), vmlinux.Symbol{Addr: at, Type: 'b', Name: "tp_vec"},
			vmlinux.Symbol{Addr: at + c.distance, Type: 'b', Name: "bp_desc"})
		other := *k
		linked := *k.Kernel
		other.Kernel, linked.Symbols = &linked, vmlinux.NewSymbols("", all)
		n, how := other.room()
		if n != int(c.want) {
			t.Errorf("%+v: %d, %s", c, n, how)
		}
		says := fmt.Sprintf("its type has %d entries of 16 bytes, and %d bytes lie between its symbol and the next", c.vector,
			c.distance)
		if c.want == 0 && c.vector > 0 && how != says {
			t.Errorf("%+v: %s, want %s", c, how, says)
		}
	}
}

// reaches is one past the highest address.
func (k *Kernel) reaches() (end uint64) {
	for _, s := range k.Segments {
		end = max(end, s.Addr+uint64(len(s.Data)))
	}
	return end
}

// TestMutate: one immediate is changed so that the code does what was asked for, and one call
// is left out.
func TestMutate(t *testing.T) {
	k := vectorKernel(t, "-DSLOTS=256", "-DROUNDS=3")
	c, err := k.WithSlots(128)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := k.with(c).RunBatch(); err != nil || b.Slots != 128 || b.Rounds != 3 ||
		c.What != k.Name(c.At)+": 128 slots, were 256" {
		t.Errorf("%+v, %v, %s", b, err, c.What)
	}
	if n, _ := k.Slots(); n != 256 {
		t.Errorf("the kernel itself has %d slots now", n)
	}
	for _, n := range []int{0, 256, 257} {
		if c, err := k.WithSlots(n); err == nil {
			t.Errorf("%d: %+v", n, c)
		}
	}
	if _, err := vectorKernel(t, "-DSLOTS=0", "-DROUNDS=3").WithSlots(128); err == nil {
		t.Error("a vector that grows was limited")
	}
	drop, err := k.WithoutCall("flush", "on_each_cpu_cond_mask")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := k.with(drop).RunBatch(); err == nil {
		t.Errorf("no CPU is interrupted, and %+v", b)
	}
	if c, err := k.WithoutCall("flush", "text_poke_queue"); err == nil {
		t.Errorf("%+v", c)
	}
	raw := []byte("a raw image of a kernel")
	changed, err := k.Apply(raw, Change{At: k.Segments[0].Addr + 8, Old: raw[8:10], New: []byte{1, 2}})
	if err != nil || changed[8] != 1 || changed[9] != 2 || !slices.Equal(changed[10:], raw[10:]) {
		t.Errorf("%v", err)
	}
	if _, err := k.Apply(raw, Change{At: k.Segments[0].Addr + 8, Old: []byte{raw[8] + 1}, New: []byte{1}}); err == nil {
		t.Error("other bytes stood there")
	}
}
