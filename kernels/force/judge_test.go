// SPDX-License-Identifier: Apache-2.0

package force

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/vm"
)

// TestJudges: a kernel that died broke if its console says all that the case says; the steps may have seen it before;
// one that was ended on purpose, or by the emulator, says nothing.
func TestJudges(t *testing.T) {
	const console = "[    1.0] hello\n[    2.0] Oops: int3: 0000\n[    2.1] CPU: 1\n"
	for name, c := range map[string]struct {
		breaks  []string
		row     Row
		err     error
		outcome Outcome
		why     string
		fails   string
	}{
		"as it says":     {[]string{"int3: 0000", "CPU: 1"}, Row{At: 2}, vm.ErrDied, Broke, "Oops: int3: 0000", ""},
		"something else": {[]string{"int3: 0000", "CPU: 0"}, Row{At: 2}, vm.ErrDied, Died, "Oops: int3: 0000", ""},
		"nothing said":   {nil, Row{At: 2}, vm.ErrDied, Died, "Oops: int3: 0000", ""},
		"seen before":    {[]string{"no"}, Row{At: 2, Outcome: Broke}, vm.ErrDied, Broke, "Oops: int3: 0000", ""},
		"ended":          {nil, Row{At: 2, Outcome: Outlived}, errEnough, Outlived, "", ""},
		"not begun":      {nil, Row{}, vm.ErrDied, "", "", "image: "},
		"the emulator":   {nil, Row{At: 2}, errors.New("no memory"), "", "", "image: case: no memory"},
	} {
		file := filepath.Join(t.TempDir(), "console")
		if err := os.WriteFile(file, []byte(console), 0o600); err != nil {
			t.Fatal(err)
		}
		var told []string
		config := Config{Case: &Case{Name: "case", Breaks: c.breaks}, Image: "image",
			Tell: func(line string) { told = append(told, line) }}
		row := c.row
		err := config.judge(&row, fmt.Errorf("boot: %w", &vm.BootError{Console: file, Err: c.err}))
		if (err != nil) != (c.fails != "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) ||
			row.Outcome != c.outcome || row.Why != c.why {
			t.Errorf("%s: %+v, %v, want %s, %q, %q", name, row, err, c.outcome, c.why, c.fails)
		}
		if (len(told) > 0) != (c.why != "") || len(told) > 0 && !strings.HasPrefix(told[0], "[    2.0] Oops") {
			t.Errorf("%s: told %q", name, told)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: the console is left", name)
		}
	}
	other := errors.New("other")
	if err := (&Config{}).judge(&Row{}, other); err != other {
		t.Error(err)
	}
	if err := (&Config{}).judge(&Row{}, nil); err != nil {
		t.Error(err)
	}
}

// TestHeldCPUsAnswer: while one CPU runs, another one that is held takes interrupts in its turn, and is back where it
// was; one that another task brings there goes on.
func TestHeldCPUsAnswer(t *testing.T) {
	const f, g = "Z1,ffffffff81001000,1", "Z1,ffffffff81002003,1"
	gone := func(set string) string { return "z" + set[1:] }
	for name, c := range map[string]struct {
		stops []string
		other bool // another task comes to where it is held
		asked []string
	}{
		"it comes back": {[]string{"", "T05thread:02;", "T05thread:01;"}, false, []string{f, "vCont;c:1", g,
			"vCont;c:2", gone(g), "vCont;c:1", gone(f)}},
		"it waits": {[]string{"", "", "T05thread:01;"}, false, []string{f, "vCont;c:1", g, "vCont;c:2", gone(g),
			"vCont;c:1", gone(f)}},
		"another task": {[]string{"", "T05thread:02;", "", "T05thread:01;"}, true,
			[]string{f, "vCont;c:1", g, "vCont;c:2", "vCont;s:2", "vCont;c:2", gone(g), "vCont;c:1", gone(f)}},
	} {
		m, s := stands(t)
		s.stops = c.stops
		s.regs[0][rip], s.regs[1][rip], s.regs[1][rsp] = fAt, gAt+3, 0x5000
		if c.other {
			s.moves = 0x6000
		}
		st, err := ParseStep("cpu 0 while cpu 1 answers to f within 10s")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.step(t.Context(), &st); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.asked, s.asked); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestLastReads: a CPU reads the large page's entry as often as the function does, found out once, and stops before it
// reads the table's; it gets its registers back between the two.
func TestLastReads(t *testing.T) {
	const entry, slot = "T05thread:02;rwatch:7000;", "T05thread:02;rwatch:6000;"
	for name, c := range map[string]struct {
		stops []string
		runs  int
		err   string
	}{
		"once":  {[]string{entry, slot, entry}, 3, ""},
		"twice": {[]string{entry, entry, slot, entry, entry}, 5, ""},
		"never": {[]string{slot}, 1, "the entry of the large page is read 0 times before the table's"},
		"for ever": {slices.Repeat([]string{entry}, 100), 100,
			"the entry of the large page is read 100 times before the table's"},
		"late": {[]string{entry, ""}, 2, "not within 1ms; CPU 0 stands in f; CPU 1 stands in g"},
	} {
		m, s := stands(t)
		m.entry, m.slot = 0x7000, 0x6000
		s.stops, s.regs[0][rip], s.regs[1][rip] = c.stops, fAt, gAt
		st, err := ParseStep("cpu 1 to last read of entry within 1ms")
		if err != nil {
			t.Fatal(err)
		}
		if name != "late" {
			st.limit = time.Minute
		}
		err = m.step(t.Context(), &st)
		if (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, want %s", name, err, c.err)
		}
		want := []string{"Z3,7000,8", "Z3,6000,8"}
		for i := range c.runs {
			if back := slices.Index(c.stops, slot) + 1; c.err == "" && i == back {
				want = append(want, "G")
			}
			want = append(want, "vCont;c:2")
		}
		want = append(want, "z3,6000,8", "z3,7000,8")
		for i := range s.asked {
			if strings.HasPrefix(s.asked[i], "G") {
				s.asked[i] = "G"
			}
		}
		if d := cmp.Diff(want, s.asked); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestDebugs: how a kernel fares whose steps were forced: it broke where they see it, it outlived what its console
// would tell, or a look that saw something else; a step that was not reached is told, and one that cannot be made is an
// error.
func TestDebugs(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		steps   string
		breaks  []string
		site    string
		begins  error
		outcome Outcome
		at      int
		why     string
		err     string
	}{
		"seen":      {"all to f\ngo", nil, "traced", nil, Broke, 2, "", errEnough.Error()},
		"outlived":  {"all to f\ngo", []string{"Oops"}, "", nil, Outlived, 2, "", errEnough.Error()},
		"otherwise": {"look set a_word\ngo", nil, "", nil, Outlived, 1, "", errEnough.Error()},
		"late": {"all to f when cpu 1 within 1ms\ngo", nil, "", nil, NotForced, 1,
			"not within 1ms; CPU 0 stands in f; CPU 1 stands in f", errEnough.Error()},
		"no place": {"all to nobody\ngo", nil, "", nil, "", 1, "", "step 1: the image has no nobody"},
		"no site":  {"all to f\ngo", nil, "untraced", nil, "", 0, "", "untraced cannot be traced in this image"},
		"it fails": {"all to f\ngo", nil, "", no, "", 0, "", "no"},
	} {
		k, s, socket := serves(t)
		s.stops = []string{"T05thread:01;", "T05thread:01;"}
		if name == "otherwise" {
			s.stops = s.stops[1:]
		}
		s.word(wordAt, 0)
		s.regs[0][rip], s.regs[1][rip] = fAt, fAt
		config := Config{Case: &Case{Breaks: c.breaks, Site: c.site}, Limit: time.Minute, Tell: func(string) {}}
		for line := range strings.SplitSeq(c.steps, "\n") {
			st, err := ParseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			config.Case.Steps = append(config.Case.Steps, st)
		}
		if name == "late" {
			s.stops[0] = ""
		}
		row, begun := &Row{}, 0
		err := config.debug(t.Context(), k, row, socket, func() error { begun++; return c.begins })
		if err == nil || err.Error() != c.err || row.Outcome != c.outcome || row.At != c.at || row.Why != c.why ||
			row.Alive != (c.outcome != "") || begun != map[bool]int{true: 1}[name != "no site"] {
			t.Errorf("%s: %+v, %v, begun %d times, want %+v", name, row, err, begun, c)
		}
	}
	if err := (&Config{}).debug(t.Context(), nil, nil, filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("no server")
	}
}
