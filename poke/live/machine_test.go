// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
)

// opened is a machine of some sites, which call nobody, until the test ends.
func opened(t *testing.T, n, threads int, change func(c *Config)) *Machine {
	t.Helper()
	code, list := patches(t, n, 0x140)
	c := Config{Code: code, Initial: func(i int) isa.Text { return list[i].Old }, Threads: threads, Seed: 1}
	if change != nil {
		change(&c)
	}
	m, err := Open(c)
	if err != nil {
		t.Skip("skipped:", err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestCountsByField: sums and differences are of each field alone.
func TestCountsByField(t *testing.T) {
	m := opened(t, 1, 3, nil)
	fields := reflect.TypeFor[Counts]().NumField()
	for i := range fields {
		for thread, by := range m.Threads() {
			b := by.b
			all := []*uint64{&b.begun, &b.traced, &b.untraced, &b.wrong, &b.unhandled, &b.faults, &b.traps, &b.hits,
				&b.misses, &b.comparisons, &b.lost, &b.stale}
			*all[i] = uint64(100*i + 10*thread + 7)
		}
	}
	sum, one := reflect.ValueOf(m.Counts()), reflect.ValueOf(m.Threads()[2].Counts())
	less := reflect.ValueOf(m.Counts().Sub(m.Threads()[2].Counts()))
	for i := range fields {
		name, n := sum.Type().Field(i).Name, uint64(100*i+7)
		s, o, l := sum.Field(i).Uint(), one.Field(i).Uint(), less.Field(i).Uint()
		if s != 3*n+30 || o != n+20 || l != 2*n+10 {
			t.Errorf("%s: %d, %d, %d, want %d, %d, %d", name, s, o, l, 3*n+30, n+20, 2*n+10)
		}
	}
}

// TestThreadsStand: a thread that is halted makes no call, but for what it practises; while all stand each is between
// two calls, and goes on afterwards unless it was halted before.
func TestThreadsStand(t *testing.T) {
	m := opened(t, 3, 2, nil)
	halted, running := m.Threads()[0], m.Threads()[1]
	sites := m.List([]int32{0, 1, 2})
	calls := func(want uint64, do func()) {
		t.Helper()
		before := halted.Counts()
		do()
		if did := halted.Counts().Sub(before); did.Begun != want || did.Untraced != want {
			t.Errorf("%+v, want %d calls", did, want)
		}
	}
	calls(50, func() { halted.Stretch(50, sites) })
	calls(7, func() { halted.Call(1, 7) })
	halted.Halt()
	calls(0, func() { halted.Stretch(50, sites) })
	calls(20, func() { halted.Practise(20, sites) })
	calls(0, func() { halted.Stretch(50, sites) })
	var end atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for !end.Load() {
			running.Stretch(100, sites)
		}
	})
	stood := 0
	for range 5 {
		if err := m.Standing(func() {
			stood++
			before := running.Counts()
			if Spin(10_000); !running.Between() || !halted.Between() || running.Counts() != before {
				t.Error("a thread calls while all stand")
			}
		}); err != nil {
			t.Error(err)
		}
		for begun := running.Counts().Begun; running.Counts().Begun == begun; {
			Spin(100)
		}
	}
	calls(0, func() { halted.Stretch(50, sites) })
	end.Store(true)
	wait.Wait()
	halted.Continue()
	calls(3, func() { halted.Stretch(3, sites) })
	if stood != 5 {
		t.Errorf("all stood %d times, want 5", stood)
	}
}

// TestFindings: a breakpoint without an entry, and a call that leads astray, are found once, by the addresses of the
// records; and forgotten.
func TestFindings(t *testing.T) {
	m := opened(t, 2, 1, func(c *Config) { c.Pads, c.Unforgiving = true, true })
	thread, g, code := m.Threads()[0], m.Ground(0, poke.Sorted, -1), m.text.code
	for kind := Fault; kind <= Broken; kind++ {
		if f, any := thread.Found(kind); any {
			t.Errorf("kind %d: %+v", kind, f)
		}
	}
	g.Store(0, 0, 1, x86_64.Arch.Breakpoint())
	thread.Call(0, 2)
	astray, _, err := x86_64.Arch.Enabled(isa.Site{Addr: code.Sites[1], Len: 5},
		isa.Destination{Target: code.Sites[1]&^31 + 64, Entry: code.Entry})
	if err != nil {
		t.Fatal(err)
	}
	g.Store(1, 0, 5, astray)
	thread.Stretch(3, m.List([]int32{1}))
	if c := thread.Counts(); c.Unhandled != 2 || c.Wrong != 3 || c.Begun != 5 || c.Traps != 2 {
		t.Errorf("%+v", c)
	}
	for kind, site := range map[Kind]int{Missed: 0, Landed: 1} {
		if f, any := thread.Found(kind); !any || f.Site != uint64(code.Sites[site]) {
			t.Errorf("kind %d: %+v, %v, want site %#x", kind, f, any, code.Sites[site])
		}
	}
	thread.b.fault = Finding{Site: m.text.exec(code.Sites[1]), PC: m.text.exec(code.Entry), Signal: 4, Bytes: 9}
	want := Finding{Site: uint64(code.Sites[1]), PC: uint64(code.Entry), Signal: 4, Bytes: 9}
	if f, any := thread.Found(Fault); !any || f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	thread.b.broken.Site = 1
	thread.ForgetFound()
	for kind := Fault; kind <= Broken; kind++ {
		if f, any := thread.Found(kind); any {
			t.Errorf("kind %d is not forgotten: %+v", kind, f)
		}
	}
}

// TestAnswersCount: threads answer a round once each, but for the one that patches, and a grace period without being
// counted; one that is in a call answers when it has begun the next.
func TestAnswersCount(t *testing.T) {
	m := opened(t, 1, 3, nil)
	g := m.Ground(0, poke.Sorted, 1)
	in := m.Threads()[2].b
	for i, c := range []struct {
		cause cpus.Cause
		want  int // rounds that count so far
	}{{cpus.Sync, 1}, {cpus.Cause(cpus.NumCauses), 1}, {cpus.Cause(cpus.NumCauses - 1), 2}, {cpus.Quiesce, 2}} {
		in.in = 1
		g.Send(c.cause, false)
		if g.Answered() || g.Answers[2] != c.want-map[bool]int{true: 1}[c.cause < cpus.Cause(cpus.NumCauses)] {
			t.Errorf("%d: %v: a thread in a call has answered: %v", i, c.cause, g.Answers)
		}
		if in.begun++; !g.Answered() {
			t.Errorf("%d: %v: a thread that calls again has not answered", i, c.cause)
		}
		if d := cmp.Diff([]int{c.want, 0, c.want}, g.Answers); d != "" || g.Rounds != c.want || len(g.Times) != c.want {
			t.Errorf("%d: %v: %d rounds, %d times %s", i, c.cause, g.Rounds, len(g.Times), d)
		}
	}
	in.in = 0
	ctx, end := context.WithCancelCause(t.Context())
	why := errors.New("no time")
	end(why)
	for op, want := range map[poke.Op]error{poke.Lock: why, poke.Expect: why, poke.Sync: nil} {
		if err := g.Wait(ctx, op); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", op, err, want)
		}
	}
	g.StopMachine(false)
	for i, thread := range m.Threads() {
		if halted := thread.b.stop != 0; halted != (i != 1) {
			t.Errorf("thread %d is halted %v", i, halted)
		}
	}
	g.Free()
	for i, thread := range m.Threads() {
		if thread.b.stop != 0 || g.halted {
			t.Errorf("thread %d is still halted", i)
		}
	}
}

// TestStoresBytes: a store writes just the bytes that it is of.
func TestStoresBytes(t *testing.T) {
	m := opened(t, 2, 1, nil)
	g := m.Ground(0, poke.Sorted, -1)
	is := m.Peek(1)
	for off := range 5 {
		for n := 1; off+n <= 5; n++ {
			text := isa.Text(0x1122334455) >> (8 * n) & (1<<(8*n) - 1)
			g.Store(1, off, n, text)
			if is = is.Splice(off, n, text); m.Peek(1) != is || m.Peek(0) != x86_64.Nop5 {
				t.Errorf("%d bytes at %d: %s, want %s", n, off, m.Peek(1).Format(5), is.Format(5))
			}
		}
	}
	if g.Stores != 15 {
		t.Errorf("%d stores, want 15", g.Stores)
	}
}

// TestAims: threads prefer the sites of an update where that is asked for, until it is forgotten.
func TestAims(t *testing.T) {
	for _, aims := range []bool{false, true} {
		m := opened(t, 4, 1, nil)
		_, list := patches(t, 4, 0x140)
		g := m.Ground(0, poke.Sorted, -1)
		g.Aim = aims
		update(t, g, "native", list, 4)
		if (inFlight != 0) != aims {
			t.Errorf("aims %v: the threads' list is %#x", aims, inFlight)
		}
		if m.Forget(); inFlight != 0 {
			t.Error("the list is not forgotten")
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAutopsies: the files of a machine tell which site each thread was in, and how many calls it had begun.
func TestAutopsies(t *testing.T) {
	var files [2]*os.File
	for i, what := range []string{"blocks", "text"} {
		f, err := File(what)
		if err != nil {
			t.Skip("skipped:", err)
		}
		defer f.Close()
		files[i] = f
	}
	m := opened(t, 3, 4, func(c *Config) { c.Blocks, c.Text = files[0], files[1] })
	code := m.text.code
	for i, thread := range m.Threads() {
		thread.b.in, thread.b.begun, thread.b.at = 1, uint64(10+i), m.text.exec(code.Sites[i%3])
	}
	m.Threads()[1].b.in = 0
	m.Threads()[3].b.at++ // of no site
	text := func(site int) []byte {
		return append([]byte{}, m.text.rw.bytes(int(m.text.offsets[site]), 8)...)
	}
	want := []Executing{{Thread: 0, Site: 0, Bytes: text(0)}, {Thread: 2, Site: 2, Bytes: text(2)}}
	if d := cmp.Diff(want, Autopsy(files[0], files[1], code)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]uint64{10, 0, 12, 13}, Begun(files[0])); d != "" {
		t.Error(d)
	}
	for _, thread := range m.Threads() {
		thread.b.in = 0
	}
}

// TestMachinesRefused: what a machine cannot be made of, in whole messages; nothing stays mapped of one that is closed.
func TestMachinesRefused(t *testing.T) {
	if err := opened(t, 1, 1, nil).Close(); err != nil { // it can be made at all
		t.Error(err)
	}
	whole, _ := patches(t, 1, 0x140)
	far := *whole // from its first page to the site, 0x103d bytes and 2 GiB, and three pages
	far.Entry -= 1 << 31
	other := *whole
	other.Traits.Name = "other"
	nop := func(int) isa.Text { return x86_64.Nop5 }
	for want, c := range map[string]Config{
		"no sites": {Initial: nop, Threads: 1},
		"sites of other: this machine executes x86_64": {Code: &other, Initial: nop, Threads: 1},
		"nothing says what stands at the sites":        {Code: whole, Threads: 1},
		"0 threads: want 1 to 4194304":                 {Code: whole, Initial: nop},
		"4194305 threads: want 1 to 4194304": {Code: whole, Initial: nop,
			Threads: 1<<22 + 1},
		"sites and their entry span 2147500093 bytes: a call reaches 2147483648": {Code: &far, Initial: nop, Threads: 1},
	} {
		m, err := Open(c)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if m != nil {
			_ = m.Close()
		}
	}
	mapped := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip("skipped:", err)
		}
		return strings.Count(string(maps), "memfd:textpoke text")
	}
	before := mapped()
	m := opened(t, 1, 1, nil)
	if n := mapped() - before; n != 2 {
		t.Errorf("the text is mapped %d times, want 2", n)
	}
	if err := m.Close(); err != nil || mapped() != before {
		t.Errorf("%v, the text is still mapped %d times", err, mapped()-before)
	}
}
