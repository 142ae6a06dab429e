// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
)

// TestReadCounts: what is written is read again.
func TestReadCounts(t *testing.T) {
	m := &Measurement{Arch: "a", CPUs: []cpus.Role{cpus.Idle, cpus.Busy, cpus.Isolated}, Told: Told{Release: "r"}}
	for i := range 2 {
		for _, d := range directions {
			m.Readings = append(m.Readings, Reading{Action: "x:y", Direction: d, Repetition: i,
				Rows: []Row{{Name: "CAL", Interrupts: []int{0, 3 + i, 3}}, {Name: "RES", Interrupts: []int{1, 0, 0}}}})
		}
	}
	counts := m.Counts()
	table, err := Columns.Fill("counts", pointers(counts))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := results.WriteCSV(&b, table); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCounts("file", &b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, got); d != "" {
		t.Error(d)
	}
}

func pointers(counts []Count) []*Count {
	out := make([]*Count, len(counts))
	for i := range counts {
		out[i] = &counts[i]
	}
	return out
}

const countsHeader = "arch,release,action,direction,row,cpu,role,repetition,interrupts"

// TestReadCountsRefuses: what is wrong is said with its file and line.
func TestReadCountsRefuses(t *testing.T) {
	good := "\na,r,x,enable,CAL,0,patcher,0,0"
	for text, want := range map[string]string{
		"":             "file:1: the file is empty",
		"arch,release": "want the columns arch,release,action",
		countsHeader:   "no rows",
		countsHeader + good + "\na,s,x,enable,CAL,1,idle,0,0":    "the lines before are of a r",
		countsHeader + good + "\na,r,x,up,CAL,1,idle,0,0":        "file:3: direction",
		countsHeader + good + "\na,r,x,enable,CAL,1,idle,0,-1":   "file:3: interrupts",
		countsHeader + good + "\na,r,x,enable,CAL,99,idle,0,1":   "file:3: cpu",
		countsHeader + good + "\na,r,x,enable,CAL,1,patcher,0,1": "file:3: role",
		countsHeader + good + "\na,r":                            "file",
	} {
		if _, err := ReadCounts("file", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzReadCounts: whatever a file holds, what is read of it is in order.
func FuzzReadCounts(f *testing.F) {
	f.Add(countsHeader + "\na,r,x,enable,CAL,0,patcher,0,0\na,r,x,enable,CAL,2,idle,0,5\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadCounts("file", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, c := range m.Counts() {
			if c.CPU >= len(m.CPUs) || c.Interrupts < 0 || c.Role == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}
