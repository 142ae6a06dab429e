// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Each protocol is a plan file and nothing else.
//
//go:embed protocols/*.plan
var plans embed.FS

// Native is the name of whatever an architecture's current kernel does.
const Native = "native"

// wordRounds is what riscv64 does. It has no name of its own among the protocols.
const wordRounds = "word-rounds"

// names are those of the protocols but native, which is one of these by architecture, in
// the order in which they are listed.
var names = []string{"breakpoint", "breakpoint-lazy", "word", "stop-machine", "breakpoint-global", "per-site",
	"fence-per-write"}

// ShippedPlan is a plan file that comes with the program.
type ShippedPlan struct {
	Name string // of the protocol, and of the file: breakpoint.plan
	Text []byte
}

// ShippedPlans are the built-in protocols as plan files, by name. What is native
// is breakpoint on x86_64, word on arm64 and word-rounds on riscv64.
func ShippedPlans() (out []ShippedPlan) {
	for _, name := range slices.Sorted(slices.Values(append(slices.Clone(names), wordRounds))) {
		text, err := plans.ReadFile("protocols/" + name + ".plan")
		if err != nil {
			panic(fmt.Sprintf("embedded plan files: %v", err)) // they are part of the program
		}
		out = append(out, ShippedPlan{name, text})
	}
	return out
}

// shipped are the built-in protocols by name.
var shipped = sync.OnceValue(func() map[string]*Protocol {
	all := map[string]*Protocol{}
	for _, plan := range ShippedPlans() {
		p, err := ParseProtocol("", plan.Text)
		if err != nil {
			panic(fmt.Sprintf("embedded %s.plan: %v", plan.Name, err))
		}
		all[plan.Name] = p
	}
	return all
})

// nativeOf is what the instruction set's current kernel does.
func nativeOf(t isa.Traits) string {
	switch {
	case t.RoundPerLiteral:
		return wordRounds
	case t.FetchLen == t.BreakpointLen: // a site is one word, which one store replaces
		return "word"
	}
	return "breakpoint"
}

// Names lists the protocols.
func Names() []string { return append([]string{Native}, names...) }

// Protocols lists all but native, which is one of them by architecture.
func Protocols() (list []*Protocol) {
	for _, name := range names {
		list = append(list, shipped()[name])
	}
	return list
}

// Named finds a protocol; nil if there is none of that name.
func Named(name string, t isa.Traits) *Protocol {
	switch {
	case name == Native:
		p := *shipped()[nativeOf(t)]
		p.Name = Native
		return &p
	case slices.Contains(names, name):
		return shipped()[name]
	}
	return nil
}
