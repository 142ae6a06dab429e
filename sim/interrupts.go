package sim

import (
	"fmt"
	"io"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results/interrupts"
)

// WriteInterrupts prints what an update did to the interrupt counters, laid out
// as /proc/interrupts: before, after, and the difference.
func WriteInterrupts(w io.Writer, row RunRow, before, after cpus.Counts) error {
	for _, part := range []struct {
		name   string
		counts cpus.Counts
	}{{"before", before}, {"after", after}, {"delta", after.Since(before)}} {
		if _, err := fmt.Fprintf(w, "\n%s %s, buffer %s, %s: %s\n", row.Arch.Traits().Name, row.Protocol, row.Buffer, row.Direction, part.name); err != nil {
			return err
		}
		if err := interrupts.Write(w, snapshot(row, part.counts)); err != nil {
			return err
		}
	}
	return nil
}

// snapshot lays counters out as the kernel does: a row for rounds, one for the
// waking of stoppers, which is rescheduling.
func snapshot(row RunRow, c cpus.Counts) interrupts.Snapshot {
	t := row.Arch.Traits()
	s := interrupts.Snapshot{
		Name: row.Direction,
		Rows: []interrupts.Row{
			{Name: t.InterruptRow, Description: t.InterruptName},
			{Name: t.StopRow, Description: t.StopName},
		},
	}
	for cpu, role := range row.Roles {
		if role == cpus.Offline {
			continue
		}
		s.CPUs = append(s.CPUs, cpu)
		for k, cause := range []cpus.Cause{cpus.Sync, cpus.Stop} {
			s.Rows[k].Counts = append(s.Rows[k].Counts, int64(c.Taken[cpu][cause]))
		}
	}
	return s
}
