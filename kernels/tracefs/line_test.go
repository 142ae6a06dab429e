// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseLine: lines as kernel/trace/trace_output.c prints them.
func TestParseLine(t *testing.T) {
	for _, want := range []Line{
		{Text: "             cat-123     [001] d..2.    12.345678: vfs_read <-ksys_read", Kind: FunctionLine, Name: "vfs_read",
			Detail: "ksys_read", Task: "cat", PID: 123, CPU: 1, NS: 12_345_678_000},
		{Text: "           <...>-7       [000] .....  4000.000001: ext4_file_read_iter [ext4] <-vfs_read [x]", Kind: FunctionLine,
			Name: "ext4_file_read_iter [ext4]", Detail: "vfs_read [x]", Task: "<...>", PID: 7, NS: 4_000_000_001_000},
		{Text: " kworker/u8:1-ev-55      [003] d.h.     1.000002: sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b", Kind: EventLine,
			Name: "sched_switch", Detail: "prev_comm=a prev_pid=1 ==> next_comm=b", Task: "kworker/u8:1-ev", PID: 55, CPU: 3, NS: 1_000_002_000},
		// A task may call itself anything, in 15 bytes.
		{Text: " 1 [000] . 1.000-9       [002] .....     3.000004: vfs_open <-do_open", Kind: FunctionLine, Name: "vfs_open",
			Detail: "do_open", Task: "1 [000] . 1.000", PID: 9, CPU: 2, NS: 3_000_004_000},
		{Text: "             cat-123     (    123) [001] d..2.    12.345678: vfs_read <-ksys_read", Kind: FunctionLine, Name: "vfs_read",
			Detail: "ksys_read", Task: "cat", PID: 123, CPU: 1, NS: 12_345_678_000}, // with the option print-tgid
		{Text: "CPU:2 [LOST 4711 EVENTS]", CPU: 2, Lost: 4711},
		{Text: "# tracer: function"},
		{Text: ""},
	} {
		if diff := cmp.Diff(want, ParseLine(want.Text)); diff != "" {
			t.Errorf("%q: %s", want.Text, diff)
		}
	}
}

// TestGraphLines: an end belongs to the call that began at its depth on its CPU, and else says its name.
func TestGraphLines(t *testing.T) {
	text := ` 0)               |  vfs_read() {
 1)               |  vfs_write() {
 0)   0.633 us    |    rw_verify_area();
 1) + 12.345 us   |  }
 0)               |    ext4_file_read_iter [ext4]() {
 ------------------------------------------
 0)    cat-123    =>    sh-55
 ------------------------------------------

 0)   1.000 us    |    }
 0) ! 100.000 us  |  }
CPU:1 [LOST 3 EVENTS]
 1)   9.100 us    |  } /* do_open */
 1)   0.100 us    |  vfs_open(path=0x1); /* ret=0 */
 2)   ==========> |
`
	want := []string{"0 vfs_read", "1 vfs_write", "0 rw_verify_area", "1 vfs_write", "0 ext4_file_read_iter [ext4]", "0 ext4_file_read_iter [ext4]",
		"0 vfs_read", "lost 3", "1 do_open", "1 vfs_open"}
	var got []string
	var g Graph
	for line := range strings.Lines(text) {
		switch l := g.Parse(strings.TrimSuffix(line, "\n")); {
		case l.Lost == 3 && l.CPU == 1:
			got = append(got, "lost 3")
		case l.Kind == GraphLine:
			got = append(got, string(rune('0'+l.CPU))+" "+l.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestEndsOnce: a call that has ended gives its name to no second end.
func TestEndsOnce(t *testing.T) {
	var g Graph
	for _, c := range [][2]string{{" 0)               |  a() {", "a"}, {" 0)   0.1 us      |  }", "a"}, {" 0)   0.1 us      |  }", ""}} {
		if l := g.Parse(c[0]); l.Kind != GraphLine || l.Name != c[1] || l.End != (c[0][len(c[0])-1] == '}') {
			t.Errorf("%q: %+v, want %q", c[0], l, c[1])
		}
	}
}

// TestGraphTimes: with funcgraph-abstime, as Debian's 7.3 writes it, lines have their time; the task is the one that a line
// between calls named last on that CPU.
func TestGraphTimes(t *testing.T) {
	text := `    4.984994 |   0) # 1679.330 us |  vfs_read();
 ------------------------------------------
 0)     init-1     =>  textpok-111  
 ------------------------------------------

    4.992846 |   0)               |  vfs_read() {
    4.993023 |   0)   3.467 us    |    rw_verify_area();
    4.994370 |   1)   9.568 us    |  vfs_read();
    5.026001 |   0) ! 204.186 us  |  }
`
	want := []Line{
		{Name: "vfs_read", NS: 4_984_994_000, Took: 1_679_330},
		{Name: "vfs_read", NS: 4_992_846_000, Task: "textpok", PID: 111},
		{Name: "rw_verify_area", NS: 4_993_023_000, Took: 3_467, Task: "textpok", PID: 111},
		{Name: "vfs_read", NS: 4_994_370_000, Took: 9_568, CPU: 1},
		{Name: "vfs_read", NS: 5_026_001_000, Took: 204_186, Task: "textpok", PID: 111, End: true},
	}
	var got []Line
	var g Graph
	for line := range strings.Lines(text) {
		if l := g.Parse(strings.TrimSuffix(line, "\n")); l.Kind != "" {
			l.Kind, l.Text = "", ""
			got = append(got, l)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzLine: whatever a line is, its text is kept, and what has a name has a kind.
func FuzzLine(f *testing.F) {
	f.Add("             cat-123     [001] d..2.    12.345678: vfs_read <-ksys_read")
	f.Add(" 0)               |  vfs_read() {")
	f.Add("    4.984994 |   0) # 1679.330 us |  vfs_read();")
	f.Add(" 0)    cat-123    =>    sh-55")
	f.Add("CPU:2 [LOST 4711 EVENTS]")
	f.Fuzz(func(t *testing.T, text string) {
		var g Graph
		for _, l := range []Line{ParseLine(text), g.Parse(text)} {
			if l.Text != text || l.Name != "" && l.Kind == "" || l.Lost > 0 && l.Name != "" {
				t.Errorf("%+v", l)
			}
		}
	})
}
