// SPDX-License-Identifier: Apache-2.0

package record

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/kernels/image"
)

// Watch is a function that is watched: a CPU that enters it makes a step.
type Watch struct {
	Kind     Kind
	Function string
	At       uint64
	Evidence string // why it is this one
	args     []string
	load     load // where it is watched in place of its first instruction, if its variable is not 0
}

// The meanings of a watched function's arguments; steps.go takes a callback and the
// registers of a trap (frame) by their place.
const (
	at     = "at"     // the address that is stored to
	from   = "from"   // where the new bytes lie
	length = "length" // how many
	word   = "word"   // the new bytes themselves, of an instruction
	long   = "long"   // those of a literal
	fill   = "fill"   // a byte that is repeated
	copier = "copier" // the function that copies: text_poke_memset repeats one byte
	called = "called" // the function that every CPU is to call
)

// rule says that a function is watched where some others lead to it, or where it is there, if none is named.
type rule struct {
	Kind     Kind     `col:"kind"`
	Function string   `col:"function"`
	Args     []string `col:"arguments"`
	From     []string `col:"from"`
	Needs    string   `col:"needs,maybe"` // another function that must be there
}

// rules are looked at in this order. Of rules for one function, the first that holds counts. The sources:
// arch/x86/kernel/alternative.c, Linux 5.4 to 7.2; arch/arm64/kernel/patching.c and arch/riscv/kernel/patch.c, 6.1 to
// 7.2; kernel/stop_machine.c, kernel/smp.c, kernel/trace/ftrace.c and kernel/kprobes.c.
//
//go:embed rules.csv
var ruleTable string

var rules = sheet.Must[rule]("rules.csv", ruleTable)

// ErrNoRule is a kernel in which no rule finds a function that stores to text.
var ErrNoRule = errors.New("no rule finds a function that stores to text")

// depth is how many calls may lie between a function and the one that is watched.
const depth = 4

// Watches are the functions that are watched in a kernel. The notes tell which rules found none.
func Watches(k *image.Kernel) (list []Watch, notes []string, err error) {
	for _, r := range rules {
		addr, there := k.Addr(r.Function)
		same := func(w Watch) bool {
			return w.Function == r.Function || w.Kind == r.Kind && r.Kind != Answer && r.Kind != Grace && calls(k, w.Function, r.Function)
		}
		if !there || r.Needs != "" && !k.Has(r.Needs) || slices.ContainsFunc(list, same) {
			continue
		}
		w := Watch{Kind: r.Kind, Function: r.Function, At: addr, Evidence: r.Function + " is there", args: r.Args}
		if r.Needs != "" {
			w.Evidence = r.Needs + " is there"
		}
		if len(r.From) > 0 {
			way := wayTo(k, r.From, r.Function)
			if way == nil {
				continue
			}
			w.Evidence = strings.Join(way, " calls ")
		}
		if l, ok := earlyLoad(k, addr); ok && r.Kind == Store {
			w.load, w.Evidence = l, w.Evidence+", at its load of "+loaded
		}
		list = append(list, w)
	}
	for _, of := range []struct {
		kind Kind
		what string
	}{{Begin, "where a batch begins"}, {Round, "what synchronises every CPU"}, {Answer, "what a CPU answers a round with"},
		{Trap, "who handles breakpoints"}, {Stop, "who stops the machine"}} {
		if !slices.ContainsFunc(list, func(w Watch) bool { return w.Kind == of.kind }) {
			notes = append(notes, "no rule finds "+of.what+": it is not recorded")
		}
	}
	if !slices.ContainsFunc(list, func(w Watch) bool { return w.Kind == Store }) {
		err = fmt.Errorf("%s: %w", k.File, ErrNoRule)
	}
	return list, notes, err
}

// barriers are functions that end with a barrier behind stores: they unmap the page that was stored through
// (clear_fixmap, arch/arm64/mm/fixmap.c; __set_fixmap, arch/riscv/mm/init.c), or clean caches.
var barriers = []string{"__set_fixmap", "caches_clean_inval_pou"}

// fences are the barriers of all functions that store; none where one of them leads to no barrier.
func fences(k *image.Kernel, list []Watch) (lines []string) {
	for _, w := range list {
		if w.Kind != Store {
			continue
		}
		i := slices.IndexFunc(barriers, func(b string) bool { return k.Path(w.Function, b, 2) != nil })
		if i < 0 {
			return nil
		}
		lines = append(lines, strings.Join(k.Path(w.Function, barriers[i], 2), " calls "))
	}
	return lines
}

// calls tells whether another function, which is watched already, does the work of this one.
func calls(k *image.Kernel, watched, outer string) bool { return k.Calls(outer)[watched] > 0 }

// wayTo is the shortest way from the first of some functions that lead to another one.
func wayTo(k *image.Kernel, from []string, to string) []string {
	for _, f := range from {
		if way := k.Path(f, to, depth); way != nil {
			return way
		}
	}
	return nil
}
