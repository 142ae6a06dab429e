// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// StateHelp says what [Kernel.In] reads.
const StateHelp = "KEY=on (a static key), probe=TRACEPOINT[:N] (so many probes), recording=on (of command lines), " +
	"record-cmd=off (that option), action=ACTION (it is on)"

// In is the kernel in a state that no image tells: tracers, keys and probes that are on or attached
// already. Each fact is NAME=VALUE, see [StateHelp]; a wrong one fails when it is replayed.
func (k *Kernel) In(state []string) *Kernel {
	in := *k
	in.state = state
	return &in
}

// State is what was told with [Kernel.In].
func (k *Kernel) State() []string { return k.state }

// tellAll brings the kernel into the state that the facts describe, and drops the lines of the
// rounds that this sends.
func (r *Replay) tellAll(facts []string) error {
	for _, fact := range facts {
		err := r.tell(fact)
		if _, unknown := r.Take(); err == nil {
			err = unknown
		}
		if err != nil {
			return fmt.Errorf("state %q: %w", fact, err)
		}
	}
	return nil
}

func (r *Replay) tell(fact string) error {
	name, value, ok := strings.Cut(fact, "=")
	switch {
	case !ok || value == "":
		return fmt.Errorf("want %s", StateHelp)
	case name == "probe":
		tp, number, given := strings.Cut(value, ":")
		n := 1
		if given {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 0 || n > 1000 {
				return fmt.Errorf("%q: want a number of probes up to 1000", number)
			}
		}
		for i := range n {
			r.hook(tp, fmt.Sprintf("told %d", i))
		}
	case name == "action":
		_, err := r.Switch(value, true)
		return err
	case name == "record-cmd" && value == "off":
		r.silent = true
	case value != "on":
		return fmt.Errorf("value %q: want on", value)
	case name == "recording":
		r.record(true)
	default:
		r.use(name, true)
	}
	return nil
}
