package sim

import (
	"testing"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/sim/calibration"
)

func newTimed(t testing.TB, c Config) *Timed {
	t.Helper()
	if c.Calibration == nil {
		c.Calibration = &calibration.Calibration{Name: "test", Arch: c.Arch.Traits().Name, CPUs: len(c.Roles), Costs: calibration.Costs{
			RoundSetup: 500, Send: 50, Delivery: 1000, Jitter: 200, IdleWake: 2000, Handler: 800, Answer: 100, StopWake: 5000,
			Verify: 30, Publish: 40, Store: 600, StoreLiteral: 400, Fence: 50, TrapEntry: 200, TrapExit: 200, Comparison: 5, Reference: 10, LineTransfer: 100,
			UserEntry: 100, UserExit: 100, CatchUp: 100, MaskedStretch: 10000, FetchLag: 2000, GracePeriod: 1e8, Switch: 1500, Tick: 1000, TickInterval: 4e6, Away: 1e6, Migration: 5000,
			Calls: 1e6, Skew: 1, Tracer: 100, Entries: 1000, KernelStretch: 2000,
		}}
	}
	c.Calls, c.Entries = -1, -1
	m, err := NewTimed(newJob(t, c), "test", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTimedSmoke(t *testing.T) {
	for _, arch := range []string{"x86_64", "arm64", "riscv64"} {
		for _, table := range []string{"gen:n=1000,groups=3,order=sorted", "gen:n=40000,groups=3,order=sorted"} {
			m := newTimed(t, config(t, arch, "native", table, "busy=6,isolated=1,idle=1"))
			for _, enable := range []bool{true, false} {
				row, err := m.Update(t.Context(), enable)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s %s: rounds %d ipis %d traps %d misses %d calls %d traced %d lost %d viol %d burst %d: %+v", arch, row.Direction, row.Rounds, row.IPIs, row.Traps, row.Misses, row.Calls, row.Traced, row.Lost, row.Violations, row.Burst, *row.Modelled)
				for _, v := range m.Violations() {
					t.Log(v)
				}
			}
		}
	}
}
