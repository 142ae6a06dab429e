// SPDX-License-Identifier: Apache-2.0

package published

import (
	"strings"
	"testing"
)

// TestAttachTables: what comes with the program agrees with itself: single readings are at
// most one above the formula of their kernel, and the waits are those that were measured.
func TestAttachTables(t *testing.T) {
	waits := must(AttachWaits.Read(""))(t)
	formulas := must(AttachFormulas.Read(""))(t)
	if len(waits) != 2 || waits[0].WaitMS != 129 || !waits[0].Tasks || waits[1].WaitMS != 15 || waits[1].Tasks {
		t.Errorf("waits %+v", waits)
	}
	above := 0
	for _, r := range must(AttachReadings.Read(""))(t) {
		found := false
		for _, f := range formulas {
			if f.Kernel != r.Kernel || f.Way != r.Way || f.Direction != r.Direction {
				continue
			}
			found = true
			d := int(r.Interrupts) - f.At(int(r.Functions))
			if d < 0 || d > 1 {
				t.Errorf("%+v is %d off", r, d)
			}
			above += d
		}
		if !found {
			t.Errorf("%+v has no formula", r)
		}
	}
	if above != 2 {
		t.Errorf("%d readings are above their formula, want 2", above)
	}
}

// TestReaches: the ranges that the manuals state.
func TestReaches(t *testing.T) {
	rows := must(Reaches.Read(""))(t)
	want := map[string][2]int64{"x86_64 word": {1 << 31, 1<<31 - 1}, "arm64 word": {1 << 27, 1<<27 - 4},
		"riscv64 pair": {1<<31 + 1<<11, 1<<31 - 1<<11 - 1}, "riscv64 word": {2047, 2047}}
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if w := want[r.Arch+" "+r.Layout]; r.Down != w[0] || r.Up != w[1] || (r.From == FromEntry) != (r.Up == 2047) {
			t.Errorf("%+v, want %v", r, w)
		}
	}
}

// TestAttachWrong: what is wrong is named with file, line and value.
func TestAttachWrong(t *testing.T) {
	const waits, formulas, readings = "kernel,wait_ms,tasks,source\n", "kernel,way,direction,per_function,per_batch,fixed,background,source\n", "kernel,way,direction,functions,interrupts,source\n"
	for _, tt := range []struct{ text, want string }{
		{waits + "k,-1,yes,s", `f:2: wait_ms "-1": want a whole number, 0 or more`},
		{waits + "k,1,maybe,s", `f:2: tasks "maybe": want one of no, yes`},
		{waits + "k,1,yes,s\nk,2,yes,s", `f:3: "k": line 2 is about the same`},
		{formulas + "k,w,on,1,2,3,no,s", `f:2: direction "on": want one of attach, detach`},
		{formulas + "k,w,attach,1,2,3,maybe,s", `f:2: background "maybe": want one of no, yes`},
		{readings + "k,w,attach,0,3,s", `f:2: functions "0": want a whole number, 1 or more`},
		{readings + "k,w,attach,4,3,s\nk,w,attach,4,5,s", `f:3: "k w attach 4": line 2 is about the same`},
	} {
		var err error
		switch header, _, _ := strings.Cut(tt.text, "\n"); header + "\n" {
		case waits:
			_, err = AttachWaits.read("f", strings.NewReader(tt.text))
		case formulas:
			_, err = AttachFormulas.read("f", strings.NewReader(tt.text))
		default:
			_, err = AttachReadings.read("f", strings.NewReader(tt.text))
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}
