// SPDX-License-Identifier: Apache-2.0

package force

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/vm"
)

// TestJudges: a kernel that died broke if its console says all that the case says; the steps may have seen it before; one that was
// ended on purpose, or by the emulator, says nothing.
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
		config := Config{Case: &Case{Name: "case", Breaks: c.breaks}, Image: "image", Tell: func(line string) { told = append(told, line) }}
		row := c.row
		err := config.judge(&row, fmt.Errorf("boot: %w", &vm.BootError{Console: file, Err: c.err}))
		if (err != nil) != (c.fails != "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) || row.Outcome != c.outcome || row.Why != c.why {
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
