// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"

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
		"":                                  "f.csv: no header " + measuredHeader,
		"a,b\n":                             `f.csv:1: header "a,b": not ` + measuredHeader,
		change(",52", ",-1"):                `f.csv:3: delta "-1": want a whole number`,
		change(",52", ",1e3"):               `f.csv:3: delta "1e3": want a whole number`,
		change(",52", ",99999999999"):       `f.csv:3: delta "99999999999": want a whole number`,
		change(",52", ""):                   `f.csv:3: row "x86_64,6.12,4`,
		change("6.12", "6.13"):              `f.csv:3: kernel "x86_64-6.13": no kernel`,
		change("k_first_enable", "k_first"): `f.csv:3: scenario "k_first": not one of`,
		change("CAL", "LOC"):                `f.csv:3: row "LOC": no row of x86_64-6.12`,
		change("CAL", ""):                   `f.csv:3: row "": want a name`,
		change("receiver", "bystander"):     `f.csv:3: role "bystander": not one of patcher, receiver`,
		change(",0,1,", ",0,4,"):            `f.csv:3: cpu "4": the machine has 4`,
		change(",10,", ",0,"):               `f.csv:3: functions "0": scenario k_first_enable`,
		change("Function", `"Function`):     `f.csv:`,
	} {
		_, err := ReadMeasured("f.csv", strings.NewReader(text))
		var bad *records.ParseError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestWrongLedgers: so do the kernels' own files.
func TestWrongLedgers(t *testing.T) {
	const kernel = "a-1,a,1,no,,,word,CAL,RES,sync,3,0,0,src\n"
	const row = "a-1,CAL,yes,no,calls\n"
	const entry = "a-1,function-tracer,enable,part,static-key,CAL,1,3,yes,counted,src\n"
	for _, tt := range []struct{ kernels, rows, ledger, want string }{
		{strings.Replace(kernel, "a-1", "a-2", 1), "", "",
			`kernels.csv:2: kernel "a-2": its architecture and release make a-1`},
		{kernel + kernel, "", "", `kernels.csv:3: kernel "a-1": stands there already`},
		{strings.Replace(kernel, "CAL", "", 1), "", "", `kernels.csv:2: sync_row "": want a name`},
		{strings.Replace(kernel, "sync", "poke", 1), "", "", `kernels.csv:2: records_cause "poke": not one of sync, stop`},
		{kernel, "b" + row, "", `rows.csv:2: kernel "ba-1"`},
		{kernel, row + row, "", `rows.csv:3: row "CAL": stands there already`},
		{kernel, strings.Replace(row, "yes", "maybe", 1), "", `rows.csv:2: modelled "maybe": not one of no, yes`},
		{kernel, row, strings.Replace(entry, "CAL", "RES", 1), `ledger.csv:2: row "RES": no modelled row`},
		{kernel, row, entry + strings.Replace(entry, "yes", "no", 1), `ledger.csv:3: after_records "no"`},
		{kernel, row, strings.Replace(entry, "counted", "guessed", 1), `ledger.csv:2: basis "guessed"`},
		{kernel, row, strings.Replace(entry, ",1,", ",x,", 1), `ledger.csv:2: pokes "x"`},
		{kernel, row, strings.Replace(entry, "tracer", "trace", 1), `ledger.csv:2: scenario "function-trace"`},
	} {
		var c catalogue
		err := c.readKernels("kernels.csv", strings.NewReader(kernelsHeader+"\n"+tt.kernels))
		if err == nil {
			err = c.readRows("rows.csv", strings.NewReader(rowsHeader+"\n"+tt.rows))
		}
		if err == nil {
			err = c.readLedger("ledger.csv", strings.NewReader(ledgerHeader+"\n"+tt.ledger))
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
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
		all, err := ReadMeasured("f", strings.NewReader(text))
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

// FuzzLedger: so do the kernels' files.
func FuzzLedger(f *testing.F) {
	for _, name := range []string{"kernels.csv", "rows.csv", "ledger.csv"} {
		b, err := data.ReadFile("data/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := catalogue{kernels: Kernels()[:0:0]}
		for _, k := range Kernels() { // rows and ledgers of their own
			own := *k
			own.rows, own.ledgers, own.order = slices.Clone(k.rows), map[ledgerKey][]Entry{}, nil
			c.kernels = append(c.kernels, &own)
		}
		_ = c.readLedger("f", strings.NewReader(text))
		_ = c.readRows("f", strings.NewReader(text))
		_ = c.readKernels("f", strings.NewReader(text))
	})
}
