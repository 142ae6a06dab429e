// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tracing is where the kernel shows its tracing.
const Tracing = "/sys/kernel/tracing"

// events are those that name what is called on another CPU: include/trace/events/csd.h
// (since Linux 6.5) and ipi.h (ipi_send_cpu since 6.4), for what is called without a queue.
var events = []string{"csd/csd_queue_cpu", "ipi/ipi_send_cpu"}

// Names hears which functions are called on other CPUs, in an instance of its own of the
// kernel's tracing. Switching its events on and off patches text itself: three rounds and
// more, before the first reading and after the last.
type Names struct{ dir string }

// Listen switches the events on.
func Listen(tracing string) (*Names, error) {
	n := &Names{filepath.Join(tracing, "instances", fmt.Sprintf("textpoke-%d", os.Getpid()))}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return nil, fmt.Errorf("names: %w (root can, where tracefs is mounted)", err)
	}
	on := 0
	for _, e := range events {
		if err := os.WriteFile(filepath.Join(n.dir, "events", e, "enable"), []byte("1"), 0o600); err == nil {
			on++
		}
	}
	if on == 0 {
		return nil, errors.Join(fmt.Errorf("names: the kernel has none of the events %s (Linux 6.4 and later)",
			strings.Join(events, ", ")), n.Close())
	}
	return n, nil
}

// Close switches them off again.
func (n *Names) Close() error {
	if err := os.Remove(n.dir); err != nil {
		return fmt.Errorf("names: %w", err)
	}
	return nil
}

// Take is what was called since the last time.
func (n *Names) Take() (string, error) {
	file := filepath.Join(n.dir, "trace")
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("names: %w", err)
	}
	calls, err := Calls(f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.WriteFile(file, nil, 0o600) // which empties the buffer
	}
	if err != nil {
		return "", fmt.Errorf("names: %w", err)
	}
	return calls, nil
}

// mostCalls is how many functions a list names.
const mostCalls = 4

// Calls counts in a text of trace events how often each function was called on another
// CPU, those with the most calls first: "do_sync_core 1971, rcu_barrier_handler 3".
func Calls(r io.Reader) (string, error) {
	count := map[string]int{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if name := called(s.Text()); name != "" {
			count[name]++
		}
	}
	if err := s.Err(); err != nil {
		return "", err
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	var parts []string
	rest := 0
	for i, name := range names {
		if i < mostCalls {
			parts = append(parts, fmt.Sprintf("%s %d", name, count[name]))
		} else {
			rest += count[name]
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("others %d", rest))
	}
	return strings.Join(parts, ", "), nil
}

// called is the function of one event: "func=" of csd_queue_cpu, "callback=" of ipi_send_cpu; "" of
// any other line. The function that empties a queue is not the called one.
func called(line string) string {
	field := "func="
	if _, rest, ok := strings.Cut(line, ": csd_queue_cpu: "); ok {
		line = rest
	} else if _, rest, ok = strings.Cut(line, ": ipi_send_cpu: "); ok {
		line, field = rest, "callback="
	} else {
		return ""
	}
	for f := range strings.FieldsSeq(line) {
		if name, ok := strings.CutPrefix(f, field); ok {
			name, _, _ = strings.Cut(name, "+")
			if name == "generic_smp_call_function_single_interrupt" || name == "0x0" {
				return ""
			}
			return name
		}
	}
	return ""
}
