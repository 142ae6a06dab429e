// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/inputs"
)

// TestCallTables: the tables about calls are there, and say what the mails say.
func TestCallTables(t *testing.T) {
	calls := must(CallCosts.Read(""))(t)
	if len(calls) != 34 || calls[29].TotalNS != 46715800 || calls[29].OverheadNS != (Decimal{Units: 315}) || calls[0].HasOverhead {
		t.Errorf("call costs: %d rows, %+v", len(calls), calls[29])
	}
	m1 := must(M1Calls.Read(""))(t)
	if len(m1) != 6 || m1[2].PerCallNS != (Figure{Value: 1064.43, Known: true}) || m1[2].OverheadNS != 1063.48 || m1[4].PerCallNS.Known {
		t.Errorf("M1: %+v", m1)
	}
	triggers := must(Triggers.Read(""))(t)
	if len(triggers) != 16 || triggers[1].Mechanism != KernelCount || triggers[3].Mechanism != Fentry ||
		triggers[3].MPS != 107.149 || triggers[3].PlusMinus != 0.051 {
		t.Errorf("triggers: %+v", triggers)
	}
	runs := must(TriggerRuns.Read(""))(t)
	if len(runs) != 5 || len(runs[0].MPS) != 7 || runs[4].MPS["fmodret_multi_mps"] != 56.228 ||
		runs[0].MPS["fentry_multi_all_mps"] != 98.009 {
		t.Errorf("runs: %+v", runs)
	}
	for name := range runs[0].MPS { // both tables spell mechanisms alike
		found := false
		for _, row := range triggers {
			mps, ok := runs[0].Of(row.Mechanism)
			found = found || ok && mps == runs[0].MPS[name]
		}
		if !found {
			t.Errorf("%s is not in the other table", name)
		}
	}
	hashes := must(HashLookups.Read(""))(t)
	if len(hashes) != 4 || hashes[1].MPS != 46.381 || hashes[1].NS() != 1000/46.381 || hashes[0].Source == "" {
		t.Errorf("hashes: %+v", hashes)
	}
	multi := must(MultiCallTimes.Read(""))(t)
	if len(multi) != 6 || multi[3].Table != "padding" || multi[3].NS() != 19.3 || multi[5].Functions != 43871 ||
		multi[5].NS() != 146.5 {
		t.Errorf("multi: %+v", multi)
	}
	attach := must(AttachTimes.Read(""))(t)
	if len(attach) != 5 || attach[0].Functions != 48712 || attach[0].DetachS.Value != 0.373 || attach[2].DetachS.Known ||
		attach[2].Note != "about" {
		t.Errorf("attach: %+v", attach)
	}
	hits := must(Hits.Read(""))(t)
	if len(hits) != 4 || hits[2].Percent != 62.6 || math.Abs(hits[2].Slowdown()-2.6738) > 1e-4 {
		t.Errorf("hits: %+v", hits)
	}
}

func must[T any](rows []T, err error) func(*testing.T) []T {
	return func(t *testing.T) []T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
}

// TestCallSlips: the mail has two integers that do not follow, both in its row of
// one relevant and two irrelevant tracers; worked out by hand.
func TestCallSlips(t *testing.T) {
	slips, err := CallSlips("f", must(CallCosts.Read(""))(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range slips {
		got = append(got, s.String())
	}
	want := "f:10: per_call_ns 1374: 159562400/100000 is 1595\n" +
		"f:10: overhead_ns 1218: 1595-156 is 1439 (it follows from the stated per_call_ns)"
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "\n"), want)
	}
	const head = "kernel,block,relevant_tracers,irrelevant_tracers,calls,total_ns,per_call_ns,overhead_ns\n"
	rows, err := CallCosts.read("f",
		strings.NewReader(head+"with_call_ops,irrelevant0,0,0,10,99,9,\nwith_call_ops,relevant,1,0,10,50,5,-3\n"))
	if err != nil {
		t.Fatal(err)
	}
	// 5 - 9 is -4, and nothing that is stated makes it -3.
	if slips, err = CallSlips("f", rows); err != nil || len(slips) != 1 || slips[0].Derived != (Decimal{Units: -4}) ||
		slips[0].Carried || slips[0].Line != 3 {
		t.Errorf("%+v, %v", slips, err)
	}
	if _, err = CallSlips("f", rows[1:]); err == nil || !strings.HasPrefix(err.Error(),
		`f:3: kernel "with_call_ops": has no row with 0 relevant and 0 irrelevant`) {
		t.Errorf("no row to start from: %v", err)
	}
}

// TestDecimalCalls: figures with digits behind the point are read, and derived to
// as many. 95 ns for 100 calls are 0.95 each, and 3 for 10 are 0.3: 0.65 more.
func TestDecimalCalls(t *testing.T) {
	const table = "kernel,block,relevant_tracers,irrelevant_tracers,calls,total_ns,per_call_ns,overhead_ns\n" +
		"with_call_ops,irrelevant0,0,0,10,3,0.3,\n" +
		"with_call_ops,relevant,1,0,100,95,0.95,0.65\n" +
		"with_call_ops,relevant,2,0,3,5,1.67,1.36\n" + // 1.666..., rounded up; 1.366..., cut off
		"with_call_ops,relevant,3,0,100,95,0.97,-0.10\n"
	rows, err := CallCosts.read("f", strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	if per := rows[1].PerCallNS; per != (Decimal{95, 2}) || per.Float() != 0.95 || per.String() != "0.95" {
		t.Errorf("per_call_ns 0.95 is %+v, %s", per, per)
	}
	if d := rows[3].OverheadNS; d.Float() != -0.1 || d.String() != "-0.10" {
		t.Errorf("overhead_ns -0.10 is %s", d)
	}
	slips, err := CallSlips("f", rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range slips {
		got = append(got, s.String())
	}
	want := "f:5: per_call_ns 0.97: 95/100 is 0.95\nf:5: overhead_ns -0.10: 0.95-0.30 is 0.65"
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "\n"), want)
	}
}

// TestWrongCalls: what is wrong in them is named.
func TestWrongCalls(t *testing.T) {
	const (
		calls = "kernel,block,relevant_tracers,irrelevant_tracers,calls,total_ns,per_call_ns,overhead_ns\n"
		runs  = "run,fentry_mps,fentry_multi_mps,fentry_multi_all_mps,fexit_mps,fexit_multi_mps,fmodret_mps,fmodret_multi_mps\n"
	)
	read := map[string]func(string) error{
		"calls":    func(s string) error { return second(CallCosts.read("f", strings.NewReader(s))) },
		"m1":       func(s string) error { return second(M1Calls.read("f", strings.NewReader(s))) },
		"triggers": func(s string) error { return second(Triggers.read("f", strings.NewReader(s))) },
		"runs":     func(s string) error { return second(TriggerRuns.read("f", strings.NewReader(s))) },
		"hashes":   func(s string) error { return second(HashLookups.read("f", strings.NewReader(s))) },
		"attach":   func(s string) error { return second(AttachTimes.read("f", strings.NewReader(s))) },
		"hits":     func(s string) error { return second(Hits.read("f", strings.NewReader(s))) },
	}
	for _, tt := range [][3]string{
		{"calls", calls + "with_call_ops,relevant,1,0,0,5,5,", `f:2: calls "0": want a whole number, 1 or more`},
		{"calls", calls + "with_call_ops,relevant,one,0,1,5,5,",
			`f:2: relevant_tracers "one": want a whole number, 0 or more`},
		{"calls", calls + "with_call_ops,relevant,1,0,1,5,5,x",
			`f:2: overhead_ns "x": want a decimal number, with up to 9 digits behind the point`},
		{"calls", calls + "with_call_ops,relevant,1,0,1,5,-5,", `f:2: per_call_ns "-5": want a number, 0 or more`},
		{"calls", calls + "with_call_ops,relevant,1,0,1,5,5.,",
			`f:2: per_call_ns "5.": want a decimal number, with up to 9 digits behind the point`},
		{"calls", calls + "with_call_ops,relevant,1,0,1,5,.5,",
			`f:2: per_call_ns ".5": want a decimal number, with up to 9 digits behind the point`},
		{"calls", calls + "with_call_ops,relevant,1,2,1,5,5,", `f:2: irrelevant_tracers "2": block relevant has none`},
		{"calls", calls + "with_call_ops,irrelevant0,1,2,1,5,5,", `f:2: relevant_tracers "1": block irrelevant0 has none`},
		{"calls", calls + "with_call_ops,irrelevant1,2,2,1,5,5,", `f:2: relevant_tracers "2": block irrelevant1 has one`},
		{"calls", calls + "without,relevant,1,0,1,5,5,",
			`f:2: kernel "without": want one of without_call_ops, with_call_ops`},
		{"calls", calls + "with_call_ops,relevant,1,0,1,5,5,\nwith_call_ops,relevant,1,0,1,6,6,",
			`f:3: "with_call_ops relevant 1 0": line 2 is about the same`},
		{"calls", "kernel,block\n", `f:1: "kernel,block": want the columns ` + strings.TrimSpace(calls)},
		{"m1", "kernel,relevant_tracers,irrelevant_tracers,per_call_ns,overhead_ns\nwith_call_ops,1,0,1,0",
			`f:2: overhead_ns "0": want a number above 0`},
		{"triggers", "mechanism,mps,plusminus\nfentry,fast,0", `f:2: mps "fast": want a number above 0`},
		{"triggers", "mechanism,mps,plusminus\nfentry,,0", `f:2: mps "": want a number above 0`},
		{"triggers", "mechanism,mps,plusminus\nfentry,3,3", `f:2: plusminus "3": is not less than mps`},
		{"triggers", "mechanism,mps,plusminus\nfentry,3,1\nfentry,4,1", `f:3: "fentry": line 2 is about the same`},
		{"runs", runs + "1,1,1,1,1,1,1,1\n1,1,1,1,1,1,1,1", `f:3: "1": line 2 is about the same`},
		{"runs", runs + "1,1,1,1,1,1,1,-1", `f:2: fmodret_multi_mps "-1": want a number above 0`},
		{"hashes", "bench,table,mps,source\nb,t,1,\n", `f:2: source "": is missing`},
		{"attach", "case,functions,attach_s,detach_s,note,source\nc,0,1,,,s",
			`f:2: functions "0": want a whole number, 1 or more`},
		{"hits", "mechanism,performance_hit_percent\nm,100",
			`f:2: performance_hit_percent "100": want a share of the throughput, below 100`},
		{"hits", "mechanism,performance_hit_percent\nm,",
			`f:2: performance_hit_percent "": want a number, 0 or more`},
	} {
		err := read[tt[0]](tt[1])
		var p *inputs.ParseError
		if !errors.As(err, &p) || err.Error() != tt[2] {
			t.Errorf("%s %q: %v\nwant %s", tt[0], tt[1], err, tt[2])
		}
	}
	for _, header := range []string{"mechanism,mps", "mechanism,mps,plusminus,more", "mechanism,mps,mps",
		"mechanism,mps,mps,plusminus"} {
		if err := read["triggers"](header + "\n"); err == nil ||
			err.Error() != fmt.Sprintf("f:1: %q: want the columns mechanism,mps,plusminus", header) {
			t.Errorf("%s: %v", header, err)
		}
	}
	turned, err := Triggers.read("f", strings.NewReader("plusminus,mechanism,mps\n1,fentry,2\n"))
	if err != nil || turned[0].Mechanism != "fentry" || turned[0].MPS != 2 || turned[0].PlusMinus != 1 {
		t.Errorf("columns in another order: %+v, %v", turned, err)
	}
	// A table of one's own need not say where it is from.
	own, err := HashLookups.read("f", strings.NewReader("bench,table,mps\nb,t,1\n"))
	if err != nil || own[0].Source != "" || own[0].MPS != 1 {
		t.Errorf("without sources: %+v, %v", own, err)
	}
}

// FuzzReadCalls: no text makes a reader panic, or an error that is not one line,
// and what is derived can be.
func FuzzReadCalls(f *testing.F) {
	for _, name := range []string{"riscv-call-ops", "trigger-bench", "tracing-multi-runs", "rpi4-bench-hit",
		"attach-times", "metadata-hash-2025", "tracing-multi-calls-2025", "arm64-call-ops"} {
		b, err := data.ReadFile("data/" + name + ".csv")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := CallCosts.read("f", strings.NewReader(text))
		errs := []error{err}
		if err == nil {
			_, err = CallSlips("f", rows)
			errs = append(errs, err)
		}
		in := func() *strings.Reader { return strings.NewReader(text) }
		errs = append(errs, second(M1Calls.read("f", in())), second(Triggers.read("f", in())),
			second(TriggerRuns.read("f", in())),
			second(HashLookups.read("f", in())), second(AttachTimes.read("f", in())), second(Hits.read("f", in())))
		for _, err := range errs {
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
		}
	})
}

// TestDecimals: digits, a sign, a point; and no sign behind the point.
func TestDecimals(t *testing.T) {
	for text, want := range map[string]Decimal{"1.05": {105, 2}, "1.90": {190, 2}, "-3": {-3, 0}, "+0.5": {5, 1}} {
		var d Decimal
		if err := d.UnmarshalText([]byte(text)); err != nil || d != want {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "-", "1.", ".5", "1.-5", "1.+5", "1.:", "1e3", "1.0123456789"} {
		var d Decimal
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, d)
		}
	}
}

// TestNS: a throughput in millions a second, and the time of one.
func TestNS(t *testing.T) {
	if a, b := (&Trigger{MPS: 250}).NS(), (&HashLookup{MPS: 40}).NS(); a != 4 || b != 25 {
		t.Errorf("%v and %v ns", a, b)
	}
}
