// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/records"
)

// TestPathTables: what each path amounts to, phase by phase, and in which phase each of its steps is made.
func TestPathTables(t *testing.T) {
	var out bytes.Buffer
	for _, arch := range ArchNames() {
		a, _ := ParseArch(arch)
		for _, v := range []Variant{SiteCalls, SiteCallOps, SiteApart, SiteApartMasked, SiteDirect, HandlerActs,
			HandlerActsStale,
			HandlerSkips, MissForgives, MissFatal, EntryCatchesUp, EntryEarly} {
			for _, lazy := range []bool{false, true} {
				p := NativePath(a.Traits(), a.Traits().FetchLen, lazy).With(v)
				code := &Code{Arch: a, Traits: a.Traits(), Path: p, Len: a.Traits().FetchLen}
				fmt.Fprintf(&out, "%s, lazy %v, %v %s\n%s\n", arch, lazy, v.in, v.steps, p)
				fmt.Fprintf(&out, "\tmasks %v apart %v guards %v after %v ways %v named %v literals %v held in", p.Masks(),
					p.Apart, p.Guards,
					p.After, p.Ways(), code.Named(), code.Literals())
				for ph := range numPhases {
					if p.Holds(ph) {
						fmt.Fprintf(&out, " %q", ph.String())
					}
				}
				for i := range NumSections {
					in := Section(i)
					for _, s := range p.Program(in).Steps() {
						ph, own := p.PhaseOf(in, s)
						fmt.Fprintf(&out, "\n\t%s: %s: %s %v, reads %v", in, s, ph, own, s.ReadsLiteral())
					}
					if way := p.WaySteps(in); len(way) > 0 {
						fmt.Fprintf(&out, "\n\tway %s", way)
					}
				}
				fmt.Fprintln(&out)
			}
		}
	}
	golden.Check(t, filepath.Join("testdata", "paths.txt"), out.Bytes())
}

// TestAnswers: how often a Random gives each answer, with nothing in flight, with a promise, and with stores.
func TestAnswers(t *testing.T) {
	var out bytes.Buffer
	for state := range 3 {
		f := newFixture(t, "x86_64", 3, busy(1), noHandler{}, Weak)
		if state > 0 {
			f.SetInFlight([]int32{2, 0})
		}
		if state == 1 {
			f.SetPromised()
		}
		for what := ChooseSite; what <= ChooseUpdate; what++ {
			for _, n := range []int{1, 2, 3, 10} {
				if state > 0 && what == ChooseSite && n < 3 {
					continue // there are fewer sites than are in flight
				}
				r, counts := NewRandom(3, 4), make([]int, n)
				r.busy = &f.inFlight
				for range 20_000 {
					counts[r.Choose(what, n)]++
				}
				fmt.Fprintln(&out, state, what, n, counts)
			}
		}
		r, long := NewRandom(3, 4), 0
		r.busy = &f.inFlight
		for range 200_000 {
			r.Choose(ChooseSite, 3)
			if n := r.Choose(ChooseLinger, 1000); n > 0 {
				long++
			}
		}
		fmt.Fprintln(&out, state, "lingers", long)
	}
	for n := range uint64(20) {
		if n > 0 {
			fmt.Fprintln(&out, "stride of", n, Stride(n))
		}
	}
	golden.Check(t, filepath.Join("testdata", "answers.txt"), out.Bytes())
}

// TestLists: roles that are refused, whole; tallies; fetches in parts; and how far a CPU can have come.
func TestLists(t *testing.T) {
	var out bytes.Buffer
	for _, spec := range []string{"", "0", "1", "8192", "8193", "-1", "x", "busy", "busy=", "busy=x", "busy=-1", "bsy=1",
		"isolated=2",
		"offline=1", "busy=0,idle=1", "busy=8192,idle=1", "busy=2,idle=1,busy=3", "irqsoff=1,isolated=1,offline=1"} {
		roles, err := ParseRoles(spec)
		text := FormatRoles(roles)
		fmt.Fprintf(&out, "%q: %d %s %d %v\n", spec, len(roles), text, Housekeeper(roles), err)
	}
	for r := range Offline + 2 {
		fmt.Fprintln(&out, r.Valid(), r.Valid() && r.RunsPatcher())
	}
	for ph := range numPhases {
		c := CPU{}
		c.Phase = ph
		fmt.Fprintln(&out, ph, "|", ph.Does(), c.AtBorder(), c.Resting(), c.BetweenCalls(), c.Preemptible(), c.Houses(),
			c.InInterrupt(),
			c.CanPark(), c.CanUnpark(), c.There())
	}
	for i := range NumSections {
		for _, s := range StepsOf(Section(i)) {
			fmt.Fprintf(&out, "%s: %s: %s\n", Section(i), s, s.Does())
		}
	}
	for e := range NumEvents {
		fmt.Fprintf(&out, "%q ", e.String())
	}
	a, b := Tally{Traced: 5, Untraced: 3, Lost: 2, Trap: 9}, Tally{Traced: 1, Lost: 1, Trap: 4}
	fmt.Fprintln(&out, a.Calls(), a.Add(b), a.Sub(b), a)
	for _, arch := range ArchNames() {
		for _, fetch := range Fetches() {
			f := newFixture(t, arch, 1, busy(1), noHandler{}, fetch)
			fmt.Fprint(&out, arch, " ", fetch, fetch.InOrder(), " grains")
			for i := range 9 {
				fmt.Fprint(&out, " ", f.code.Grains(f.code.Sites[0]+records.Addr(i)))
			}
			fmt.Fprintln(&out)
		}
	}
	region := newFixture(t, "x86_64", 1, busy(1), noHandler{}, Weak)
	texts := []isa.Text{isa.TextOf(0x90, 0x66, 0x90, 0x90, 0x90), isa.TextOf(0xeb, 3, 0x90, 0x90, 0x90), region.on[0]}
	for _, back := range []bool{false, true} {
		region.code.Path.GoesBack = back
		fmt.Fprintln(&out, region.code.Halfway(0, texts))
	}
	table, states, err := NewOpsTable(testNop, testTracer)
	fmt.Fprintln(&out, table.Bits(), states, err, table.Call(states, testNop), table.Call(states, testTracer),
		table.Call(states, 1))
	for n := range 20 {
		if err := table.Add(uint64(100 + n)); err != nil {
			fmt.Fprintln(&out, n, err, table.Bits())
			break
		}
	}
	golden.Check(t, filepath.Join("testdata", "lists.txt"), out.Bytes())
}
