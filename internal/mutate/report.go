// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// outcome is what became of a fault.
type outcome string

const (
	found     outcome = "found"              // a test failed
	late      outcome = "late"               // the tests did not end in time, which counts as found
	survived  outcome = "survived"           // all tests passed
	unreached outcome = "no test comes here" // and so none can fail
)

// result is what became of the faults of one package.
type result struct {
	dir      string
	other    []string // files that were left out
	all      int      // the places for a fault that the package has
	faults   []fault
	outcomes []outcome
}

func heading(out io.Writer) {
	fmt.Fprintf(out, "%-28s %6s %6s %6s %6s %6s %8s\n", "package", "places", "tried", "same", "found", "late",
		"found %")
}

// report prints the package's row, and below it each fault that survived and each file
// that was left out. Found counts the late ones too, since a loop may have become endless;
// many of them speak for a time that is too short. It answers the percentage found of the
// faults that change anything.
func (r result) report(out io.Writer, reasons map[string]string) float64 {
	same, seen, slow := 0, 0, 0
	var left []string
	for i, f := range r.faults {
		switch key := f.key(r.dir); {
		case r.outcomes[i] == late:
			slow++
			seen++
		case r.outcomes[i] == found:
			seen++
		case reasons[key] != "":
			same++
		default:
			left = append(left, fmt.Sprintf("%s/%s:%d: %s: %s", r.dir, f.file, f.line, r.outcomes[i], key))
		}
	}
	for _, name := range r.other {
		left = append(left, fmt.Sprintf("%s/%s: left out: it is for another system or build tag", r.dir, name))
	}
	percent := 100.0
	if tried := len(r.faults) - same; tried > 0 {
		percent = 100 * float64(seen) / float64(tried)
	}
	fmt.Fprintf(out, "%-28s %6d %6d %6d %6d %6d %8.1f\n", r.dir, r.all, len(r.faults), same, seen, slow, percent)
	for _, line := range left {
		fmt.Fprintln(out, " ", line)
	}
	return percent
}

// readReasons reads the faults that change nothing: a line with the fault's key, and an
// indented line with the reason below it. A file that is not there names none.
func readReasons(name string) (map[string]string, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	reasons, key := map[string]string{}, ""
	scanner := bufio.NewScanner(file)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		switch text := strings.TrimSpace(line); {
		case text == "" || text[0] == '#':
		case text == line:
			key = text
		case key == "":
			return nil, fmt.Errorf("%s:%d: a reason without a fault: %s", name, n, text)
		default:
			reasons[key] = strings.TrimSpace(reasons[key] + " " + text)
		}
	}
	return reasons, scanner.Err()
}
