// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// family is what the classes of one instruction set have in common: their
// instructions and their order of data accesses.
type family uint8

const (
	arm family = 1 << iota
	x86
	rv
	windows // of any instruction set, as package cpus models it; see class.window
)

// class is a machine class: the promises of its makers about fetches.
type class struct {
	name   string
	family family

	dic, idc bool // CTR_EL0.DIC and .IDC, on arm

	fetches rvFetch // what a hart's fetches are ordered with, on rv

	tears        bool // parts of an aligned site may come from different versions
	tearsAcross  bool // so may the parts of an unaligned one
	windowTears  bool // the same two of package cpus: cpus.Quadword for amd, else cpus.Weak
	windowAcross bool
}

// rvFetch is what rv classes promise of a hart's fetches beyond the base: that a fetch
// comes before what the fetched instruction does, and that fence.i orders accesses
// before it before fetches behind it.
type rvFetch struct {
	inOrder bool // Ziccid: they come in program order
	writes  bool // each comes before later writes
	reads   bool // and before later reads: the hart decodes in order
	fenceI  bool // fence.i orders earlier fetches, too, before later ones
}

var classes = []*class{
	{name: "arm(0,0)", family: arm},
	{name: "arm(0,1)", family: arm, idc: true},
	{name: "arm(1,1)", family: arm, dic: true, idc: true},
	{name: "intel", family: x86, tears: true, tearsAcross: true, windowTears: true, windowAcross: true},
	{name: "amd", family: x86, tearsAcross: true, windowAcross: true},
	{name: "rv(ziccif)", family: rv, tearsAcross: true, windowAcross: true},
	{name: "rv(plain)", family: rv, tears: true, tearsAcross: true, windowAcross: true},
	{name: "rv(ziccid)", family: rv, fetches: rvFetch{inOrder: true}, tearsAcross: true, windowAcross: true},
	{name: "rv(decode-w)", family: rv, fetches: rvFetch{writes: true}, tearsAcross: true, windowAcross: true},
	{name: "rv(decode)", family: rv, fetches: rvFetch{writes: true, reads: true}, tearsAcross: true, windowAcross: true},
	{name: "rv(ir3)", family: rv, fetches: rvFetch{fenceI: true}, tearsAcross: true, windowAcross: true},
}

// ClassNames lists the machine classes as files spell them: arm(DIC,IDC) by the
// two bits of CTR_EL0, the two vendors of x86, and rv with and without Ziccif, and
// with Ziccif and one rule more.
func ClassNames() []string { return spelling.Each(classes, func(c *class) string { return c.name }) }

func parseClass(s string) (*class, error) {
	if i := slices.Index(ClassNames(), s); i >= 0 {
		return classes[i], nil
	}
	return nil, fmt.Errorf("no machine class; there are %s", strings.Join(ClassNames(), " "))
}

// whole tells whether one fetch of the site returns one version.
func (c *class) whole(s *site) bool {
	if s.aligned {
		return !c.tears
	}
	return len(s.initial) == 1 || !c.tearsAcross
}

// window is the window model of the class: package cpus in the words of a litmus test.
// Every CPU goes through its program in order. A store stands for the store with all its
// maintenance. A fetch returns any version since the CPU last synchronised. isb, fence.i,
// serialise and an answered IPI synchronise; dc, ic, barriers and dependencies have no effect.
// Bytes mix where the grain is a byte, but not within an aligned quadword of amd, parcels in
// an unaligned word of rv, nothing elsewhere (isa.Arch.Grain).
func (c *class) window() *class {
	return &class{name: c.name + " by windows", family: windows, tears: c.windowTears, tearsAcross: c.windowAcross}
}

// Verdict says whether an outcome can happen.
type Verdict uint8

// The verdicts. None is no expectation.
const (
	None Verdict = iota
	Allowed
	Forbidden
)

var verdictNames = [...]string{"none", "allowed", "forbidden"}

func (v Verdict) String() string { return verdictNames[v] }

func parseVerdict(s string) (Verdict, error) {
	if i := slices.Index(verdictNames[:], s); i >= 0 {
		return Verdict(i), nil
	}
	return None, fmt.Errorf("no kind; there are %s", strings.Join(verdictNames[:], " "))
}

func verdict(reached bool) Verdict {
	if reached {
		return Allowed
	}
	return Forbidden
}

// Relation is the relation of the window model's verdict to the expected one.
type Relation uint8

// The relations.
const (
	Same     Relation = iota
	Weaker            // it allows what cannot happen: sound, only pessimistic
	Stronger          // it forbids what can happen: its users must say why that does not matter
)

var relationNames = [...]string{"same", "weaker", "stronger"}

func (r Relation) String() string { return relationNames[r] }
