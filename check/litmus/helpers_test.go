// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
)

// parse reads a test that must be right.
func parse(t testing.TB, src string) *Test {
	t.Helper()
	test, err := Parse("t", strings.NewReader(src))
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return test
}

// fill puts lines in the place of each %.
func fill(shape string, lines ...string) string {
	for _, l := range lines {
		shape = strings.Replace(shape, "%", l, 1)
	}
	return shape
}

// called finds a class.
func called(name string) *class {
	c, err := parseClass(name)
	if err != nil {
		panic(err)
	}
	return c
}

// outcomes is all that a test can come out as on a class: what registers, data
// and sites hold at the end.
func outcomes(t *rapid.T, m *machine) map[string]bool {
	all := map[string]bool{}
	err := m.explore(context.Background(), func(s *state, _ int32, _ move) bool {
		if m.ended(s) {
			all[m.test.final(s.regs[:], s.data[:], func(i int) isa.Text { return s.text[i][s.newest[i]] })] = true
		}
		return true
	})
	if err != nil {
		t.Skip(err) // too large
	}
	if len(all) == 0 {
		t.Fatalf("no execution ends on %s:\n%s", m.class.name, m.test)
	}
	return all
}

// windowOutcomes is the same in the slow twin of the window model.
func windowOutcomes(t *rapid.T, test *Test, c *class) map[string]bool {
	all := map[string]bool{}
	err := test.windowExplore(context.Background(), c, func(s *windowState) bool {
		all[test.final(s.regs[:], s.data[:], func(i int) isa.Text { return s.versions[i][s.n[i]-1].Text })] = true
		return true
	})
	if err != nil {
		t.Skip(err)
	}
	return all
}

func (t *Test) final(regs, data []isa.Text, text func(int) isa.Text) string {
	var b strings.Builder
	for i, r := range t.regs {
		fmt.Fprintf(&b, "%s:%s=%s ", t.threads[r.thread].name, r.name, show(regs[i]))
	}
	for i, d := range t.data {
		fmt.Fprintf(&b, "%s=%s ", d.name, show(data[i]))
	}
	for i, s := range t.sites {
		fmt.Fprintf(&b, "%s=%s ", s.name, show(text(i)))
	}
	return b.String()
}

// within fails unless all of a is in b.
func within(t *rapid.T, test *Test, a map[string]bool, what string, b map[string]bool, than string) {
	for o := range maps.Keys(a) {
		if !b[o] {
			t.Fatalf("%q: %s allows it, %s does not, of\n%s", o, what, than, test)
		}
	}
}

// instructions that a random program may have; s is a site, d a datum.
var vocabulary = map[family][]string{
	arm: {"store s", "store s", "write d", "read", "exec", "exec", "dc s", "ic s", "dsb", "dsb", "dmb", "dmb.st", "dmb.ld",
		"isb", "ctrl", "ipi", "wait"},
	x86: {"store s", "store s", "write d", "read", "exec", "exec", "serialise", "mfence", "lock", "ctrl", "ipi", "wait"},
	rv:  {"store s", "store s", "write d", "read", "exec", "exec", "fence", "fence.i", "ctrl", "ipi", "wait"},
}

// random draws a program of one family: two or three threads, two sites (one of
// two parts), one datum.
func random(t *rapid.T, f family) *Test {
	var b strings.Builder
	align := rapid.SampledFrom([]string{"aligned", "unaligned"}).Draw(t, "alignment")
	fmt.Fprintf(&b, "test random\nsite a 0\nsite b 00 %s\ndata x\n", align)
	words, regs, stores := vocabulary[f], 0, map[string]int{}
	threads := rapid.IntRange(2, 3).Draw(t, "threads")
	for th := range threads {
		fmt.Fprintf(&b, "thread t%d\n", th)
		last := ""
		for range rapid.IntRange(1, 9-2*threads).Draw(t, "length") {
			site := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "site")
			value := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
			dep := rapid.SampledFrom([]string{"", "", " addr "}).Draw(t, "dependency")
			if dep += last; last == "" || dep == last {
				dep = ""
			}
			switch word := rapid.SampledFrom(words).Draw(t, "word"); word {
			case "store s":
				if stores[site]++; stores[site] < maxVersions {
					fmt.Fprintf(&b, "store %s %s%s\n", site, strings.Repeat(value, map[string]int{"a": 1, "b": 2}[site]), dep)
				}
			case "write d":
				fmt.Fprintf(&b, "write x %s%s\n", value, dep)
			case "read", "exec":
				if regs == maxRegs {
					continue
				}
				place := map[string]string{"read": "x", "exec": site}[word]
				fmt.Fprintf(&b, "r%d = %s %s%s\n", regs, word, place, dep)
				last = fmt.Sprintf("r%d", regs)
				regs++
			case "dc s", "ic s":
				fmt.Fprintf(&b, "%s %s\n", word[:2], site)
			case "ctrl":
				if last != "" {
					fmt.Fprintf(&b, "ctrl %s\n", last)
				}
			default:
				b.WriteString(word + "\n")
			}
		}
	}
	b.WriteString("outcome x=0\n")
	for _, c := range classes {
		if c.family == f {
			fmt.Fprintf(&b, "expect none %s\n", c.name)
		}
	}
	return drawn(t, b.String())
}

// drawn reads a program that was drawn.
func drawn(t *rapid.T, text string) *Test {
	test, err := Parse("random", strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return test
}
