// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/textpoke/textpoke/internal/sandbox"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sim/hardware"
)

var update = flag.Bool("update", false, "rewrite the scripts' expected texts")

// TestScripts runs testdata/script. Beyond testscript's own commands there are
//
//	exits CODE ARGUMENT...     textpoke with the arguments ends with the code; 0|1: with either
//	rows FILE N                a CSV file has N rows
//	row FILE N NAME=VALUE...   the N-th, counted from 1, has these cells
//	mask FILE NEW NAME,...     copies a table, with # for the cells of some columns
//	await FILE                 waits until it is there
//	free NAME                  an address that nobody listens on, in a variable
//	answers URL                waits until a URL is answered with 200
//
// where FILE may be stdout. mail.txt is the measurement of 2019, crlf.csv a table
// of two records whose lines end in CR LF.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each command otherwise
			mail, err := os.ReadFile("../../results/interrupts/testdata/mail-2019.txt")
			if err != nil {
				return err
			}
			crlf := "address,symbol,module,group\r\n0xffffffff81000010,a,,\r\n0xffffffff81000050,b,,\r\n"
			return errors.Join(os.WriteFile(e.WorkDir+"/mail.txt", mail, 0o666),
				os.WriteFile(e.WorkDir+"/crlf.csv", []byte(crlf), 0o666))
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "hardware":
				n, err := hardware.Allowed()
				return err == nil && n > 1, nil
			case "sandboxes":
				return sandbox.Works(), nil
			case "interrupts":
			default:
				return false, fmt.Errorf("no condition %q", cond)
			}
			s, err := interrupts.Read(interrupts.ProcFile)
			return err == nil && slices.ContainsFunc(s.Rows, func(r interrupts.Row) bool {
				return r.Name == "CAL" || r.Name == "IPI1"
			}), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "rows": scriptRows, "row": scriptRow, "mask": scriptMask, "await": scriptAwait,
			"free": scriptFree, "answers": scriptAnswers,
		},
	})
}

// usage ends a script that uses a command wrongly.
func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 0, "exits CODE ARGUMENT...")
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec("textpoke", args[1:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(code)) {
		ts.Fatalf("exit code %d, not %s; stderr: %s", code, args[0], ts.ReadFile("stderr"))
	}
}

func scriptSheet(ts *testscript.TestScript, name string) sheet {
	s, err := parseSheet(ts.ReadFile(name))
	ts.Check(err)
	return s
}

func scriptRows(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "rows FILE N")
	if n := len(scriptSheet(ts, args[0]).rows); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d rows, not %s", args[0], n, args[1])
	}
}

func scriptRow(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 2, "row FILE N NAME=VALUE...")
	s := scriptSheet(ts, args[0])
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 || n > len(s.rows) {
		ts.Fatalf("%s has %d rows, none is number %s", args[0], len(s.rows), args[1])
	}
	for _, want := range args[2:] {
		name, value, _ := strings.Cut(want, "=")
		if got, ok := s.rows[n-1][name]; !ok || got != value {
			ts.Fatalf("row %d: %s is %q, not %q", n, name, got, value)
		}
	}
}

func scriptMask(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 3, "mask FILE NEW NAME,...")
	text := maskTable(ts.ReadFile(args[0]), strings.Split(args[2], ","))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o666))
}

func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "await FILE")
	for range 1000 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not appear", args[0])
}

// maskTable replaces the cells of some columns by #, and makes those columns as
// wide as their name. The rule below the header tells where columns are.
func maskTable(text string, masked []string) string {
	lines := strings.Split(text, "\n")
	rule := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "---") })
	if rule < 1 {
		return text
	}
	header, out := lines[rule-1], slices.Clone(lines)
	for i := rule - 1; i < len(lines) && lines[i] != ""; i++ {
		var cells []string
		for from := 0; from < len(lines[rule]); {
			width := len(strings.Split(lines[rule][from:], " ")[0])
			name, cell := strings.TrimSpace(slice(header, from, width)), slice(lines[i], from, width)
			if slices.Contains(masked, name) {
				switch {
				case i == rule:
					cell = strings.Repeat("-", len(name))
				case i > rule:
					cell = strings.Repeat(" ", len(name)-1) + "#"
				default:
					cell = name
				}
			}
			cells = append(cells, cell)
			from += width + 2
		}
		out[i] = strings.TrimRight(strings.Join(cells, "  "), " ")
	}
	return strings.Join(out, "\n")
}

// slice cuts a cell out of a line, which may have lost its trailing blanks.
func slice(line string, from, width int) string {
	return line[min(from, len(line)):min(from+width, len(line))]
}
