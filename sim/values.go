// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// same reads values that are their own names, and itself prints them.
func same(s string) (string, error) { return s, nil }
func itself(s string) string        { return s }

// parseBuffer reads the size of a vector.
func parseBuffer(s string) (sched.Buffer, error) {
	b, err := sched.ParseBuffer(s)
	if err != nil {
		err = fmt.Errorf("%w%s", err, spelling.Hint(s, []string{sched.Dynamic.String()}))
	}
	return b, err
}

// parseRoles reads a machine.
func parseRoles(s string) ([]cpus.Role, error) {
	roles, err := cpus.ParseRoles(s)
	var bad *cpus.RoleError
	if !errors.As(err, &bad) {
		return roles, err
	}
	var names []string
	for r := cpus.Busy; r <= cpus.Offline; r++ {
		names = append(names, r.String())
	}
	part, hint := "", ""
	if bad.Part != bad.Spec {
		part = fmt.Sprintf("%q: ", bad.Part)
	}
	if name, _, _ := strings.Cut(bad.Part, "="); !slices.Contains(names, name) {
		hint = spelling.Hint(name, names)
	}
	return nil, fmt.Errorf("%q: %s%s%s", s, part, bad.Reason, hint)
}

// mostPerSecond bounds rates: nothing happens more often than once a nanosecond.
const mostPerSecond = 1e9

// parseRate reads a number a second.
func parseRate(s string) (*float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > mostPerSecond {
		return nil, fmt.Errorf("%q: want a number a second, from 0 to %.0f", s, mostPerSecond)
	}
	return &v, nil
}

// formatRate prints a rate, unless the calibration's is meant.
func formatRate(rate *float64) string {
	if rate == nil {
		return ""
	}
	return fmt.Sprint(*rate)
}

// OpenPlan reads a protocol from a file.
func OpenPlan(path string) (*poke.Protocol, error) {
	if path == "" {
		return nil, fmt.Errorf("%q: want a name", path)
	}
	f, err := inputs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, poke.MaxPlanFile+1)) // one more than is allowed
	if err != nil {
		return nil, err
	}
	return poke.ParseProtocol(path, src)
}

// together makes one value of a list.
func together(values []string) ([]string, error) { return []string{strings.Join(values, ",")}, nil }

// splitMachines splits lists of plain numbers, "2,8,64", into their machines; what
// names roles is one machine.
func splitMachines(specs []string) (out []string, err error) {
	for _, s := range specs {
		if strings.Contains(s, "=") {
			out = append(out, s)
			continue
		}
		out = append(out, strings.Split(s, ",")...)
	}
	return out, nil
}

// maxFilters is what the filters of one request may multiply to.
const maxFilters = 100_000

// splitFilters makes filters of patterns. Each value may be several patterns, separated by commas;
// a filter has one pattern of each value.
func splitFilters(values []string) ([]string, error) {
	combined := []string{""}
	for _, value := range values {
		patterns := alternatives(value)
		if file, is := strings.CutPrefix(value, "@"); is {
			all, err := filterFile(file)
			if err != nil {
				return nil, err
			}
			patterns = []string{all}
		}
		var more []string
		for _, before := range combined {
			for _, pattern := range patterns {
				if strings.TrimSpace(pattern) == "" {
					return nil, fmt.Errorf("filter %q: empty", pattern)
				}
				more = append(more, strings.TrimPrefix(before+" "+pattern, " "))
			}
			if len(more) > maxFilters {
				return nil, fmt.Errorf("filter %q: more than %d filters", value, maxFilters)
			}
		}
		combined = more
	}
	return combined, nil
}

// How long a file of patterns may be: a kernel's whole list has some 60,000 in two million bytes.
const (
	maxFilterFile = 32 << 20 // bytes
	maxPatterns   = 500_000
)

// filterFile is the patterns of a file, one a line, as one filter. Blank lines and those
// that begin with # say nothing; the module behind a name, as the kernel's lists have it,
// is left out.
func filterFile(path string) (string, error) {
	b, err := inputs.Read(path, maxFilterFile)
	if err != nil {
		return "", err
	}
	var all []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0][0] != '#' {
			if all = append(all, fields[0]); len(fields) > 2 || len(fields) == 2 && fields[1][0] != '[' {
				return "", fmt.Errorf("@%s: %q: want one pattern a line", path, strings.TrimSpace(line))
			}
		}
	}
	if len(all) > maxPatterns {
		return "", fmt.Errorf("@%s: more than %d patterns", path, maxPatterns)
	}
	if len(all) == 0 {
		return "", fmt.Errorf("@%s: no pattern in it", path)
	}
	return strings.Join(all, " "), nil
}

// alternatives splits a list of patterns at its commas, but for those that a glob
// quotes or has between brackets.
func alternatives(list string) (out []string) {
	from, class := 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\':
			i++
		case c == '[' || c == ']':
			class = c == '['
		case c == ',' && !class:
			out = append(out, list[from:i])
			from = i + 1
		}
	}
	return append(out, list[from:])
}

// splitSources splits lists of tables of records. A file or a table stands for itself, commas and
// all; the keys behind a gen: are its own.
func splitSources(values []string) (out []string, err error) {
	for _, value := range values {
		if isSource(value) {
			out = append(out, value)
			continue
		}
		generated := false
		for part := range strings.SplitSeq(value, ",") {
			if generated && !isSource(part) && !strings.HasPrefix(part, "gen:") {
				out[len(out)-1] += "," + part
				continue
			}
			out = append(out, part)
			generated = strings.HasPrefix(part, "gen:")
		}
	}
	return out, nil
}

// isSource tells whether there is a table or a file of that name.
func isSource(name string) bool {
	_, err := os.Stat(inputs.Place(name))
	return err == nil || slices.Contains(records.BuiltinNames(), name)
}
