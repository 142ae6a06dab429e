// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
)

// herd7 is the reference simulator of Arm's memory model; its model of instruction fetches is official (Simner et al.,
// "ARMv8-A system semantics: instruction fetch in relaxed architectures", ESOP 2020; herdtools7, -variant self). Here
// programs are said in its words, and all that they can come out as is compared. `.ci/herd` installs it.
var herd = flag.String("herd", "", "path of herd7, which is asked the same questions")

// cacheTypes are arm's classes in herd7's words.
var cacheTypes = map[string]string{"arm(0,0)": "", "arm(0,1)": "IDC", "arm(1,1)": "DIC IDC"}

// Registers of herd7's programs: a site holds MOV W9,#VERSION and is called as a function.
const (
	fetched  = 9
	sites    = 10 // and above: their addresses
	places   = 14 // of data
	versions = 20 // texts to store
)

// results are the registers of a test's registers.
var results = [maxRegs]int{0, 1, 2, 3, 4, 5, 8, 18}

// inHerd says a test in herd7's words; false where it has none for it.
func (t *Test) inHerd(class string) (string, bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "AArch64 t\nCacheType=%s\n{\n", cacheTypes[class])
	for i, d := range t.data {
		fmt.Fprintf(&b, "%s=%s;\n", d.name, d.initial)
		for th := range t.threads {
			fmt.Fprintf(&b, "%d:X%d=%s;\n", th, places+i, d.name)
		}
	}
	stored := map[string]bool{}
	for th := range t.threads {
		for i, s := range t.sites {
			if len(s.initial) != 1 {
				return "", false
			}
			fmt.Fprintf(&b, "%d:X%d=P0:L%s;\n", th, sites+i, s.name)
		}
		for _, in := range t.threads[th].insns {
			if key := fmt.Sprint(th, in.text); in.op == opStore && !stored[key] {
				stored[key] = true
				fmt.Fprintf(&b, "%d:X%d=instr:%q;\n", th, versions+int(in.text[0]-'0'), "MOV W9,#"+in.text)
			}
		}
	}
	b.WriteString("}\n")
	var columns [][]string
	rows := 0
	for th := range t.threads {
		column := []string{fmt.Sprintf("P%d", th)}
		for i := range t.threads[th].insns {
			lines, ok := t.herdLines(&t.threads[th].insns[i], fmt.Sprintf("L%d%d", th, i))
			if !ok {
				return "", false
			}
			column = append(column, lines...)
		}
		if th == 0 {
			column = append(column, "B Lend")
			for _, s := range t.sites {
				column = append(column, "L"+s.name+":", "MOV W9,#"+s.initial, "RET")
			}
			column = append(column, "Lend:")
		}
		columns = append(columns, column)
		rows = max(rows, len(column))
	}
	for row := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, append(c, make([]string, rows)...)[row])
		}
		fmt.Fprintf(&b, " %s ;\n", strings.Join(cells, " | "))
	}
	b.WriteString("locations [")
	for i, r := range t.regs {
		fmt.Fprintf(&b, "%d:X%d;", r.thread, results[i])
	}
	for _, d := range t.data {
		fmt.Fprintf(&b, "%s;", d.name)
	}
	b.WriteString("]\nforall (true)\n")
	return b.String(), true
}

// herdLines is one instruction.
func (t *Test) herdLines(i *insn, label string) (lines []string, ok bool) {
	offset, value := "", ""
	if i.addr >= 0 {
		lines = append(lines, fmt.Sprintf("EOR W6,W%[1]d,W%[1]d", results[i.addr]))
		offset = ",W6,SXTW"
	}
	if i.from >= 0 {
		lines = append(lines, fmt.Sprintf("EOR W7,W%[1]d,W%[1]d", results[i.from]))
	}
	at := places + i.data
	if i.site >= 0 {
		at = sites + i.site
	}
	switch i.op {
	case opStore:
		value = fmt.Sprintf("W%d", versions+int(i.text[0]-'0'))
		if i.from >= 0 {
			return nil, false // herd7 adds nothing to an instruction
		}
		return append(lines, fmt.Sprintf("STR %s,[X%d%s]", value, at, offset)), true
	case opWrite:
		if lines = append(lines, "MOV W19,#"+i.text); i.from >= 0 {
			lines[len(lines)-1] = "ADD W19,W7,#" + i.text
		}
		if i.marked("release") {
			return append(lines, fmt.Sprintf("STLR W19,[X%d]", at)), offset == ""
		}
		return append(lines, fmt.Sprintf("STR W19,[X%d%s]", at, offset)), true
	case opRead:
		if i.marked("acquire") {
			return append(lines, fmt.Sprintf("LDAR W%d,[X%d]", results[i.reg], at)), offset == ""
		}
		return append(lines, fmt.Sprintf("LDR W%d,[X%d%s]", results[i.reg], at, offset)), true
	case opExec:
		if offset != "" {
			lines, at = append(lines, fmt.Sprintf("ADD X7,X%d,W6,SXTW", at)), 7
		}
		return append(lines, fmt.Sprintf("BLR X%d", at), fmt.Sprintf("MOV W%d,W%d", results[i.reg], fetched)), true
	case opDC:
		return append(lines, fmt.Sprintf("DC CVAU,X%d", at)), true
	case opIC:
		return append(lines, fmt.Sprintf("IC IVAU,X%d", at)), true
	case opCtrl:
		return append(lines, fmt.Sprintf("CBNZ W%d,%s", results[i.on], label), label+":"), true
	}
	plain, ok := map[op]string{opDSB: "DSB ISH", opDMB: "DMB ISH", opDMBst: "DMB ISHST", opDMBld: "DMB ISHLD", opISB: "ISB"}[i.op]
	return append(lines, plain), ok
}

// herdOutcomes is all that a test can come out as, as herd7 says.
func (t *Test) herdOutcomes(tb rapid.TB, class string) (all map[string]bool, ok bool) {
	program, ok := t.inHerd(class)
	if !ok {
		return nil, false
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("textpoke-herd-%d.litmus", os.Getpid()))
	defer os.Remove(path)
	if err := os.WriteFile(path, []byte(program), 0o600); err != nil {
		tb.Fatal(err)
	}
	var out, wrong bytes.Buffer
	cmd := exec.Command(*herd, "-variant", "self", "-timeout", "60", path)
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%s: %v: %s", *herd, err, wrong.String())
	}
	if out.Len() == 0 {
		tb.Skip("herd7 has no answer in time")
	}
	_, states, found := strings.Cut(out.String(), "\nStates ")
	if !found || strings.Contains(wrong.String(), "Warning") {
		tb.Fatalf("%s says %s%s of\n%s", *herd, out.String(), wrong.String(), program)
	}
	all = map[string]bool{}
	for line := range strings.Lines(states[strings.Index(states, "\n")+1:]) {
		if !strings.Contains(line, ";") {
			break
		}
		values := map[string]string{}
		for part := range strings.SplitSeq(strings.TrimSpace(line), ";") {
			place, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if at := strings.LastIndex(value, "#"); at >= 0 { // instr:"MOV W9,#1"
				value = strings.TrimSuffix(value[at+1:], `"`)
			}
			values[strings.Trim(place, "[]")] = value
		}
		var regs, data []isa.Text
		for i, r := range t.regs {
			regs = append(regs, textOf(values[fmt.Sprintf("%d:X%d", r.thread, results[i])]))
		}
		for _, d := range t.data {
			data = append(data, textOf(values[d.name]))
		}
		all[t.readable(regs, data)] = true
	}
	return all, true
}

// readable is an outcome without the last text of sites.
func (t *Test) readable(regs, data []isa.Text) string {
	all, _, _ := strings.Cut(t.final(regs, data, func(int) isa.Text { return textOf("?") }), t.sites[0].name+"=?")
	return all
}

// TestHerd compares shipped tests.
func TestHerd(t *testing.T) {
	if *herd == "" {
		t.Skip("-herd does not say where herd7 is")
	}
	names, _ := filepath.Glob("tests/*.litmus")
	asked, left := 0, 0
	for _, name := range names {
		test := shipped(t, strings.TrimSuffix(filepath.Base(name), ".litmus"))
		for _, e := range test.expect {
			if cacheTypes[e.class.name] == "" && e.class.name != "arm(0,0)" {
				continue
			}
			theirs, ok := test.herdOutcomes(t, e.class.name)
			if !ok {
				left++
				t.Logf("%s on %s: herd7 is not asked", test.Name, e.class.name)
				continue
			}
			asked++
			ours := test.ours(t, e.class)
			compare(t, test, e.class.name, ours, theirs)
		}
	}
	t.Logf("%d asked, %d left out", asked, left)
}

// ours is all that a test can come out as here.
func (t *Test) ours(tb rapid.TB, c *class) map[string]bool {
	all := map[string]bool{}
	m := newMachine(t, c)
	if err := m.explore(context.Background(), func(s *state, _ int32, _ move) bool {
		if m.ended(s) {
			all[t.readable(s.regs[:], s.data[:])] = true
		}
		return true
	}); errors.Is(err, ErrTooLarge) {
		tb.Skip(err)
	} else if err != nil {
		tb.Fatal(err)
	}
	return all
}

// compare fails where one allows what the other does not.
func compare(t rapid.TB, test *Test, class string, ours, theirs map[string]bool) {
	var only, missing []string
	for _, o := range slices.Sorted(maps.Keys(ours)) {
		if !theirs[o] {
			only = append(only, o)
		}
	}
	for _, o := range slices.Sorted(maps.Keys(theirs)) {
		if !ours[o] {
			missing = append(missing, o)
		}
	}
	if only != nil || missing != nil {
		t.Errorf("%s on %s: only ours %q, only herd7's %q", test.Name, class, only, missing)
	}
}

// TestHerdRandom compares random programs of two or three threads on all three classes.
func TestHerdRandom(t *testing.T) {
	if *herd == "" {
		t.Skip("-herd does not say where herd7 is")
	}
	rapid.Check(t, func(t *rapid.T) {
		test := herdProgram(t)
		for _, e := range test.expect {
			theirs, ok := test.herdOutcomes(t, e.class.name)
			if !ok {
				t.Fatalf("herd7 has no words for\n%s", test)
			}
			compare(t, test, e.class.name, test.ours(t, e.class), theirs)
			if t.Failed() {
				t.Fatalf("of\n%s", test)
			}
		}
	})
}

// herdProgram draws a program that herd7 has words for: it ends with few stores and few calls, whose number herd7's time
// grows fast with.
func herdProgram(t *rapid.T) *Test {
	var b strings.Builder
	b.WriteString("test random\nsite a 0\nsite b 0\ndata x\n")
	regs, stores := 0, 0
	threads := rapid.IntRange(2, 3).Draw(t, "threads")
	words := []string{"store", "write", "read", "read", "exec", "exec", "dc", "ic", "dsb", "dmb", "dmb.st", "dmb.ld", "isb", "ctrl",
		"acquire", "release", "cachesync"}
	for th := range threads {
		fmt.Fprintf(&b, "thread t%d\n", th)
		last := ""
		for range rapid.IntRange(1, 9-2*threads).Draw(t, "length") {
			site := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "site")
			place := rapid.SampledFrom([]string{"x", "x", site}).Draw(t, "place")
			dep := rapid.SampledFrom([]string{"", "", " addr "}).Draw(t, "dependency")
			if dep += last; last == "" || dep == last {
				dep = ""
			}
			switch word := rapid.SampledFrom(words).Draw(t, "word"); word {
			case "store":
				if stores++; stores <= 2 {
					fmt.Fprintf(&b, "store %s %d%s\n", site, stores, dep)
				}
			case "write":
				fmt.Fprintf(&b, "write x 1%s\n", dep)
			case "release":
				b.WriteString("write x 1 release\n")
			case "read", "exec", "acquire":
				if regs == 4 {
					continue
				}
				last = fmt.Sprintf("r%d", regs)
				regs++
				switch word {
				case "read":
					fmt.Fprintf(&b, "%s = read %s%s\n", last, place, dep)
				case "exec":
					fmt.Fprintf(&b, "%s = exec %s%s\n", last, site, dep)
				default:
					fmt.Fprintf(&b, "%s = read x acquire\n", last)
				}
			case "dc", "ic":
				fmt.Fprintf(&b, "%s %s\n", word, site)
			case "cachesync":
				fmt.Fprintf(&b, "dc %[1]s\ndsb\nic %[1]s\ndsb\n", site)
			case "ctrl":
				if last != "" {
					fmt.Fprintf(&b, "ctrl %s\n", last)
				}
			default:
				b.WriteString(word + "\n")
			}
		}
	}
	b.WriteString("outcome x=0\nexpect none arm(0,0)\nexpect none arm(0,1)\nexpect none arm(1,1)\n")
	return drawn(t, b.String())
}
