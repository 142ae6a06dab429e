// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/records"
)

// StateHelp says what [Replay.Tell] reads.
const StateHelp = "KEY=on (a static key), probe=TRACEPOINT[:N] (so many probes), recording=on (of command lines), " +
	"action=ACTION (it is on)"

// Tell tells a replay what an image cannot: what is on or attached already. Each fact is
// NAME=VALUE, see [StateHelp].
func (r *Replay) Tell(facts []string, t *records.Table) error {
	for _, fact := range facts {
		if err := r.tell(fact, t); err != nil {
			return fmt.Errorf("state %q: %w", fact, err)
		}
		if _, err := r.Take(); err != nil {
			return fmt.Errorf("state %q: %w", fact, err)
		}
	}
	return nil
}

func (r *Replay) tell(fact string, t *records.Table) error {
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
		_, err := r.Switch(value, true, t)
		return err
	case value != "on":
		return fmt.Errorf("value %q: want on", value)
	case name == "recording":
		r.record(true)
	default:
		r.use(name, true)
	}
	return nil
}
