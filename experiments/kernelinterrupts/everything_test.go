// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
)

// cell is what a receiver was seen to take in one row for one direction of an action.
type cell struct {
	name                string
	measured, predicted int
	within              ledger.Range
	asked               error  // why it cannot be predicted
	why                 string // it differs
}

// namedOrFile finds a kernel in the program, or in testdata/facts.
func namedOrFile(name string) (*ledger.Kernel, error) {
	if k, err := ledger.Named(name); err == nil {
		return k, nil
	}
	f, err := os.Open("testdata/facts/" + name + ".csv.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return ledger.ReadFacts(name, r)
}

// actionCells are those of testdata/actions.csv: counts of the quietest of three receivers
// (median over repetitions), or where a number of functions stands, of the formulas in
// kernels/ledger that such counts follow.
func actionCells(t *testing.T) (cells []cell) {
	t.Helper()
	f, err := os.Open("testdata/actions.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		kernel, state, action := row[0], strings.Fields(row[1]), row[2]
		k, err := namedOrFile(kernel)
		if err != nil {
			t.Fatal(err)
		}
		r, err := k.In(state).NewReplay(named(t, action))
		if err != nil {
			t.Fatal(err)
		}
		for i, direction := range []string{"enable", "disable"} {
			c := cell{name: fmt.Sprint(kernel, " ", state, " ", action, " ", direction), why: row[6]}
			if c.measured, err = strconv.Atoi(row[4+i]); err != nil {
				t.Fatal(err)
			}
			lines, err := r.Switch(action, i == 0)
			c.asked = err
			for _, l := range lines {
				if l.Row == row[3] {
					c.predicted += l.Rounds()
					c.within.Add(&l.Entry)
				}
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// named are the records that an action names, where it does so by a filter: few enough for one batch.
func named(t *testing.T, action string) *records.Table {
	t.Helper()
	if !strings.Contains(action, ":vfs_") {
		return nil
	}
	table, err := records.New("named", "", []records.Raw{{Addr: 16, Symbol: "vfs_read"}, {Addr: 32, Symbol: "vfs_write"}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestEverythingMeasured keeps two shares over all that was measured, in rows that count
// nothing while nothing is switched: what can be asked, and what is exact. Whatever else
// differs has a reason, or stands in aside. What docs/lab-book.md tells of it is what comes out.
func TestEverythingMeasured(t *testing.T) {
	cells := actionCells(t)
	outside := 0
	for _, c := range cells {
		if c.asked == nil && (c.measured < c.within.Least || c.measured > c.within.Most && !c.within.OrMore) {
			t.Logf("%s: measured %d, predicted %s", c.name, c.measured, c.within)
			outside++
		}
	}
	if outside > 1 {
		t.Errorf("%d of %d cells lie outside of their ranges", outside, len(cells))
	}
	a := answer(t)
	rest := a.rest()
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if !s.Load.Switches() || !rest[rowKey{s.Kernel, s.CPUs, s.Row}].quiet {
			continue
		}
		c := cell{name: fmt.Sprintf("%s %d %s %d %s", s.Kernel.Name(), s.CPUs, s.Scenario, s.Functions, s.Row),
			measured: int(s.Quietest), predicted: s.Model, why: s.Why}
		if _, ok := aside[c.name]; ok {
			c.why = "named as unknown"
		}
		cells = append(cells, c)
	}
	asked, exact := 0, 0
	for _, c := range cells {
		switch {
		case c.asked != nil:
			t.Logf("%s: %v", c.name, c.asked)
			continue
		case c.measured == c.predicted:
			exact++
		case c.why == "" || c.why == unexplained || c.why == everyReceiver:
			t.Errorf("%s: predicted %d, measured %d, and nothing explains it", c.name, c.predicted, c.measured)
		}
		asked++
	}
	t.Logf("%d cells: %d asked, %d exact", len(cells), asked, exact)
	told := fmt.Sprintf("%d of %d cells can be asked, %d are exact", asked, len(cells), exact)
	if doc, err := os.ReadFile("../../docs/lab-book.md"); err != nil || !strings.Contains(string(doc), told) {
		t.Errorf("docs/lab-book.md does not say %q (%v)", told, err)
	}
	if 100*asked < 95*len(cells) || 100*exact < 90*len(cells) {
		t.Errorf("%d cells: %d can be asked (want 95 %%), %d are exact (want 90 %%)", len(cells), asked, exact)
	}
}
