// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/records"
)

// TestMeasurements: they are all there, and each kernel's have at least two
// repetitions of a toggle and a second of nothing.
func TestMeasurements(t *testing.T) {
	all, err := Measurements()
	if err != nil {
		t.Fatal(err)
	}
	count, idle := map[string]int{}, map[string]bool{}
	for _, m := range all {
		count[m.Kernel.Name()]++
		if m.Load == Idle {
			idle[m.Kernel.Name()] = true
		}
		if m.Load.Switches() && m.Enable == strings.Contains(m.Scenario, "disable") {
			t.Fatalf("%s: enable %v", m.Scenario, m.Enable)
		}
		if m.Patcher != (m.CPU == 0) {
			t.Fatalf("CPU %d: patcher %v", m.CPU, m.Patcher)
		}
	}
	for name, want := range map[string]int{"x86_64-6.12": 2880, "arm64-6.12": 5504, "riscv64-6.12": 6192,
		"riscv64-7.2": 2304} {
		if count[name] != want || !idle[name] {
			t.Errorf("%s: %d measurements, want %d; idle %v", name, count[name], want, idle[name])
		}
	}
}

const measuredHeader = "arch,kernel,cpus,scenario,functions,repetition,cpu,role,row,description,delta"

const goodRow = "x86_64,6.12,4,k_first_enable,10,0,1,receiver,CAL,Function call interrupts,52\n"

// TestWrongMeasurements: file, line and value, in one line.
func TestWrongMeasurements(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(goodRow, old) {
			t.Fatalf("no %q", old)
		}
		return measuredHeader + "\n" + goodRow + strings.Replace(goodRow, old, new, 1)
	}
	for text, want := range map[string]string{
		"":                                  "f.csv:1: the file is empty",
		"a,b\n":                             `f.csv:1: "a,b": want the columns ` + measuredHeader,
		change(",52", ",-1"):                `f.csv:3: delta "-1": want a whole number`,
		change(",52", ",1e3"):               `f.csv:3: delta "1e3": want a whole number`,
		change(",52", ",99999999999"):       `f.csv:3: delta "99999999999": want a whole number`,
		change(",52", ""):                   `f.csv:3: wrong number of fields`,
		change("6.12", "6.13"):              `f.csv:3: kernel "6.13": no kernel`,
		change("k_first_enable", "k_first"): `f.csv:3: scenario "k_first": want one of`,
		change("CAL", "LOC"):                `f.csv:3: row "LOC": no row of x86_64-6.12`,
		change("CAL", ""):                   `f.csv:3: row "": is missing`,
		change("receiver", "bystander"):     `f.csv:3: role "bystander": want one of patcher, receiver`,
		change(",0,1,", ",0,4,"):            `f.csv:3: cpu "4": the machine has 4`,
		change(",10,", ",0,"):               `f.csv:3: functions "0": scenario k_first_enable`,
		change("Function", `"Function`):     `f.csv:`,
	} {
		_, err := sheet.Read[Measured]("f.csv", strings.NewReader(text))
		var bad *records.ParseError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestLists: the lists of kernels and of rows agree, and each kernel has a file of its name.
func TestLists(t *testing.T) {
	for _, r := range sheet.Must[Row]("rows.csv", rowsText) {
		if !slices.Contains(Names(), r.Kernel) {
			t.Errorf("row %s of %s, which no list of kernels has", r.Name, r.Kernel)
		}
	}
	for _, b := range builtins() {
		if k := b.open(); k.Name() != b.Name {
			t.Errorf("%s is in the file of %s", k.Name(), b.Name)
		}
	}
}

// TestWrongFacts: and so does a file of facts.
func TestWrongFacts(t *testing.T) {
	const good = factsHeader + "\narch,arm64,0,,\nrelease,9.9,0,,\n"
	if k, err := ReadFacts("f.csv", strings.NewReader(good)); err != nil || k.Name() != "arm64-9.9" {
		t.Fatal(k, err)
	}
	for text, want := range map[string]string{
		"":                                       "f.csv:1: the file is empty",
		factsHeader + "\n":                       `f.csv:1: there are no rows`,
		factsHeader + "\narch,arm64,0,,\n":       `f.csv:1: the file names no arch, or no release`,
		good + "key,k,-1,,\n":                    `f.csv:4: count "-1": want a whole number`,
		good + "key,,1,,\n":                      `f.csv:4: name "": is missing`,
		good + "event,open,1,,\n":                `f.csv:4: name "open": want GROUP/NAME`,
		good + "records,all,4194305,,\n":         `f.csv:4: count "4194305": want 4194304 records at the most`,
		good + "guess,k,1,,\n":                   `f.csv:4: fact "guess": want one of arch`,
		strings.Replace(good, "arm64", "vax", 1): `f.csv: arch "vax"`,
	} {
		if _, err := ReadFacts("f.csv", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// everyFact is a line of each kind, in the order in which they are written.
const everyFact = factsHeader + `
arch,x86_64,0,,
release,7.2,0,,
image,abcd,0,sha256,
records,all,2,,
mechanism,batch-rounds,3,,the code
mechanism,batch-slots,256,,its table
unknown,direct-cuts,0,,"a, b"
unnamed,keys,0,,the image names no data
recorder,sched_switch,0,,
recorder,sched_wakeup,0,,
tracepoint,sched_switch,4,first second,
tracepoint,sched_wakeup,0,,
call,tp_func_sched_switch,2,trampoline,
call,tp_func_sched_wakeup,1,,
key,first,1,,
key,second,9,,
event,sched/sched_switch,0,sched_switch,
event,ftrace/print,0,,
record,vfs_open,0,0xffffffff81000010,
record,vfs_read,0,0xffffffff81000020,
`

// TestFactsAsText: facts are written as they were read, word by word.
func TestFactsAsText(t *testing.T) {
	k, err := ReadFacts("f.csv", strings.NewReader(everyFact))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteFacts(&b, k); err != nil || b.String() != everyFact {
		t.Errorf("%v\n%s", err, b.String())
	}
	for change, want := range map[string]string{
		"records,all,2>records,all,3":       "f.csv: 2 records are named: want 3, as many as the file says there are",
		"0xffffffff81000010>0xg":            `f.csv:20: detail "0xg": want a number such as 0xffffffff81000010`,
		"arch,x86_64,0,,\n>":                "f.csv:1: the file names no arch, or no release",
		"release,7.2,0,,\n>":                "f.csv:1: the file names no arch, or no release",
		"sched/sched_switch,0>sched,0":      `f.csv:18: name "sched": want GROUP/NAME`,
		"records,all,2>records,all,4194305": `f.csv:5: count "4194305": want 4194304 records at the most`,
		"arch,x86_64>arch,x86":              `f.csv: arch "x86": not one of x86_64, arm64, riscv64; did you mean x86_64?`,
	} {
		old, now, _ := strings.Cut(change, ">")
		if _, err := ReadFacts("f.csv", strings.NewReader(strings.Replace(everyFact, old, now, 1))); fmt.Sprint(err) != want {
			t.Errorf("%s: %v\nwant %s", change, err, want)
		}
	}
}

// FuzzMeasured: whatever is read is refused in one line, or fits what it claims.
func FuzzMeasured(f *testing.F) {
	f.Add(measuredHeader + "\n" + goodRow)
	f.Add(measuredHeader + "\r\n\"x86_64\",6.12,2,idle1s,0,0,0,patcher,TLB,,0\r\n")
	f.Add("arch\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := sheet.Read[Measured]("f", strings.NewReader(text))
		if err != nil {
			var bad *records.ParseError
			if !errors.As(err, &bad) || strings.Contains(err.Error(), "\n") || all != nil {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, m := range all {
			_, ok := m.Kernel.Row(m.Row)
			if !ok || m.CPU < 0 || m.CPU >= m.CPUs || m.Delta < 0 || m.Functions < 0 || !slices.Contains(measuredScenarios(),
				m.Scenario) {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// FuzzFacts: whatever is read as facts is refused in one line, or replays without a
// panic, and writes what reads as the same.
func FuzzFacts(f *testing.F) {
	f.Add(factsHeader + "\narch,arm64,0,,\nrelease,9.9,0,,\nmechanism,batch-rounds,3,,\nevent,a/b,0,c,\n")
	f.Add(factsHeader + "\n")
	f.Add(factsHeader + "\narch,x86_64,0,,\nrelease,7.2,0,,\nrecords,all,2,,\nrecord,a,0,0x1000,\nrecord,b,0,0x2000,\n")
	f.Add(factsHeader + "\narch,x86_64,0,,\nrelease,7.2,0,,\nrecords,all,70000,,\nmechanism,batch-slots,256,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ReadFacts("f", strings.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		for _, action := range []string{"function-tracer", "function-graph", "event-group:all", "kprobe", "fentry", "kprobe-multi"} {
			r, err := k.NewReplay(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, on := range []bool{true, false} {
				if _, err := r.Switch(action, on); err != nil && strings.Contains(err.Error(), "\n") {
					t.Fatalf("%q", err)
				}
			}
		}
		var first, second strings.Builder
		if err := WriteFacts(&first, k); err != nil {
			t.Fatal(err)
		}
		again, err := ReadFacts("f", strings.NewReader(first.String()))
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteFacts(&second, again); err != nil || first.String() != second.String() {
			t.Fatalf("written twice: %v\n%s\n%s", err, first.String(), second.String())
		}
	})
}
