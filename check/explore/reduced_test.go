// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// TestReducedStateCounts holds how many states each reduction leaves against a file: one that does less than it could
// is as right as it was, and slower, which no verdict tells. Together they leave no more than one by itself.
func TestReducedStateCounts(t *testing.T) {
	var b strings.Builder
	for _, arch := range cpus.ArchNames() {
		for _, tt := range []struct {
			name, protocol string
			change         func(*Setup)
		}{
			{"", "native", func(*Setup) {}}, {"", "breakpoint", func(*Setup) {}}, {"", "per-site", func(s *Setup) { s.Sites, s.Roles = 2, s.Roles[:2] }},
			{"isolated", "breakpoint-lazy", func(s *Setup) { s.Roles = []cpus.Role{cpus.Busy, cpus.Isolated} }},
			{"idle", "stop-machine", func(s *Setup) { s.Roles = []cpus.Role{cpus.Busy, cpus.Idle} }},
			{"shared", "breakpoint", func(s *Setup) { s.Refs, s.Roles = int3.SharedRef, s.Roles[:2] }},
			{"uncounted", "breakpoint", func(s *Setup) { s.Refs, s.Roles = int3.NoRef, s.Roles[:2] }},
			{"preempted", "breakpoint", func(s *Setup) { s.Preempt, s.Roles = true, s.Roles[:2] }},
			{"endless", "breakpoint", func(s *Setup) { s.Workload, s.Roles = Endless, s.Roles[:2] }},
			{"two patchers", "word", func(s *Setup) { s.Patchers, s.Sites, s.Roles = 2, 2, s.Roles[:2] }},
		} {
			s := setup(t, arch, tt.protocol, "", 3, 1)
			tt.change(&s)
			states := map[string]uint64{}
			for _, name := range ReductionNames() {
				if name == "none" { // see TestStateCounts
					continue
				}
				reduce, err := ParseReductions(name)
				if err != nil {
					t.Fatal(err)
				}
				states[name] = explore(t, s, Options{Reduce: reduce, Workers: 1}).States
			}
			if states["all"] > min(states["order"], states["symmetry"]) {
				t.Errorf("%s %s %s: %v", arch, tt.protocol, tt.name, states)
			}
			fmt.Fprintf(&b, "%-8s %-16s %-12s %v\n", arch, tt.protocol, tt.name, states)
		}
	}
	golden(t, "reduced.txt", b.String())
}
