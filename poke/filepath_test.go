// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// plain is a plan that any path goes with.
const plain = "name: mine\nevery batch:\nWrite word\n"

// TestDefaultPath: what --show prints as the CPUs' side is what they do on every
// instruction set, and what a file that says nothing means.
func TestDefaultPath(t *testing.T) {
	stated, silent := parse(t, "stated.plan", []byte(plain+DefaultPath())), parse(t, "silent.plan", []byte(plain))
	for _, arch := range cpus.ArchNames() {
		for _, layout := range []isa.Layout{isa.Word, isa.Pair} {
			s, err := shapeOn(arch, layout)
			if err != nil {
				t.Fatal(err)
			}
			want := cpus.NativePath(s.Traits, s.Len, false)
			for _, p := range []*Protocol{stated, silent} {
				if got, err := p.Path(s); err != nil || got != want {
					t.Errorf("%s on %s: %v\n%s\nwant\n%s", p.File, arch, err, got, want)
				}
			}
		}
	}
	lazy := shippedPlan(t, "breakpoint-lazy")
	s := shapeOf(t, "x86_64", lazy, 1, false)
	want := cpus.NativePath(s.Traits, s.Len, true)
	if got, err := lazy.Path(s); err != nil || got != want || !got.Tells {
		t.Errorf("lazy: %v\n%s\nwant\n%s", err, got, want)
	}
}

// TestFilePath: a section that is stated takes the place of the default one.
func TestFilePath(t *testing.T) {
	p := parse(t, "mine.plan", []byte(plain+"miss:\n  fatal # at once\nhandler:\nlook up\nsync if trap-syncs and "+
		"not pair\nact\n"))
	for arch, want := range map[string]string{
		"x86_64":  "site: fetch site; call\nhandler: look up; sync; act\nmiss: fatal",
		"arm64":   "site: fetch site; load literal; call\nhandler: look up; sync; act\nmiss: fatal",
		"riscv64": "site: fetch site; load literal; call\nhandler: look up; act\nmiss: fatal",
	} {
		s := shapeOf(t, arch, p, 1, false)
		if got, err := p.Path(s); err != nil || got.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", arch, err, got, want)
		}
	}
}

// TestFilePathRefused: what is wrong with the CPUs' side is said with its line.
func TestFilePathRefused(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"site:\nfetch sight\ncall",
			`5: site "fetch sight": not one of 10 names; did you mean fetch site?`},
		{"site:\nfetch site\nif tail\ncall", `6: "if": no step before it`},
		{"site:\nfetch site\ncall if tall", `6: condition "tall": not one of`},
		{"site:\nfetch site", `5: site: want it to end with "call"`},
		{"site:\nfetch site\nfetch " +
			"site\ncall", `6: site: fetch site: out of its order: want the ops or a guard or neither, the fetch`},
		{"handler:\nlook up\nact\nmiss:", `7: "miss:": nothing in it: want a step a line below it`},
		{"handler: act", `4: "act": want nothing behind "handler:": steps begin on the next line`},
		{"handler:\ntake reference\nlook up\nact",
			`5: handler: take reference: no step gives it back: a patcher that waits for handlers would wait for ever`},
		{"miss:\nlook again\ngo back",
			`6: miss: go back: without "sync" before it the CPU could fetch the same breakpoint for ever`},
		{"miss:\nlook again\nmiss:\nfatal", `6: "miss:": line 4 has begun this section already`},
		{"miss:\nfor each patch\nfatal\nend", `5: miss "for each patch": not one of`},
		{"entry:\nact", `5: entry "act": not one of sync, call a site, enter, catch up, await resume, load kernel cr3`},
		{"hander:\nact", `4: "hander:": not one of`},
		{"miss:\nfatal\nname: other", `6: "name:": headers come before the first section`},
		{"miss:\n" + strings.Repeat("skip\n", 100), "more than 100 steps"},
	} {
		_, err := ParseProtocol("my.plan", []byte(plain+c.path))
		var wrong *PlanError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.path, err, c.want)
		}
	}
	p := parse(t, "my.plan", []byte(plain+"site:\nfetch site\nload literal\ncall\n"))
	s := shapeOf(t, "x86_64", p, 1, false)
	want := `my.plan:6: on x86_64: load literal: a site has no literal (write "load literal if literal")`
	if err := p.Compile(s, cut(1, 1), func(Step) {}); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := p.Path(s); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
