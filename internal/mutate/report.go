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

// result is what became of the faults of one package.
type result struct {
	path, dir string
	all       int // the places for a fault that the package has
	faults    []fault
	survived  []string // for each fault, why it counts as not found; "" if it was found
}

func heading(out io.Writer, csv bool) {
	if csv {
		fmt.Fprintln(out, "package,places,tried,same,found,found_percent")
		return
	}
	fmt.Fprintf(out, "%-28s %6s %6s %6s %6s %8s\n", "package", "places", "tried", "same", "found", "found %")
}

// report prints the package's row, and below it each fault that survived. It answers the
// percentage found of the faults that change anything.
func (r result) report(out io.Writer, reasons map[string]string, csv bool) float64 {
	same, found := 0, 0
	var left []string
	for i, f := range r.faults {
		switch key := f.key(r.dir); {
		case r.survived[i] == "":
			found++
		case reasons[key] != "":
			same++
		default:
			left = append(left, fmt.Sprintf("  %s/%s:%d: %s: %s", r.dir, f.file, f.line, r.survived[i], key))
		}
	}
	percent := 100.0
	if tried := len(r.faults) - same; tried > 0 {
		percent = 100 * float64(found) / float64(tried)
	}
	row := "%-28s %6d %6d %6d %6d %8.1f\n"
	if csv {
		row = "%s,%d,%d,%d,%d,%.1f\n"
	}
	fmt.Fprintf(out, row, r.dir, r.all, len(r.faults), same, found, percent)
	if !csv {
		for _, line := range left {
			fmt.Fprintln(out, line)
		}
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
