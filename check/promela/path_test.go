// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/poke"
)

// TestSpinAgreesOnPaths: both searches say the same of handlers that no kernel has,
// behind the breakpoint protocol as it is and with defects.
func TestSpinAgreesOnPaths(t *testing.T) {
	needSpin(t)
	c := newComparison(t)
	var plan string
	for _, sh := range poke.ShippedPlans() {
		if sh.Name == "breakpoint" {
			plan = string(sh.Text)
		}
	}
	for i, path := range []string{
		"handler: look up; act",
		"handler: look up; sync; skip",
		"handler: take reference; give back; look up; act",
		"handler: look up; take reference; give back; sync; act",
		"handler: take reference; look up; give back; sync; skip",
		"handler: take reference; look up; give back; act|miss: fatal",
		"handler: look up; act|miss: skip",
		"miss: look again; skip",
		"miss: look again; fatal",
	} {
		src := plan
		for section := range strings.SplitSeq(path, "|") {
			src += "\n" + strings.NewReplacer(": ", ":\n", "; ", "\n").Replace(section) + "\n"
		}
		p, err := poke.ParseProtocol("path.plan", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		for _, mutation := range []string{"", "drop-sync-1", "drop-sync-3", "early-release"} {
			arch := []string{"x86_64", "arm64", "riscv64"}[i%3]
			t.Run(fmt.Sprintf("%s/%s/%s", arch, path, mutation), func(t *testing.T) {
				t.Parallel()
				s := setup(t, arch, "breakpoint", "", 2, 1)
				s.Protocol = p
				if mutation != "" {
					var err error
					if s.Mutation, err = p.Mutation(mutation, shape(t, s)); err != nil {
						t.Fatal(err)
					}
				}
				c.compare(t, model(t, s))
			})
		}
	}
}
