// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReach: what every site answers is what the manuals state, on every table
// and at every distance; and what no kernel has met is counted.
func TestReach(t *testing.T) {
	r := trial.Must(t, Experiment)
	partly, missed := 0, 0
	for i := range r.Table.Rows {
		sites, direct, stated := r.Count(t, i, "sites"), r.Count(t, i, "direct"), r.Count(t, i, "stated")
		if n := direct + r.Count(t, i, "through_entry") + r.Count(t, i, "unreachable"); n != sites {
			t.Errorf("row %d: %d of %d sites", i, n, sites)
		}
		if r.Cell(t, i, "contiguous_share") != "" && direct != stated {
			t.Errorf("row %d: %d direct, %d stated", i, direct, stated)
		}
		if direct > 0 && direct < sites {
			partly++
		}
		missed += r.Count(t, i, "missed")
	}
	if partly < 20 || missed == 0 {
		t.Errorf("%d places are reached by some sites only, %d sites would land elsewhere", partly, missed)
	}
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

// TestMissed holds the sites that riscv64's kernel would send astray against the
// arithmetic of auipc and jalr: the low part that the jalr needs must fit into
// 12 signed bits on top of an auipc that was rounded for ftrace_caller.
func TestMissed(t *testing.T) {
	table, err := records.Open(t.Context(), "riscv64-7.2", records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	entry := int64(table.Addr(0)) &^ 4095
	distances := []int{0, 256, 1024, 2044}
	r := trial.Must(t, Experiment, "--arch", "riscv64", "--distance",
		strings.Trim(strings.ReplaceAll(fmt.Sprint(distances), " ", ","), "[]"))
	checked := 0
	for i := range r.Table.Rows {
		if r.Cell(t, i, "layout") != published.WordSite || r.Cell(t, i, "side") != "below" {
			continue
		}
		d := int64(r.Count(t, i, "distance_bytes"))
		want := 0
		for _, addr := range table.Addrs() {
			auipc := int64(addr) - 4
			base := auipc + (entry-auipc+2048)&^4095
			if lo := entry - d - base; lo < -2048 || lo > 2047 {
				want++
			}
		}
		if got := r.Count(t, i, "missed"); got != want || d > 0 && want == 0 {
			t.Errorf("%d below: %d missed, want %d", d, got, want)
		}
		checked++
	}
	if checked != len(distances) {
		t.Errorf("%d places", checked)
	}
}

// TestEven: where sites do lie evenly, the closed form is the count, to a site.
func TestEven(t *testing.T) {
	limits, err := published.Reaches.Read("")
	if err != nil {
		t.Fatal(err)
	}
	const n, step = 10000, 4096 // 39 MiB
	raw := make([]records.Raw, n)
	for i := range raw {
		raw[i] = records.Raw{Addr: records.Addr(0xffff800080000004) + records.Addr(i*step), Symbol: fmt.Sprintf("f%d", i)}
	}
	table, err := records.New("even", "", raw)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, l := range limits {
		if l.From != published.FromSite {
			continue
		}
		arch, err := cpus.ParseArch(l.Arch)
		if err != nil {
			t.Fatal(err)
		}
		x := newText(table, arch, l)
		for _, p := range x.places([]uint64{0, uint64(l.Down) - 40<<20, uint64(l.Down) - 20<<20, uint64(l.Down) - 4096,
			uint64(l.Down), uint64(l.Down) + 1<<20}) {
			c, err := x.count(p.at)
			if err != nil {
				t.Fatal(err)
			}
			if want := c.Even * n; float64(c.Direct) < want-1.01 || float64(c.Direct) > want+1.01 || c.Direct != c.stated {
				t.Errorf("%s %s %+v: %d direct, evenly %.1f, stated %d", l.Arch, l.Layout, p, c.Direct, want, c.stated)
			}
			checked++
		}
	}
	if checked < 3*6 {
		t.Errorf("%d places", checked)
	}
}

// TestOthers: somebody else's table, and what is wrong.
func TestOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(file, []byte("ffff800080010004 one\nffff800080010100 two\nffff800080010200 three [m]\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	// two is misaligned; 128 MiB below the page of one reaches from one only by
	// what lies before it.
	r := trial.Must(t, Experiment, "--arch", "arm64", "--records", file, "--distance", "127M,128M")
	for i, want := range []string{"below 1 0", "below 0 1", "above 1 0", "above 0 1"} {
		got := r.Cell(t, i, "side") + " " + r.Cell(t, i, "direct") + " " + r.Cell(t, i, "through_entry")
		if got != want || r.Cell(t, i, "refused") != "2" {
			t.Errorf("row %d: %s, %s refused; want %s", i, got, r.Cell(t, i, "refused"), want)
		}
	}
	for args, want := range map[string]string{
		"--distance 5X":                       `want numbers of bytes up to 70368744177664, such as`,
		"--distance 65537G":                   `want numbers of bytes up to`,
		"--records arm64-6.12 --arch riscv64": "no table is of these instruction sets",
		"--arch amr64":                        "did you mean arm64?",
	} {
		if r := trial.Run(t, Experiment, strings.Fields(args)...); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v", args, r.Err)
		}
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) { trial.CutShort(t, Experiment) }

// TestEntry: what counts from ftrace_caller is in range of all sites up to the
// last byte, on both sides, and of none behind it.
func TestEntry(t *testing.T) {
	limits, err := published.Reaches.Read("")
	if err != nil {
		t.Fatal(err)
	}
	table, err := records.New("two", "", []records.Raw{{Addr: 0xffffffff80002004, Symbol: "a"},
		{Addr: 0xffffffff80002044, Symbol: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range limits {
		if l.From != published.FromEntry {
			continue
		}
		arch, err := cpus.ParseArch(l.Arch)
		if err != nil {
			t.Fatal(err)
		}
		x := newText(table, arch, l)
		for off, want := range map[int64]int{-2048: 0, -2047: 2, 0: 2, 2047: 2, 2048: 0} {
			if got := x.stated(x.entry() + records.Addr(off)); got != want {
				t.Errorf("%d bytes from the entry: %d sites, want %d", off, got, want)
			}
		}
		return
	}
	t.Error("no reach counts from the entry")
}
