// SPDX-License-Identifier: Apache-2.0

// Package migration asks how a patcher that moves to another CPU in the middle shows in
// interrupt counters. It sends the rounds of the measurements of 2019 again, from the
// CPUs that must have sent them.
package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Config says which counts are explained and repeated.
type Config struct {
	// Published is a file in place of the published counts of interrupts.
	Published string
}

// Experiment is the question.
var Experiment = spec.Experiment()

var spec = experiments.Spec[Config, row]{Form: experiments.Text("migration/migration.experiment"), Measure: measure}

// row is one CPU of a measurement.
type row struct {
	M   *measurement
	cpu int
}

// Count is what it took, as published, Sent the rounds that it must have sent, and Taken what it takes here.
func (r row) Count() published.InterruptCount { return r.M.Counts[r.cpu] }
func (r row) Sent() int64                     { return r.M.Why.Sent[r.cpu] }
func (r row) Taken() int64                    { return r.M.taken[r.cpu] }

// First tells whether it is the measurement's first CPU.
func (r row) First() bool { return r.cpu == 0 }

func measure(ctx context.Context, s *experiments.Study[Config, row]) (any, error) {
	counts, err := published.Interrupts.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	measured, err := explain(readings)
	if err != nil {
		return nil, err
	}
	s.Asked = len(counts)
	for _, m := range measured {
		if err := m.repeat(ctx, s.Lab); err != nil {
			return s, err
		}
		for cpu := range m.Counts {
			if err := s.Add(row{m, cpu}); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// measurement is one reading with its explanation, and the counts of the live machine.
type measurement struct {
	*published.Reading
	Why        interrupts.Explanation
	taken      []int64 // on the live machine
	violations uint64
}

// explain explains each reading.
func explain(readings []*published.Reading) (out []*measurement, err error) {
	for _, r := range readings {
		m := &measurement{Reading: r, Why: interrupts.Explain(r.Deltas())}
		last := r.Counts[len(r.Counts)-1].CPU
		switch {
		case last != len(r.Counts)-1:
			return nil, fmt.Errorf("%s: cpu %d is the last of %d: CPUs must be numbered from 0", m.Name(), last, len(r.Counts))
		case !m.Why.Consistent:
			return nil, fmt.Errorf("%s: no rounds explain these interrupts: %s", m.Name(), m.Why.Reason)
		case !m.Why.Known || m.Why.Rounds < perBatch():
			return nil, fmt.Errorf("%s: there are fewer rounds in it than one batch takes", m.Name())
		case m.Why.Rounds > maxRounds:
			return nil, fmt.Errorf("%s: %d rounds are more than are repeated here (%d)", m.Name(), m.Why.Rounds, maxRounds)
		case len(m.Counts) > maxCPUs:
			return nil, fmt.Errorf("%s: %d CPUs are more than are repeated here (%d)", m.Name(), len(m.Counts), maxCPUs)
		}
		out = append(out, m)
	}
	return out, nil
}

// perBatch is how many rounds a batch takes.
func perBatch() int64 { return int64(poke.RoundsPerBatch()) }

// The most that a few seconds are enough for.
const (
	maxRounds = 100_000
	maxCPUs   = 512
)

// senders is the CPUs that sent, in the order in which they are let send here: the
// counts do not tell it. The one that sent most comes first.
func (m *measurement) senders() (home int, moves []sim.Move) {
	from := spelling.Where(spelling.Numbers(len(m.Why.Sent)), func(cpu int) bool { return m.Why.Sent[cpu] > 0 })
	slices.SortStableFunc(from, func(a, b int) int { return cmp.Compare(m.Why.Sent[b], m.Why.Sent[a]) })
	after := 0
	for i, cpu := range from[:len(from)-1] {
		after += int(m.Why.Sent[cpu])
		moves = append(moves, sim.Move{After: after, To: from[i+1]})
	}
	return from[0], moves
}

// plan is a protocol whose update of so many batches takes all the rounds: three
// a batch, and the rest at the end, as a kernel's synchronisation when the function
// to call changes (ftrace_sync_ipi, kernel/trace/ftrace.c).
func plan(rounds int64) (*poke.Protocol, error) {
	shipped := poke.ShippedPlans()
	i := slices.IndexFunc(shipped, func(p poke.ShippedPlan) bool { return p.Name == "breakpoint" })
	if i < 0 {
		return nil, fmt.Errorf("no plan of the breakpoint protocol")
	}
	text := string(shipped[i].Text)
	if rounds%perBatch() > 0 {
		text += "\nonce after:\n"
	}
	for i := range rounds % perBatch() {
		text += fmt.Sprintf("    Sync %d\n", perBatch()+1+i)
	}
	return poke.ParseProtocol("migration.plan", []byte(text))
}

// repeat carries an update of as many rounds out on the live machine, with the
// patcher where it must have been.
func (m *measurement) repeat(ctx context.Context, lab experiments.Lab) error {
	p, err := plan(m.Why.Rounds)
	if err != nil {
		return err
	}
	arch, err := cpus.ParseArch(cpus.ArchNames()[0])
	if err != nil {
		return err
	}
	// A vector of one slot makes a batch of every record.
	t, err := records.Open(ctx, experiments.Ascending(int(m.Why.Rounds/perBatch())), records.Options{})
	if err != nil {
		return err
	}
	roles := make([]cpus.Role, len(m.Counts)) // all busy
	j, err := sim.NewJob(sim.Config{Revision: lab.Revision, Log: lab.Log, Arch: arch, Plan: p, Table: t, Roles: roles,
		Buffer: sched.Buffer{Slots: 1}, Seed: lab.Seed})
	if err != nil {
		return err
	}
	l, err := sim.NewLive(j)
	if err != nil {
		return err
	}
	defer l.Close()
	enable := m.Action == "enable"
	if !enable {
		if _, err := l.Update(ctx, true); err != nil {
			return err
		}
	}
	home, moves := m.senders()
	if err := l.Itinerary(home, moves...); err != nil {
		return err
	}
	row, err := l.Update(ctx, enable)
	if err != nil {
		return err
	}
	m.violations = row.Violations
	for cpu := range m.Counts {
		m.taken = append(m.taken, int64(row.Counts.Taken[cpu][cpus.Sync]))
	}
	return nil
}

// SentBy says who sent how many rounds.
func (m *measurement) SentBy() string {
	home, moves := m.senders()
	parts := []string{fmt.Sprintf("%d from CPU %d", m.Why.Sent[home], home)}
	for _, move := range moves {
		parts = append(parts, fmt.Sprintf("%d from CPU %d", m.Why.Sent[move.To], move.To))
	}
	return strings.Join(parts, ", ")
}
