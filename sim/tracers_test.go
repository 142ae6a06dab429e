// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/sim/timed"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// called is what a row says of the calls that were dispatched.
func called(t *testing.T, row *RunRow, relevant int, every bool) {
	t.Helper()
	d := row.Dispatched
	if d == nil || every && d.Calls != int64(row.Traced) || d.Calls > int64(row.Traced) {
		t.Fatalf("%s: %+v were dispatched of %d traced calls", row.Direction, d, row.Traced)
	}
	if d.Called != d.Calls*int64(relevant) || row.Violations != 0 || row.Lost != 0 {
		t.Errorf("%s: %d callbacks of %d calls with %d tracers, %d violations", row.Direction, d.Called, d.Calls, relevant,
			row.Violations)
	}
}

// kinds are all ways.
func kinds(t *testing.T) (all []dispatch.Kind) {
	for _, name := range dispatch.Names() {
		k, err := dispatch.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

// TestTracersLive: on every way each traced call reaches each tracer that is attached
// once, while others come and go that trace what nobody calls.
func TestTracersLive(t *testing.T) {
	rounds := 1
	if *long {
		rounds = 50
	}
	for i, k := range kinds(t) {
		arch := []string{"x86_64", "arm64"}[i%2] // calls that name their ops, and literals
		c := config(t, arch, "native", "gen:n=40", "4")
		c.Tracers = &Tracers{Dispatch: k, Relevant: 2, Irrelevant: 3}
		l := newLive(t, newJob(t, c))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- comeAndGo(ctx, l) }()
		for range rounds {
			on := update(t, l, true)
			called(t, &on, 2, true)
			off := update(t, l, false)
			called(t, &off, 2, true)
			if on.Traced == 0 {
				t.Errorf("%s: no call was traced", k.Name)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// comeAndGo attaches and detaches a tracer of what nobody calls.
func comeAndGo(ctx context.Context, l *Live) error {
	for ctx.Err() == nil {
		o := tracers.NewOps("other", tracers.CountHits, 0, len(l.sites.code.Sites))
		if err := l.tracing.way.Attach(o); err != nil {
			return err
		}
		time.Sleep(50 * time.Microsecond)
		if err := l.tracing.way.Detach(o); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

// TestTracersTimed: the same in virtual time, where a machine that executes every call
// counts what one computes that executes those that can meet something.
func TestTracersTimed(t *testing.T) {
	for _, k := range kinds(t) {
		for _, calls := range []timed.Thinning{timed.Every, timed.HotOnly} {
			c := timedConfig(t, "x86_64", "native", "gen:n=40", "4", plainCosts())
			c.Tracers = &Tracers{Dispatch: k, Relevant: 3, Irrelevant: 2}
			rows := toggle(t, newTimedFor(t, c, calls))
			for i := range rows {
				called(t, &rows[i], 3, calls == timed.Every)
				row := &rows[i]
				if got, want := row.callbacks(), int64(row.Traced)*3; got != want || row.callbackTime() != 300.0 {
					t.Errorf("%s: %v callbacks, want %d; %v ns", k.Name, got, want, row.callbackTime())
				}
			}
		}
	}
}

// TestLoadsOfARun: the means are those of one call, as every call is alike here.
func TestLoadsOfARun(t *testing.T) {
	for name, want := range map[string][2]float64{
		"call-ops": {2, 0},
		// The head, the one that traces everything, and for each of the others itself, its
		// hash, a bucket, and one entry where the bucket is the called one's too.
		"list": {1 + 1 + 5*3, 6},
	} {
		k, err := dispatch.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		c := config(t, "x86_64", "native", "gen:n=2", "2")
		c.Tracers = &Tracers{Dispatch: k, Relevant: 1, Irrelevant: 5}
		row := update(t, newLive(t, newJob(t, c)), true)
		d := row.Dispatched
		loads, walked := d.perCall(d.Loads), d.perCall(d.Walked)
		if loads < want[0] || loads > want[0]+5 || walked != want[1] || name == "call-ops" && loads != want[0] {
			t.Errorf("%s: %v loads, %v walked; want %v", name, loads, walked, want)
		}
		if !strings.Contains(strings.Join(c.Flags(), " "), "--dispatch "+name+" --tracers relevant=1,irrelevant=5") {
			t.Errorf("%s", c.Flags())
		}
	}
}

func TestParseTracers(t *testing.T) {
	for _, tt := range []struct {
		text                 string
		relevant, irrelevant int
		wrong                string
	}{
		{"relevant=2,irrelevant=100", 2, 100, ""},
		{"irrelevant=7", 1, 7, ""},
		{"relevant=1,irrelevant=0", 1, 0, ""},
		{"relevant=200,irrelevant=10000", 200, 10000, ""},
		{"relevant=201", 0, 0, "relevant=201: want a number from 1 to 200"},
		{"irrelevant=10001", 0, 0, "irrelevant=10001: want a number from 0 to 10000"},
		{"relevant=0", 0, 0, "want a number from 1 to 200"},
		{"irrelevant=-1", 0, 0, "want a number from 0"},
		{"irrelevent=1", 0, 0, `"irrelevent": not one of relevant, irrelevant; did you mean irrelevant?`},
		{"relevant", 0, 0, "want a number from 1"},
		{"", 0, 0, "not one of relevant, irrelevant"},
	} {
		got, err := ParseTracers(tt.text)
		if tt.wrong == "" && (err != nil || got.Relevant != tt.relevant || got.Irrelevant != tt.irrelevant) {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
		if tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
}
