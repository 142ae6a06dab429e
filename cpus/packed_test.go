// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
)

// packer is a codec of a machine of three CPUs; apart: with a step that loads the ops before the site is fetched.
func packer(t testing.TB, apart bool) *Codec {
	f := newFixture(t, "x86_64", CodecSites, busy(1), noHandler{}, Weak)
	k := &Codec{Code: f.code, NopOps: testNop, Ops: []uint64{testTracer, testNop, 7}, CPUs: 3,
		Acts: []isa.Insn{{Kind: isa.Nop}, {Kind: isa.Call, Target: 9}, {Kind: isa.Jump, Target: 8}}}
	f.code.Path = NativePath(f.code.Traits, f.code.Len, false)
	if apart {
		f.code.Path = f.code.Path.With(SiteApart)
	}
	for i := range CodecSites {
		k.Inside = append(k.Inside, []Executed{{f.on[i], 1}, {f.off[i], 2}, {f.off[i], 4}})
	}
	return k
}

// inInterrupt are phases that lead back to another one.
var inInterrupt = []Phase{Interrupted, Syncing, Answering}

// kept is what a word keeps of a CPU: what matters from its phase on.
func (k *Codec) kept(c CPU) CPU {
	out := CPU{ID: c.ID, Role: c.Role, Masked: c.Masked, Awake: c.Awake, Synced: c.Synced, stop: c.stop}
	out.Phase, out.Quiet = c.Phase, c.Quiet
	if c.Quiet {
		out.Quiesce = c.Quiesce
	}
	if c.AtBorder() || c.Phase == Stopped {
		out.polled = c.polled
	}
	ph := c.Phase
	if slices.Contains(inInterrupt, ph) {
		if out.Back = c.Back; ph != Interrupted {
			out.Taken.Ticket = c.Taken.Ticket
		}
		if ph == Interrupted { // nothing is taken yet: the ticket is that of the first sender
			out.Taken.Ticket = Ticket(c.ID)
		}
		ph = c.Back
	}
	if slices.Contains([]Phase{Boundary, Asleep, Arriving, Stopped, Resuming, Crossing, Down}, ph) {
		return out
	}
	out.Site = c.Site
	switch ph {
	case Inside:
		out.Text, out.Off = c.Text, c.Off
	case Entered:
		out.Promise = c.Promise
	case Calling, Doubting:
		if out.Ops = c.Ops; c.Ops == k.NopOps {
			out.Promise = c.Promise
		}
	case Returning:
		out.Act = c.Act
	case Trapped, Leaving:
		if c.hit && k.Code.Path.found>>ph&1 != 0 {
			out.hit, out.Act = true, c.Act
		}
	}
	if k.carries(ph) {
		out.Ops = c.Ops
	}
	if slices.Contains([]Phase{Signalled, Trapped, Searching, Leaving, Returning, Missed, Retrying}, ph) {
		out.Off = c.Off
	}
	return out
}

// drawCPU draws a CPU of a small machine in any phase.
func drawCPU(t *rapid.T, k *Codec) CPU {
	n := func(what string, low, high int) int { return rapid.IntRange(low, high).Draw(t, what) }
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	c := CPU{ID: int16(n("ID", 0, 2)), Role: Idle, polled: yes("polled"), hit: yes("hit"), stop: yes("stop"),
		Masked: uint16(n("masked", 0, 3)), Awake: uint16(n("awake", 0, 3)), Synced: Seq(n("synced", 0, CodecSynced))}
	c.Phase, c.Site, c.Quiet = Phase(n("phase", 0, int(numPhases)-1)), int32(n("site", 0, CodecSites-1)), yes("quiet")
	ticket := func(what string) Ticket { return Ticket(n(what, 0, CodecSenders-1)*k.CPUs + int(c.ID)) }
	c.Quiesce, c.Taken.Ticket = ticket("quiesce"), ticket("ticket")
	if c.Back = Phase(n("back", 0, int(lastBorder)+1)); c.Back > lastBorder {
		c.Back = Stopped
	}
	c.Ops, c.Act = rapid.SampledFrom(k.Ops).Draw(t, "ops"), rapid.SampledFrom(k.Acts).Draw(t, "act")
	if seq := n("promise", 0, CodecSynced); seq > 0 {
		c.Promise = PromiseOf(Seq(seq), uint64(n("taken back", 0, promiseCounts-1)))
	}
	ph := c.Phase
	if slices.Contains(inInterrupt, ph) {
		ph = c.Back
	}
	if c.Off = uint8(n("offset", 0, 7)); ph == Inside {
		e := rapid.SampledFrom(k.Inside[c.Site]).Draw(t, "executed")
		c.Text, c.Off = e.Text, e.Off
	}
	return c
}

// TestPacked: a word keeps what matters from a CPU's phase on, and nothing else.
func TestPacked(t *testing.T) {
	for _, apart := range []bool{false, true} {
		k := packer(t, apart)
		rapid.Check(t, func(t *rapid.T) {
			c := drawCPU(t, k)
			want, got := k.kept(c), CPU{ID: c.ID, Role: c.Role}
			w := k.Pack(&c)
			if k.Unpack(w, &got); got != want {
				t.Fatalf("apart %v: %+v\nis packed, and %+v\nis unpacked, want %+v", apart, c, got, want)
			}
			if w>>CodecBits != 0 || k.Pack(&got) != w {
				t.Fatalf("%x, and packed again %x", w, k.Pack(&got))
			}
			site, about := k.Site(w)
			if want.Site != 0 && (!about || site != int(want.Site)) || !about && site != 0 {
				t.Fatalf("%+v is about site %d, %v", c, site, about)
			}
		})
	}
}

// TestPackedWays: where a CPU is on its ways is kept, and all that an NMI has interrupted.
func TestPackedWays(t *testing.T) {
	k := packer(t, false)
	rapid.Check(t, func(t *rapid.T) {
		var c, under CPU
		for _, of := range []*CPU{&c, &under} {
			*of = drawCPU(t, k)
			of.way, of.at = Section(rapid.IntRange(0, int(NumSections)-1).Draw(t, "way")), uint8(rapid.IntRange(0, 15).Draw(t,
				"at"))
			of.cr3 = uint8(rapid.IntRange(0, 15).Draw(t, "cr3"))
		}
		w := k.PackWay(&c, &under)
		got, gotUnder := CPU{}, CPU{ID: under.ID, Role: under.Role}
		k.UnpackWay(w, &got, &gotUnder)
		if got.way != c.way || got.at != c.at || got.cr3 != c.cr3 {
			t.Fatalf("%+v, want %+v", got, c)
		}
		want := CPU{ID: under.ID, Role: under.Role}
		if c.InNMI() {
			want = k.kept(under)
			want.way, want.at, want.cr3 = under.way, under.at, under.cr3
		}
		if gotUnder != want {
			t.Fatalf("in an NMI %v: %+v, want %+v", c.InNMI(), gotUnder, want)
		}
	})
}

// TestPackedTasks: a parked task is kept as a CPU's is, and what it owes.
func TestPackedTasks(t *testing.T) {
	k := packer(t, false)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCPU(t, k)
		c.Phase = rapid.SampledFrom([]Phase{Boundary, Again, Entered, Calling, Guarded}).Draw(t, "phase")
		want := k.kept(c).Task
		if c.Phase == Boundary {
			want = Task{}
		}
		w := k.PackTask(&c.Task)
		if got := k.UnpackTask(w, int(c.ID)); got != want || w>>TaskBits != 0 {
			t.Fatalf("%+v is packed as %x, and %+v unpacked, want %+v", c.Task, w, got, want)
		}
	})
}

// TestShift: positions above those that are forgotten move down, those among them become the one before.
func TestShift(t *testing.T) {
	for seq, want := range map[Seq]Seq{1: 1, 4: 4, 5: 4, 6: 4, 7: 4, 8: 5, 9: 6} { // 5 to 7 are forgotten
		c := CPU{Synced: seq}
		c.Promise = PromiseOf(seq, 2)
		if c.Shift(5, 3); c.Synced != want || c.Promise != PromiseOf(want, 2) {
			t.Errorf("%d: %d, promised %x, want %d", seq, c.Synced, c.Promise, want)
		}
	}
	if p := PromiseOf(0, 3); p.Shift(0, 9) != p {
		t.Errorf("no promise: %x", p.Shift(0, 9))
	}
	p := PromiseOf(9, 2)
	if p.TakenBack() != PromiseOf(0, 3) || p.With(4) != PromiseOf(4, 2) {
		t.Errorf("%x, %x", p.TakenBack(), p.With(4))
	}
	newest := Version{Text: 5, Seq: 3}
	if p.Of(newest, 5, 8) != PromiseOf(3, 2) || p.Of(newest, 6, 8) != PromiseOf(9, 2) {
		t.Errorf("%x, %x", p.Of(newest, 5, 8), p.Of(newest, 6, 8))
	}
}

// TestOwes: what a CPU has to do at the next border between two calls.
func TestOwes(t *testing.T) {
	for _, stop := range []bool{false, true} {
		for _, quiet := range []bool{false, true} {
			c := CPU{stop: stop}
			c.Quiet, c.Quiesce = quiet, 7
			if tick, owes := c.Asked(); c.Owes() != (stop || quiet) || owes != quiet || tick != 7 {
				t.Errorf("stop %v, quiet %v: %v, %d, %v", stop, quiet, c.Owes(), tick, owes)
			}
		}
	}
	var c CPU
	for _, want := range []bool{true, false} {
		if c.SkipPoll(); !want {
			c.Repoll()
		}
		if c.Polled() != want {
			t.Errorf("polled: %v", !want)
		}
	}
}

// TestCounted: readings of a ledger, the counts between two of them, and their sums.
func TestCounted(t *testing.T) {
	l := &Ledger{start: time.Now().Add(-time.Hour), cpus: make([]account, 2)}
	l.sent[Sync].Store(2)
	l.take(0, Sync)
	first := l.Read()
	if cause, ok := first.Conserved(); ok || cause != Sync {
		t.Errorf("%v, %v", cause, ok)
	}
	l.take(1, Sync)
	l.cpus[1].rounds[Sync].Add(1)
	all := l.Read()
	if cause, ok := all.Conserved(); !ok {
		t.Errorf("%v differs", cause)
	}
	if diff := cmp.Diff(all.Taken, [][NumCauses]uint64{{Sync: 1}, {Sync: 1}}); diff != "" || all.TotalTaken(Sync) != 2 ||
		all.TotalRounds(Sync) != 1 || all.TotalTaken(Stop) != 0 || all.TotalRounds(Stop) != 0 {
		t.Error(diff)
	}
	since := all.Since(first)
	if fmt.Sprint(since.Taken[0][Sync], since.Taken[1][Sync], since.Rounds[1][Sync], since.Sent[Sync]) != "0 1 1 0" {
		t.Errorf("%+v", since)
	}
	since.Burst = []int64{4, 5}
	if diff := cmp.Diff(all.Taken, first.Plus(since).Taken); diff != "" || !slices.Equal(first.Plus(since).Burst,
		since.Burst) ||
		first.Plus(since).Sent != all.Sent {
		t.Error(diff)
	}
	if !slices.Equal(all.Burst, []int64{1, 1}) {
		t.Errorf("%v", all.Burst)
	}
	l.ForgetBursts()
	if got := l.Read(); !slices.Equal(got.Burst, []int64{0, 0}) || got.TotalTaken(Sync) != 2 {
		t.Errorf("%+v", got)
	}
	for want := int64(1); want < 4; want++ {
		l.start = time.Now()
		l.cpus[0].bin.Store(0)
		l.cpus[0].inBin.Store(want - 1)
		if l.take(0, Stop); l.cpus[0].bin.Load() == 0 && l.Read().Burst[0] != want {
			t.Errorf("%d within a millisecond, want %d", l.Read().Burst[0], want)
		}
	}
}

// TestNamesOfArches: instruction sets, layouts and lengths that are not there are refused with those that are.
func TestNamesOfArches(t *testing.T) {
	x86, _ := ParseArch("x86_64")
	arm, _ := ParseArch("arm64")
	for want, does := range map[string]func() error{
		`arch "vax": not one of x86_64, arm64, riscv64`: func() error {
			_,
				err := ParseArch("vax")
			return err
		},
		`layout "x": arm64 has sites of layout call-ops, bti, plain`: func() error {
			_, err := WithLayout(arm,
				"x")
			return err
		},
		"sites of 4 bytes: on arm64 all have the length of its layout": func() error {
			_, err := WithLength(arm,
				4)
			return err
		},
		"sites of 3 bytes: x86_64 patches [5 1 2 6]": func() error {
			_, err := WithLength(x86,
				3)
			return err
		},
		"<nil>": func() error { _, err := WithLength(x86, 2); return err },
	} {
		if got := fmt.Sprint(does()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
