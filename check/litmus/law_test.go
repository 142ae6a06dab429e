// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyFamily draws a class and a program for it.
func anyFamily(t *rapid.T) (*class, *Test) {
	c := rapid.SampledFrom(classes).Draw(t, "class")
	return c, random(t, c.family)
}

// TestNothingIsLostByHaste: performing quiet instructions first, which keeps the
// search small, finds every outcome that performing them at any time finds.
func TestNothingIsLostByHaste(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, test := anyFamily(t)
		slow := newMachine(test, c)
		slow.lazy = true
		hasty, all := outcomes(t, newMachine(test, c)), outcomes(t, slow)
		within(t, test, hasty, "haste on "+c.name, all, "leisure")
		within(t, test, all, "leisure on "+c.name, hasty, "haste")
	})
}

// TestFenceIOvertakesNoFetch: where a fence.i may be performed before an earlier fetch, it need
// not be, and the fetch may tear.
func TestFenceIOvertakesNoFetch(t *testing.T) {
	test, err := Parse("overtaken", strings.NewReader(`test overtaken
site b 00 unaligned
thread t0
  store b 11
  r0 = exec b
  fence.i
outcome t0:r0=01
expect allowed rv(ziccif) rv(plain) rv(ziccid) rv(decode-w) rv(decode) rv(ir3)
`))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := test.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Verdict != r.Expected {
			t.Errorf("%s: %s, want %s", r.Class, r.Verdict, r.Expected)
		}
	}
}

// TestRemovingRemovesNothing: without one of its barriers, maintenance
// instructions or interrupts a program can still come out in every way it could.
func TestRemovingRemovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, test := anyFamily(t)
		var removable [][2]int
		for th := range test.threads {
			for i := range test.threads[th].insns {
				switch test.threads[th].insns[i].op {
				case opExec, opRead, opWrite, opStore:
				default:
					removable = append(removable, [2]int{th, i})
				}
			}
		}
		if len(removable) == 0 {
			t.Skip("nothing to remove")
		}
		at := rapid.SampledFrom(removable).Draw(t, "removed")
		less := *test
		less.threads = slices.Clone(test.threads)
		th := &less.threads[at[0]]
		th.insns = slices.Delete(slices.Clone(th.insns), at[1], at[1]+1)
		within(t, test, outcomes(t, newMachine(test, c)), c.name, outcomes(t, newMachine(&less, c)),
			fmt.Sprintf("without instruction %d of t%d it", at[1], at[0]))
	})
}

// TestClassesAreOrdered: a class that promises more allows no more.
func TestClassesAreOrdered(t *testing.T) {
	for _, pair := range [][2]string{
		{"arm(1,1)", "arm(0,1)"}, {"arm(0,1)", "arm(0,0)"}, {"amd", "intel"}, {"rv(ziccif)", "rv(plain)"},
		{"rv(ziccid)", "rv(decode)"}, {"rv(decode)", "rv(decode-w)"}, {"rv(decode-w)", "rv(ziccif)"},
		{"rv(ziccid)", "rv(ir3)"}, {"rv(ir3)", "rv(ziccif)"},
	} {
		strict, loose := called(pair[0]), called(pair[1])
		t.Run(pair[0]+" in "+pair[1], func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				test := random(t, strict.family)
				within(t, test, outcomes(t, newMachine(test, strict)), strict.name, outcomes(t, newMachine(test, loose)),
					loose.name)
			})
		})
	}
}

// TestWindowsAreSound: for programs as protocols are, one writer whose stores are
// maintained before it goes on and who waits for its rounds, and executors that
// nothing but rounds synchronises, the window model allows all that each class
// allows. This is what lets protocols be judged by windows. On rv it takes harts that
// fetch or decode in program order; MP.FR+fence+po is what goes wrong on others.
func TestWindowsAreSound(t *testing.T) {
	publish := map[family]string{
		arm: "store %s\ndsb\ndc %s\ndsb\nic %s\ndsb\n", x86: "store %s alias\nserialise\n", rv: "store %s\nfence\nfence.i\n",
	}
	ordered := map[family]string{arm: "dsb\n", x86: "mfence\n", rv: "fence\n"}
	sound := slices.DeleteFunc(slices.Clone(classes), func(c *class) bool {
		return c.family == rv && !c.fetches.inOrder && !c.fetches.reads
	})
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(sound).Draw(t, "class")
		var b strings.Builder
		b.WriteString("test sound\nsite a 0\nsite b 00 " + map[bool]string{true: "aligned",
			false: "unaligned"}[c.name != "amd" && c.name != "intel"] + "\ndata x\nthread writer\n")
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				b.WriteString("ipi\nwait\n")
			case 1:
				b.WriteString("write x 1\n" + ordered[c.family])
			default:
				site := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "site")
				text := map[string]string{"a": "a 1", "b": rapid.SampledFrom([]string{"b 11", "b[0] 2", "b[1] 3"}).Draw(t,
					"text")}[site]
				p := publish[c.family]
				p = strings.Replace(p, "%s", text, 1)
				b.WriteString(strings.ReplaceAll(p, "%s", site))
			}
		}
		for th := range rapid.IntRange(1, 2).Draw(t, "executors") {
			fmt.Fprintf(&b, "thread t%d\n", th)
			for i := range rapid.IntRange(1, 3).Draw(t, "length") {
				what := rapid.SampledFrom([]string{"exec a", "exec b", "read x"}).Draw(t, "what")
				fmt.Fprintf(&b, "r%d = %s\n%s", i, what, ordered[c.family])
			}
		}
		fmt.Fprintf(&b, "outcome x=0\nexpect none %s\n", c.name)
		test, err := Parse("sound", strings.NewReader(b.String()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		within(t, test, outcomes(t, newMachine(test, c)), c.name,
			outcomes(t, newMachine(test, c.window())), "the window model")
	})
}
