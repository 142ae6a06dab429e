// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is a combination with everything at its default.
func config(t testing.TB, arch, protocol, table, roles string) Config {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	r, err := cpus.ParseRoles(roles)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := records.Open(t.Context(), table, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Arch: a, Protocol: protocol, Table: tab, Roles: r, Buffer: sched.Buffer{Slots: 256}, Seed: 1}
}

func newJob(t testing.TB, c Config) *Job {
	t.Helper()
	j, err := NewJob(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func newLive(t testing.TB, j *Job) *Live {
	t.Helper()
	l, err := NewLive(j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// update enables or disables everything.
func update(t testing.TB, l *Live, enable bool) RunRow {
	t.Helper()
	row, err := l.Update(t.Context(), enable)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// sound is the combinations of protocol and architecture that are meant to be
// safe: no instruction of five bytes can be replaced by one store on x86_64,
// and rounds inside stop_machine need firmware.
func sound(t testing.TB, f func(arch, protocol string)) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			if arch == "x86_64" && protocol == "word" {
				continue
			}
			j := newJob(t, config(t, arch, protocol, "gen:n=4", "2"))
			var impossible *poke.ImpossibleError
			if err := j.check(); errors.As(err, &impossible) {
				continue
			}
			f(arch, protocol)
		}
	}
}

// hunt updates to and fro until a violation is found or time is up.
func hunt(t testing.TB, l *Live, d time.Duration) []cpus.Violation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return until(ctx, t, l, func(int) bool { return false })
}

// find updates to and fro until a violation is found or that many updates are over,
// which a busy machine takes longer for.
func find(t testing.TB, l *Live, updates int) []cpus.Violation {
	t.Helper()
	return until(t.Context(), t, l, func(n int) bool { return n == updates })
}

// until updates to and fro until a violation is found, enough updates have been made,
// or ctx ends.
func until(ctx context.Context, t testing.TB, l *Live, enough func(updates int) bool) []cpus.Violation {
	t.Helper()
	for n := 0; !enough(n); n++ {
		_, err := l.Update(ctx, n%2 == 0)
		if v := l.Violations(); len(v) > 0 {
			return v
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

func properties(vs []cpus.Violation) (out []cpus.Property) {
	for _, v := range vs {
		if !slices.Contains(out, v.Property) {
			out = append(out, v.Property)
		}
	}
	return out
}

// goOn lets the CPUs go on for a while with nothing being patched, and tells what
// they did.
func goOn(t testing.TB, l *Live) (sum cpus.Tally) {
	t.Helper()
	before, err := l.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var row RunRow
	if err := l.finish(t.Context(), &row, before); err != nil {
		t.Fatal(err)
	}
	for _, tally := range row.Tallies {
		sum = sum.Add(tally)
	}
	return sum
}
