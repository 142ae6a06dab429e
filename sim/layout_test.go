// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// TestLayoutOf: a kernel with CALL_OPS aligns functions to 8 bytes, so that records
// are 4 past a multiple of 8; behind a BTI C they are at one. A few that are not are
// what the kernel refuses. Who needs no literal takes all.
func TestLayoutOf(t *testing.T) {
	for _, c := range []struct {
		arch, protocol, layout string
		others                 int // of 20 records, those at a multiple of 8
		want                   string
		patches                int
	}{
		{"arm64", "native", "", 0, "call-ops", 20},
		{"arm64", "native", "", 3, "call-ops", 17},
		{"arm64", "native", "", 10, "call-ops", 10},
		{"arm64", "native", "", 11, "bti", 20},
		{"arm64", "native", "auto", 20, "bti", 20},
		{"arm64", "native", "call-ops", 20, "call-ops", 0},
		{"arm64", "native", "plain", 3, "plain", 20},
		{"arm64", "breakpoint", "", 0, "call-ops", 20},
		{"arm64", "breakpoint", "", 3, "plain", 20},
		{"arm64", "stop-machine", "", 3, "plain", 20},
		{"arm64", "breakpoint", "bti", 3, "bti", 20},
		{"riscv64", "native", "", 3, "call-ops", 17},
		{"riscv64", "native", "", 11, "plain", 20},
		{"riscv64", "breakpoint", "", 3, "plain", 20},
		{"riscv64", "stop-machine", "", 20, "call-ops", 20}, // pairs, which have no literals
		{"x86_64", "native", "", 7, "plain", 20},
	} {
		cfg := config(t, c.arch, c.protocol, "gen:n=1", "4")
		var recs []records.Raw
		for i := range 20 {
			at := records.Addr(0xffffffff81000004) + records.Addr(64*i)
			if i < c.others {
				at += 4
			}
			recs = append(recs, records.Raw{Addr: at, Symbol: fmt.Sprint("f", i)})
		}
		var err error
		if cfg.Table, err = records.New("t", "", recs); err != nil {
			t.Fatal(err)
		}
		cfg.Layout = c.layout
		j := newJob(t, cfg)
		if got := j.Arch.Traits().Layout; got != c.want || len(j.queue) != c.patches {
			t.Errorf("%s %s, %d of 20 at 0 mod 8, layout %q: %s with %d patches, want %s with %d",
				c.arch, c.protocol, c.others, c.layout, got, len(j.queue), c.want, c.patches)
		}
		chosen := c.layout != "" && c.layout != AutoLayout
		told := strings.Contains(strings.Join(j.Warnings(), "\n"), "laid out as "+c.want)
		if usual := cpus.Layouts(cfg.Arch)[0].Traits().Layout; told != (!chosen && c.want != usual) {
			t.Errorf("%s %s, %d: %q", c.arch, c.protocol, c.others, j.Warnings())
		}
	}
	cfg := config(t, "x86_64", "native", "gen:n=1", "4")
	cfg.Layout = "bti"
	if _, err := NewJob(cfg); err == nil || !strings.Contains(err.Error(), "x86_64 has sites of layout plain") {
		t.Errorf("bti on x86_64: %v", err)
	}
}

// TestPlainLayout: without literals arm64's update still sends nothing, and riscv64's
// has the one fence at its end (riscv64 6.16 without CALL_OPS); with breakpoints, under
// which nothing else changes, two rounds are left; on the live machine
// every call is traced that was promised, and none meets a mixture.
func TestPlainLayout(t *testing.T) {
	for arch, rounds := range map[string]int{"arm64": 0, "riscv64": 1} {
		for _, protocol := range []string{"native", "breakpoint", "word"} {
			cfg := config(t, arch, protocol, "gen:n=200,misaligned=0.5", "4")
			cfg.Layout = "plain"
			j := newJob(t, cfg)
			row, err := j.Count(t.Context())
			if want := map[bool]int{true: 2, false: rounds}[protocol == "breakpoint"]; err != nil || row.Patches != 200 ||
				row.Rounds != want {
				t.Errorf("%s %s: %d patches, %d rounds, %v; want 200 and %d", arch, protocol, row.Patches, row.Rounds, err, want)
			}
			l := newLive(t, j)
			for _, enable := range []bool{true, false} {
				run, err := l.Update(t.Context(), enable)
				if err != nil || run.Violations+run.Lost != 0 {
					t.Errorf("%s %s, %s: %d violations, %d lost, %v: %v", arch, protocol, run.Direction, run.Violations, run.Lost, err,
						l.Violations())
				}
			}
		}
	}
}
