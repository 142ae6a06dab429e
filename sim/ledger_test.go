// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// switchedOn is the table of what switching the function tracer on sends on a kernel, by another protocol.
func switchedOn(t *testing.T, kernel string, change func(*Config)) (cells []map[string]string, rows []LedgerRow) {
	t.Helper()
	k, err := ledger.Named(kernel)
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, k.Arch, poke.Native, "gen:n=300,order=sorted", "busy=2,isolated=1,offline=1")
	c.Scenario = &Scenario{Name: ledger.FunctionTracer, Kernel: k}
	change(&c)
	both, err := Switches(&c)
	if err != nil || len(both) != 2 {
		t.Fatalf("%d directions, %v", len(both), err)
	}
	if rows, err = both[0].Ledger(t.Context()); err != nil {
		t.Fatal(err)
	}
	table, err := LedgerColumns.Fill("ledger", rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		line := map[string]string{}
		for i, column := range table.Columns {
			line[column.Name] = row[i].String()
		}
		cells = append(cells, line)
	}
	return cells, rows
}

// shown are some columns of a line.
func shown(line map[string]string, columns ...string) string {
	var out []string
	for _, column := range columns {
		out = append(out, line[column])
	}
	return strings.Join(out, "|")
}

// TestLedgerRows: 300 records are two batches of three rounds each, which two other CPUs take; around them stand the
// 49 rounds that the real kernel sent besides. Their sum is the total, and what makes no sense of a row is empty.
func TestLedgerRows(t *testing.T) {
	lines, rows := switchedOn(t, "x86_64-6.12", func(*Config) {})
	rounds, at := 0, map[string]string{}
	for i, line := range lines {
		if got, want := shown(line, "kernel", "scenario", "direction", "buffer", "cpus"),
			"x86_64-6.12|function-tracer|enable|256|busy=2,isolated=1,offline=1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got, want := line["ipis"], fmt.Sprint(2*rows[i].Entry.Rounds()); got != want {
			t.Errorf("%s: %s interrupts, want %s", line["part"], got, want)
		}
		if i < len(lines)-1 {
			rounds += rows[i].Entry.Rounds()
		}
		at[line["part"]] = shown(line, "cause", "row", "pokes", "rounds", "ipis_per_cpu", "ipis_isolated_max", "most")
	}
	for part, want := range map[string]string{
		"records": "sync|CAL|300|6|||6", "core-sync": "core-sync|CAL|1|1|||1", "total": "|CAL||55|55|55|55",
	} {
		if at[part] != want {
			t.Errorf("%s: %s, want %s", part, at[part], want)
		}
	}
	if last := rows[len(rows)-1]; rounds != 6+49 || last.Said() != "55 to enable (CAL)" || !last.Total() {
		t.Errorf("%d rounds, %q", rounds, last.Said())
	}
	lines, _ = switchedOn(t, "x86_64-6.12", func(c *Config) { c.Roles = make([]cpus.Role, 3) })
	if got := lines[len(lines)-1]["ipis_isolated_max"]; got != "" {
		t.Errorf("without an isolated CPU one takes %s", got)
	}
}

// TestLedgerOfTheRecords: the records' own rounds by each way of changing them. Rounds and wakings are told apart,
// what lazy rounds spare is no interrupt, nothing is said once, and the kernel's source is that of its own protocol
// alone.
func TestLedgerOfTheRecords(t *testing.T) {
	file := poke.ShippedPlans()[0]
	plan, err := poke.ParseProtocol(file.Name+".plan", file.Text)
	if err != nil || plan.Name != "breakpoint" {
		t.Fatalf("%s, %v", plan.Name, err)
	}
	for _, tt := range []struct {
		kernel string
		change func(*Config)
		want   []string // cause, row, rounds, interrupts, whether there is a source, of each line
	}{
		{"x86_64-6.12", func(c *Config) { c.Protocol = "breakpoint" }, []string{"sync|CAL|6|12|true"}},
		{"x86_64-6.12", func(c *Config) { c.Protocol, c.Plan = "", plan }, []string{"sync|CAL|6|12|false"}},
		{"x86_64-6.12", func(c *Config) { c.Protocol = "breakpoint-lazy" }, []string{"sync|CAL|6|6|false"}},
		{"x86_64-6.12", func(c *Config) { c.Protocol = "stop-machine" }, []string{"stop|RES|1|2|false"}},
		{"arm64-6.12", func(*Config) {}, []string{"sync||0|0|true"}},
		{"arm64-6.12", func(c *Config) { c.Protocol = "stop-machine" }, []string{"stop|IPI0|1|2|false"}},
		{"riscv64-7.2", func(c *Config) { c.Protocol = "fence-per-write" },
			[]string{"sync|FW_FENCE_I_RECVD|300|600|false", "stop|IPI0|1|2|false"}},
	} {
		lines, _ := switchedOn(t, tt.kernel, tt.change)
		var got []string
		for _, line := range lines {
			if line["part"] == "records" {
				got = append(got, fmt.Sprintf("%s|%v", shown(line, "cause", "row", "rounds", "ipis"), line["source"] != ""))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.kernel, got, tt.want)
		}
	}
}

// TestWriteInterrupts: what a run did to the counters, laid out as the kernel does. Without a scenario there are two
// rows; with one those that its ledger says something of, and riscv64's fences count who asks for them, too.
func TestWriteInterrupts(t *testing.T) {
	row := RunRow{Direction: "enable"}
	c := config(t, "x86_64", "breakpoint", "gen:n=300,order=sorted", "busy=2,offline=1,isolated=1")
	row.Config = &c
	before, after := cpus.NewCounts(4), cpus.NewCounts(4)
	before.Taken[1][cpus.Sync], after.Taken[1][cpus.Sync] = 2, 5
	after.Taken[3][cpus.Stop], after.Rounds[0][cpus.Sync] = 7, 3
	var out bytes.Buffer
	if err := WriteInterrupts(&out, row, before, after); err != nil {
		t.Fatal(err)
	}
	part := func(name string, taken int) string {
		stops := 7
		if name == "before" {
			stops = 0
		}
		head := "           CPU0       CPU1       CPU3       \n"
		return fmt.Sprintf("\nx86_64 breakpoint, buffer 256, enable: %s\n%sCAL: %10d %10d %10d   Function call interrupts\n"+
			"RES: %10d %10d %10d   Rescheduling interrupts\n", name, head, 0, taken, 0, 0, 0, stops)
	}
	if want := part("before", 2) + part("after", 5) + part("delta", 3); out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	full := failing(0)
	if err := WriteInterrupts(&full, row, before, after); err == nil {
		t.Error("a file that is full, and no error")
	}

	k, err := ledger.Named("riscv64-7.2")
	if err != nil {
		t.Fatal(err)
	}
	c = config(t, k.Arch, poke.Native, "gen:n=300,order=sorted", "2")
	c.Scenario = &Scenario{Name: ledger.FunctionTracer, Kernel: k}
	s := snapshot(row, after)
	var names []string
	for _, r := range s.Rows {
		names = append(names, fmt.Sprint(r.Name, r.Counts))
	}
	// IPI1 is the one interrupt besides, IPI0 would be wakings of stoppers.
	if want := []string{"FW_FENCE_I_RECVD[3 5]", "IPI0[0 0]", "IPI1[0 0]"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// failing is a file with room for so many bytes.
type failing int

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > int(*f) {
		return 0, fmt.Errorf("%d bytes are left", *f)
	}
	*f -= failing(len(b))
	return len(b), nil
}

// TestLiveInterrupts: CPUs that have been unplugged are in no column, and those that were plugged in are.
func TestLiveInterrupts(t *testing.T) {
	c := config(t, "x86_64", "breakpoint", "gen:n=4", "busy=2,offline=1,isolated=1")
	c.Buffer = sched.Dynamic
	l := newLive(t, newJob(t, c))
	update(t, l, true)
	if err := l.Unplug(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Plug(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := l.WriteInterrupts(&out); err != nil {
		t.Fatal(err)
	}
	want := "           CPU0       CPU2       CPU3       \n" +
		"CAL:          0          0          3   Function call interrupts\n" +
		"RES:          0          0          0   Rescheduling interrupts\n"
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}
