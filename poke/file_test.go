// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// lines joins lines of a plan file; the first of steps stands on line 3.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func steps(l ...string) string { return lines(append([]string{"name: x", "every batch:"}, l...)...) }

// refused is files that are refused everywhere.
var refused = []struct {
	what, src string
	line      int
	want      string
}{
	// The text.
	{"empty", "", 1, `no name: the file needs a line such as "name: my-protocol"`},
	{"comments alone", lines("# a", "", "  # b"), 1, "no name"},
	{"too large", strings.Repeat("# 345678\n", 7282), 7282, "more than 65536 bytes"},
	{"a long line", lines("name: x", "# "+strings.Repeat("x", 500)), 2, "a line of 502 bytes: want at most 500"},
	{"not UTF-8", "name: x\nsummary: caf\xe9\n", 2, `"\xe9": not UTF-8`},
	{"not UTF-8 in a comment", "name: x\n# caf\xe9\n", 2, `not UTF-8`},
	{"a control character", "name: x\n\x00\n", 2, `'\x00': a control character`},
	{"another one", "name: x\u0085\n", 1, `'\u0085': a control character`},
	{"too many steps", steps(strings.Repeat("Fence\n", 101)), 103, `"Fence": more than 100 steps`},

	// Headers and sections.
	{"name", lines("name: my protocol"), 1, `name "my protocol": want at most 40 letters, digits and - . _`},
	{"long name", lines("name: " + strings.Repeat("x", 41)), 1, `want at most 40`},
	{"a second name", lines("name: x", "", "name: y"), 3, `"name:": line 1 has said it already: "x"`},
	{"no value", lines("name:"), 1, `"name:": nothing behind it`},
	{"unknown header", lines("naem: x"), 1,
		`"naem:": not one of 17 names; did you mean name?`},
	{"batching", lines("name: x", "batching: bufferd"), 2,
		`batching "bufferd": not one of buffered, whole, single; did you mean buffered?`},
	{"layout", lines("name: x", "layout: 4"), 2, `layout "4": not one of word, pair`},
	{"a header too late", steps("Write word", "summary: late"), 4, `"summary:": headers come before the first section`},
	{"no colon behind a header", lines("name x"), 1, `"name x": want a colon`},
	{"no colon behind a section", lines("name: x", "every batch", "Write word"), 2, `"every batch": want a colon`},
	{"a step before all sections", lines("name: x", "Write word"), 2,
		`"Write word": a step outside of every section: want a line "every batch:" before it`},
	{"a second section", steps("Write word", "every batch:"), 4, `"every batch:": line 2 has begun this section already`},
	{"a step beside a section", lines("name: x", "every batch: Write word"), 2,
		`"Write word": want nothing behind "every batch:"`},
	{"unknown section", lines("name: x", "each batch:"), 2, `did you mean every batch?`},

	// Steps.
	{"unknown step", steps("Wirte word"), 3,
		`step "Wirte": not one of 14 names; did you mean Write?`},
	{"small letters", steps("publish"), 3, `step "publish": not one of`},
	{"Verify", steps("Verify"), 3, "step Verify: no step of a protocol: every update verifies all its sites"},
	{"Settle", steps("Settle"), 3, "step Settle: no step of a protocol"},
	{"Attach", steps("Attach"), 3, "step Attach: no step of a protocol: the ops is attached before the update"},
	{"Release", steps("Release"), 3, "step Release: no step of a protocol: the ops is released after the update"},
	{"Raise", steps("Raise"), 3, "step Raise: no step of a protocol"},
	{"Expect", steps("Expect"), 3, "step Expect: no step of a protocol: a protocol's update has no other patcher to wait for"},
	{"Write of nothing", steps("Write"), 3,
		"Write: want one of breakpoint, tail, head, word, literal, literal-low, literal-high, bytes behind it"},
	{"unknown part", steps("Write tial"), 3,
		`Write tial: part "tial": not one of breakpoint, tail, head, word, literal, literal-low, literal-high, bytes; did you mean tail?`},
	{"two parts", steps("Write tail head"), 3, `Write tail head: "head": want nothing behind the part`},
	{"a range", steps("Write tail 0..3"), 3, `"0..3": want nothing behind the part`},
	{"words behind a step", steps("Publish all"), 3, `Publish all: "all": want nothing behind Publish`},
	{"a round without its number", steps("Sync"), 3, "Sync: want the number of the round behind it, from 1 to 255"},
	{"round 0", steps("Sync 0"), 3, `round "0": want a number from 1 to 255`},
	{"round 01", steps("Sync 01"), 3, `round "01"`},
	{"round 256", steps("Sync 256"), 3, `round "256"`},
	{"round -1", steps("Sync -1"), 3, `round "-1"`},
	{"round one", steps("Sync one"), 3, `round "one"`},
	{"a lasy round", steps("Sync 1 lasy"), 3, `Sync 1 lasy: "lasy": want "lazy" or nothing behind the number`},
	{"words behind lazy", steps("Sync 1 lazy now"), 3, `"now": want nothing behind "lazy"`},
	{"no lock", steps("Lock"), 3,
		"Lock: want one of text_mutex, ftrace_lock, jump_label_mutex, cpu_hotplug_lock, init_mm behind it"},
	{"unknown lock", steps("Lock textmutex"), 3,
		`lock "textmutex": not one of text_mutex, ftrace_lock, jump_label_mutex, cpu_hotplug_lock, init_mm; did you mean text_mutex?`},
	{"Map of a batch", steps("Map", "Write word"), 3,
		`step Map: it maps the page of one site: want it inside "for each patch"`},

	// Conditions.
	{"no condition", steps("Fence if"), 3,
		`"if": want a condition behind it: one of tail, literal, rest, head, stores-buffered`},
	{"nothing to be not", steps("Fence if not"), 3, `"if": want a condition behind it`},
	{"nothing behind and", steps("Fence if tail and"), 3, `"if": want a condition behind it`},
	{"or", steps("Fence if tail or literal"), 3, `"or": want "and" or nothing behind a condition`},
	{"unknown condition", steps("Fence if tale"), 3,
		`condition "tale": not one of 10 names; did you mean tail?`},
	{"an instruction set", steps("Fence if arm64"), 3, `condition "arm64": not one of`},
	{"a condition alone", steps("if tail"), 3, `"if": no step before it`},

	// Loops.
	{"open loop", steps("for each patch", "Write word"), 3, `"for each patch": nothing ends it: want a line "end"`},
	{"loop over a section", steps("for each patch", "Write word", "once after:"), 5,
		`"once after:": line 3 goes from patch to patch: want a line "end" first`},
	{"loop in a loop", steps("for each patch", "for each patch"), 4, `line 3 has begun to go from patch to patch already`},
	{"end of nothing", steps("end"), 3, `"end": no "for each patch" before it`},
	{"a loop with a condition", steps("for each patch if tail"), 3, `step "for": not one of`},

	// What cannot run.
	{"nothing written", steps("Sync 1"), 2, `nothing is written: want a step such as "Write word"`},
	{"no section at all", lines("name: x"), 1, "nothing is written"},
	{"the round of a number twice", steps("Sync 1", "Write word", "Sync 1"), 5, "Sync 1: line 3 is round 1 already"},
	{"the same, in another section", lines("name: x", "every batch:", "Write word", "Sync 1", "once after:", "Sync 1"), 6,
		"Sync 1: line 4 is round 1 already"},
	{"a breakpoint that nothing publishes", steps("Write breakpoint", "Sync 1", "Write word"), 3,
		"Write breakpoint: nothing is ever published"},
	{"published twice", steps("Publish", "Write word", "Publish"), 5, "Publish: line 3 has published already"},
	{"published again before the handlers left", steps("Publish", "Unpublish", "Publish", "Write word"), 5,
		"Publish: line 3 has published already"},
	{"never taken away", steps("Publish", "Write word"), 3,
		"Publish: no step takes the batch away again (Unpublish), and the next time through line 2 could not publish"},
	{"never waited for", steps("Publish", "Write word", "Unpublish"), 3,
		"Publish: no step waits for the handlers (WaitHandlers) or forgets the batch (Clear)"},
	{"taken away twice", steps("Publish", "Write word", "Unpublish", "Unpublish", "WaitHandlers"), 6,
		"Unpublish: the batch of line 3 has been taken away already"},
	{"taken away and not published", steps("Write word", "Unpublish"), 4,
		"Unpublish: nothing is published here: there is no Publish before it"},
	{"handlers of nothing", steps("Write word", "WaitHandlers"), 4,
		"WaitHandlers: nothing is published here: there is no Publish before it"},
	{"handlers that keep coming", steps("Publish", "Write word", "WaitHandlers", "Unpublish"), 5,
		"WaitHandlers: the batch of line 3 can still be found: handlers would enter for ever (Unpublish first)"},
	{"forgotten and not published", steps("Write word", "Clear"), 4, "Clear: nothing is published here"},
	{"published once, taken away every time", lines("name: x", "once before:", "Publish", "every batch:", "Write word",
		"Unpublish", "WaitHandlers"), 6,
		"Unpublish: line 3 is outside of what line 4 repeats: only the first time there would be something to give back"},
	{"no StopMachine", steps("Write word", "Resume"), 4,
		"Resume: no CPU stands still here: there is no StopMachine before it"},
	{"no Resume", steps("StopMachine", "Write word"), 3,
		"StopMachine: nothing lets the CPUs go on (Resume), and the next time through line 2 would wait for ever"},
	{"no Resume at the end", lines("name: x", "once before:", "StopMachine", "every batch:", "Write word"), 3,
		"StopMachine: nothing lets the CPUs go on (Resume), and the next update would wait for ever"},
	{"stopped twice", steps("StopMachine", "StopMachine", "Write word", "Resume"), 4,
		"StopMachine: the CPUs stand still since line 3"},
	{"stopped once, resumed every time", lines("name: x", "once before:", "StopMachine", "every batch:", "Write word",
		"Resume"), 6, "Resume: line 3 is outside of what line 4 repeats"},
	{"stopped for a batch, resumed for each patch", steps("StopMachine", "for each patch", "Write word", "Resume", "end"),
		6, "Resume: line 3 is outside of what line 4 repeats"},
	{"a grace period while nobody moves", steps("StopMachine", "Write word", "GracePeriod", "Resume"), 5,
		"GracePeriod: the CPUs stand still since line 3"},
	{"the other one", steps("StopMachine", "SynchronizeRCU", "Write word", "Resume"), 4,
		"SynchronizeRCU: the CPUs stand still since line 3"},
	{"Unlock without Lock", steps("Write word", "Unlock text_mutex"), 4,
		"Unlock text_mutex: it is not taken here: there is no Lock text_mutex before it"},
	{"Unlock of another one", steps("Lock text_mutex", "Write word", "Unlock ftrace_lock"), 5,
		"Unlock ftrace_lock: it is not taken here"},
	{"locked twice", steps("Lock text_mutex", "Lock text_mutex", "Write word"), 4,
		"Lock text_mutex: line 3 has taken it, and no other patcher would give it back"},
	{"never unlocked", steps("Lock text_mutex", "Write word"), 3,
		"Lock text_mutex: nothing gives it back (Unlock), and the next time through line 2 would wait for ever"},
	{"locked once, unlocked every time", lines("name: x", "once before:", "Lock text_mutex", "every batch:", "Write word",
		"Unlock text_mutex"), 6, "Unlock text_mutex: line 3 is outside of what line 4 repeats"},
}

// TestParseRefuses: what is wrong with a file is said in one line that names the
// file, the line and the value.
func TestParseRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.what, func(t *testing.T) {
			_, err := ParseProtocol("my.plan", []byte(tt.src))
			if err == nil {
				t.Fatal("no error")
			}
			var wrong *PlanError
			if !errors.As(err, &wrong) || wrong.Line != tt.line || wrong.Arch != "" || !strings.Contains(wrong.Reason, tt.want) {
				t.Errorf("%v; want line %d: %s", err, tt.line, tt.want)
			}
			if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, fmt.Sprintf("my.plan:%d: ", tt.line)) {
				t.Errorf("%q is not one line that begins with the file and the line", s)
			}
		})
	}
}

// TestCompileRefuses: what is wrong on some instruction sets only is refused
// there, by line, and nowhere else.
func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct {
		what, src string
		wrong     map[string]string
	}{
		{"a tail", steps("Publish", "Write breakpoint", "Write tail", "Write head", "Unpublish", "WaitHandlers"),
			map[string]string{
				"arm64":   `my.plan:5: on arm64: Write tail: a site has no tail: a breakpoint covers all of its 4 bytes (write "Write tail if tail")`,
				"riscv64": `my.plan:5: on riscv64: Write tail: a site has no tail: a breakpoint covers all of its 4 bytes (write "Write tail if tail")`,
			}},
		{"a tail of a pair", lines("name: x", "layout: pair", "every batch:", "Write tail"), map[string]string{
			"arm64": `my.plan:4: on arm64: Write tail: a site has no tail`,
		}},
		{"a literal", steps("Write literal", "Write word"), map[string]string{
			"x86_64": `my.plan:3: on x86_64: Write literal: a site has no literal (write "Write literal if literal")`,
		}},
		{"half a literal", steps("Write literal-high", "Write word"), map[string]string{
			"x86_64": `my.plan:3: on x86_64: Write literal-high: a site has no literal (write "Write literal-high if literal")`,
		}},
		{"a lock that is given back somewhere", steps("Lock text_mutex", "Write word", "Unlock text_mutex if literal"),
			map[string]string{
				"x86_64": `my.plan:3: on x86_64: Lock text_mutex: nothing gives it back`,
			}},
		{"a round inside stop_machine", steps("StopMachine", "Write word", "Sync 1", "Resume"), map[string]string{
			"x86_64": "my.plan:5: on x86_64: it sends rounds inside stop_machine",
			"arm64":  "my.plan:5: on arm64: it sends rounds inside stop_machine",
		}},
		{"rounds that exclude each other", steps("Write word", "Sync 1 if tail", "Sync 1 lazy if not tail"), nil},
	} {
		p := parse(t, "my.plan", []byte(tt.src))
		for _, arch := range cpus.ArchNames() {
			s := shapeOf(t, arch, p, 2, false)
			n := 0
			err := p.Compile(s, cut(2, 1), func(Step) { n++ })
			want, wrong := tt.wrong[arch]
			switch {
			case !wrong && err != nil:
				t.Errorf("%s: %v", tt.what, err)
			case wrong && (err == nil || !strings.HasPrefix(err.Error(), want)):
				t.Errorf("%s on %s: %v; want %s", tt.what, arch, err, want)
			case wrong && n > 0:
				t.Errorf("%s on %s: %d steps before it was refused", tt.what, arch, n)
			}
		}
	}
}

// TestWrongOnEveryArchitecture: a file that fits none is refused at once, with
// what is wrong on the first.
func TestWrongOnEveryArchitecture(t *testing.T) {
	_, err := ParseProtocol("my.plan", []byte(steps("Write literal if not literal", "Write tail if not tail")))
	if want := `my.plan:3: on x86_64: Write literal: a site has no literal (write "Write literal if literal")`; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestParseAccepts what is wrong and can run: finding that is what files are for.
func TestParseAccepts(t *testing.T) {
	for what, src := range map[string]string{
		"late publish": steps("Write breakpoint", "Sync 1", "Publish", "Write word", "Unpublish",
			"WaitHandlers"),
		"missing rounds": steps("Publish", "Write breakpoint", "Write tail", "Write head", "Sync 3", "Unpublish",
			"WaitHandlers"),
		"no rounds":               steps("Publish", "Write breakpoint", "Write head", "Unpublish", "WaitHandlers"),
		"rounds in another order": steps("Sync 2", "Write word", "Sync 1"),
		"early release":           steps("Publish", "Write breakpoint", "Unpublish", "WaitHandlers", "Write word"),
		"forgotten too early":     steps("Publish", "Write breakpoint", "Clear", "Write word", "Unpublish"),
		"nobody waits":            steps("Publish", "Write breakpoint", "Write word", "Unpublish", "Clear"),
		"a breakpoint that stays": steps("Publish", "Write breakpoint", "Unpublish", "WaitHandlers"),
		"no literal":              steps("Write word"),
		"half a literal":          steps("Write literal-low if literal", "Write word"),
		"locks crosswise": steps("Lock text_mutex", "Lock ftrace_lock", "Write word", "Unlock text_mutex",
			"Unlock ftrace_lock"),
		"published by nobody's need": steps("Publish", "Write word", "Unpublish", "WaitHandlers"),
		"a stop for each patch":      steps("for each patch", "StopMachine", "Write word", "Resume", "end"),
		"everything at once": lines("name: x", "batching: single", "layout: pair", "once before:",
			"Lock cpu_hotplug_lock", "every batch:", "for each "+
				"patch", "Map", "Write word", "end", "SynchronizeRCU", "once after:", "GracePeriod", "Unlock cpu_hotplug_lock"),
		"written once": lines("name: x", "once before:", "Write word"),
		"sections in any order": lines("name: x", "once after:", "Resume", "every batch:", "Write word", "once before:",
			"StopMachine"),
		"bytes before and after": "\ufeffname: x\r\nevery batch:\r\n\tWrite word\r\n\r\n",
		"no newline at the end":  "name: x\nevery  batch :\nWrite   word # all of it",
		"a hash that is none":    "name: x\nsource: https://lore.kernel.org/all/#r # a comment\nevery batch:\nWrite word",
	} {
		if _, err := ParseProtocol("my.plan", []byte(src)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestHeaders: a protocol is what its headers say, and what follows from steps.
func TestHeaders(t *testing.T) {
	p := parse(t, "dir/my.plan", []byte(lines("name:  my-protocol", "summary: one: two # three", "source: a#b",
		"batching: single", "layout: pair",
		"every batch:", "Publish", "Write breakpoint", "StopMachine", "Write word", "Resume", "Unpublish", "WaitHandlers")))
	if p.Name != "my-protocol" || p.File != "dir/my.plan" || p.Summary != "one: two" || p.Source != "a#b" ||
		p.Batching != Single || p.Layout != isa.Pair || !p.Traps || p.OneStore {
		t.Errorf("%+v", p)
	}
	if p = parse(t, "my.plan",
		[]byte(steps("StopMachine", "Write head", "Resume", "Write word"))); p.Batching != Buffered || p.Layout != isa.Word ||
		p.Traps || !p.OneStore {
		t.Errorf("%+v", p)
	}
}

// TestPlanOfFile is a plan with everything in it, step by step.
func TestPlanOfFile(t *testing.T) {
	p := parse(t, "my.plan", []byte(lines(
		"name: x",
		"once before:",
		"Lock text_mutex",
		"every batch:",
		"Publish",
		"Write breakpoint",
		"Sync 1 lazy",
		"for each patch",
		"Map",
		"Write word",
		"Fence if stores-buffered and not tail",
		"end",
		"GracePeriod if tail",
		"Unpublish",
		"Clear",
		"Sync 2",
		"once after:",
		"SynchronizeRCU",
		"Unlock text_mutex",
	)))
	want := map[string]string{
		"x86_64": "Verify 0..2; Lock text_mutex; " +
			"Publish 0..1; Write breakpoint 0..1; Sync 1 lazy; Map 0; Write word 0; Map 1; Write word 1; GracePeriod; " +
			"Unpublish; Clear; Sync 2; " +
			"Publish 2; Write breakpoint 2; Sync 1 lazy; Map 2; Write word 2; GracePeriod; Unpublish; Clear; Sync 2; " +
			"SynchronizeRCU; Unlock text_mutex; GracePeriod",
		"arm64": "Verify 0..2; Lock text_mutex; " +
			"Publish 0..1; Write breakpoint 0..1; Sync 1 lazy; Map 0; Write word 0; Fence; Map 1; Write word 1; Fence; " +
			"Unpublish; Clear; Sync 2; " +
			"Publish 2; Write breakpoint 2; Sync 1 lazy; Map 2; Write word 2; Fence; Unpublish; Clear; Sync 2; " +
			"SynchronizeRCU; Unlock text_mutex; GracePeriod",
	}
	for arch, want := range want {
		var got []string
		for _, st := range compile(t, p, shapeOf(t, arch, p, 3, true), 2) {
			got = append(got, st.String())
		}
		if d := cmp.Diff(strings.Split(want, "; "), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", arch, d)
		}
	}
}

// TestMutationsOfFiles: a file is offered the defects that leave it a plan that
// can be carried out.
func TestMutationsOfFiles(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want string
	}{
		{steps("Publish", "Write breakpoint", "Write head", "Sync 3", "Unpublish", "WaitHandlers"),
			"[drop-sync-3 drop-sync-3-no-recheck no-breakpoint unsorted-batch overfull-batch shifted-batch early-release " +
				"no-grace-period]"},
		// Without a head to be written, nothing would take the batch away.
		{steps("Publish", "Write breakpoint", "Sync 1", "Write word", "Unpublish", "WaitHandlers"),
			"[drop-sync-1 no-breakpoint late-publish unsorted-batch overfull-batch shifted-batch no-grace-period]"},
		{steps("StopMachine", "Write word", "Resume"), "[no-grace-period no-stop]"},
	} {
		p := parse(t, "my.plan", []byte(tt.src))
		if got := fmt.Sprint(mutationsOf(p, shapeOf(t, "x86_64", p, 1, true))); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.src, got, tt.want)
		}
	}
}

// TestMutationsOfTheImpossible: a protocol that cannot work somewhere is offered
// its defects there all the same, so that what is wrong is said by Compile.
func TestMutationsOfTheImpossible(t *testing.T) {
	p := shippedPlan(t, "fence-per-write")
	if got := fmt.Sprint(mutationsOf(p, shapeOf(t, "x86_64", p, 1, true))); got != "[no-grace-period]" {
		t.Errorf("%s", got)
	}
}

// TestLazyIPIs: lazy rounds leave isolated CPUs out, others do not.
func TestLazyIPIs(t *testing.T) {
	p := parse(t, "my.plan", []byte(steps("Sync 1 lazy", "Write word", "Sync 2", "StopMachine", "Resume", "Sync 3 lazy")))
	s := shapeOf(t, "x86_64", p, 2, false)
	var c Count
	for _, st := range compile(t, p, s, 2) {
		c.Add(st)
	}
	if !p.Lazy(s) || c.Rounds != 3 || c.Lazy != 2 || c.IPIs(8, 0) != 4*7 || c.IPIs(8, 3) != 2*7+2*4 {
		t.Errorf("lazy %v, %+v, %d and %d interrupts", p.Lazy(s), c, c.IPIs(8, 0), c.IPIs(8, 3))
	}
	for _, arch := range cpus.ArchNames() {
		a, _ := cpus.ParseArch(arch)
		for _, name := range Names() {
			p := Named(name, a.Traits())
			if got := p.Lazy(shapeOf(t, arch, p, 1, false)); got != (name == "breakpoint-lazy") {
				t.Errorf("%s %s: lazy %v", arch, name, got)
			}
		}
	}
}
