// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"strings"
	"testing"
)

// TestCasesRefused: what a case says wrongly is said with its line.
func TestCasesRefused(t *testing.T) {
	const machine = "name: mine\nmachine:\n arch x86_64\n cpus 2\ntext:\n disabled\n"
	for _, c := range []struct{ text, want string }{
		{"naem: mine", `mine.case:1: "naem": not one of`},
		{"name: mine\nname: yours", `mine.case:2: "name:": a second time`},
		{"name mine", `mine.case:1: "name mine": not one of`},
		{" lost", `mine.case:1: "lost" is indented, and nothing is above it`},
		{"machine: x86_64", `mine.case:1: "machine:": want nothing behind it`},
		{"machine:\nname: late", `mine.case:2: "name:": headers come before the first section`},
		{"text:\n disabled\ntext:", `mine.case:3: "text:": a second time`},
		{"text:\n disabled", `mine.case:2: disabled: want the machine's instruction set before it`},
		{"name: mine", `no instruction set: want a line such as "arch x86_64"`},
		{"machine:\n arch x86-64", `mine.case:2: arch x86-64`},
		{"machine:\n arhc x86_64", "did you mean arch?"},
		{"machine:\n deaf 1", `mine.case:2: deaf 1: "1": want "cpu" and a number`},
		{"machine:\n preempt now", `"now": want ""`},
		{"machine:\n without luck", `"luck": not one of literals, masked-rounds`},
		{"machine:\n attached nobody", `address "nobody": not one of entry, first_ops, nop_ops, other, third, nor a number`},
		{machine + " bytes 90 90", "mine.case:7: bytes 90 90: 2 bytes: a site has 5"},
		{machine + " bytes 90 90 90 90 xx", `byte "xx": want two hexadecimal digits`},
		{machine + " cals entry", "did you mean calls?"},
		{machine + " jumps to 0x1000000000000", "the branch does not reach its target"},
		{machine + " disabled, entry", `"entry": want "ops"`},
		{machine + "patches:\n site 1, to disabled", `"site 1": want one of the 1 sites`},
		{machine + "patches:\n site 0, into disabled", `"into disabled": want "from" or "to"`},
		{machine + "patcher:\n Verify", "mine.case:8: Verify: there are 0 patches"},
		{machine + "patches:\n site 0, to calls entry\npatcher:\n Verify 1", "there are 1 patches"},
		{machine + "patches:\n site 0, to calls entry\npatcher:\n update brakpoint 0", "did you mean breakpoint?"},
		{machine + "patches:\n site 0, to calls entry\npatcher:\n update breakpoint 1", `patches "1": want some of 1`},
		{machine + "patches:\n site 0, to calls entry\npatcher:\n update breakpoint 0 twice", `"twice": want "back"`},
		{machine + "patches:\n site 0, to calls entry\npatcher:\n Wriet tail", "did you mean Write?"},
		{machine + "miss:\n look again", `mine.case: miss: want it to end with`},
		{machine + "miss:\n despair", `mine.case:8: despair: miss "despair": not one of`},
	} {
		b, err := read("mine.case", c.text)
		if err == nil {
			_, err = b.laidOut(true)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestSides: a line is there on the side that it names, or on both.
func TestSides(t *testing.T) {
	b, err := read("mine.case",
		"machine:\n arch x86_64\n arch arm64 if fixed\n cpus 1 if broken # for people\n cpus 3 if fixed\n")
	if err != nil {
		t.Fatal(err)
	}
	for isFixed, want := range map[bool]string{false: "x86_64 1", true: "arm64 3"} {
		m, err := b.laidOut(isFixed)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Code.Traits.Name + " " + string(rune('0'+len(m.Roles))); got != want {
			t.Errorf("fixed %v: %s, want %s", isFixed, got, want)
		}
	}
}

// FuzzRead: no text makes the reader or the stage panic, and errors are one line.
func FuzzRead(f *testing.F) {
	for _, b := range All() {
		text, err := cases.ReadFile("cases/" + b.file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := read("f.case", text)
		for _, isFixed := range []bool{false, true} {
			if err == nil {
				_, err = b.laidOut(isFixed)
			}
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "f.case")) {
			t.Errorf("%q", err)
		}
	})
}
