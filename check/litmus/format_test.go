// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"strings"
)

// String prints the test as Parse reads it, without comments.
func (t *Test) String() string {
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", name, value)
		}
	}
	field("test", t.Name)
	field("about", t.About)
	field("source", t.Source)
	for _, s := range t.sites {
		fmt.Fprintf(&b, "site %s %s%s\n", s.name, s.initial, s.alignment())
	}
	for _, d := range t.data {
		fmt.Fprintf(&b, "data %s %s\n", d.name, d.initial)
	}
	for _, th := range t.threads {
		fmt.Fprintf(&b, "thread %s\n", th.name)
		for i := range th.insns {
			fmt.Fprintf(&b, "  %s\n", t.line(&th.insns[i]))
		}
	}
	field("outcome", t.Outcome())
	for _, e := range t.expect {
		fmt.Fprintf(&b, "expect %s %s\n", e.want, e.class.name)
		if e.differs != "" {
			fmt.Fprintf(&b, "differs %s: %s\n", e.class.name, e.differs)
		}
		if e.window != Same {
			fmt.Fprintf(&b, "%s %s: %s\n", e.window, e.class.name, e.why)
		}
	}
	return b.String()
}

func (s *site) alignment() string {
	switch {
	case len(s.initial) == 1:
		return ""
	case s.aligned:
		return " aligned"
	default:
		return " unaligned"
	}
}
