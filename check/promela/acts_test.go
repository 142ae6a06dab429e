// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestActsWrong: a model whose handlers can act as the wrong instruction is refused, and
// no other: what the plan alone tells is what the checker finds.
func TestActsWrong(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, mutation := range []string{"", "drop-sync-1", "shifted-batch"} {
			for _, sites := range []int{1, 2} {
				m := model(t, setup(t, arch, "breakpoint", mutation, 2, sites))
				wrong := verdict(t, m) == cpus.WrongInstruction
				err := Write(io.Discard, m)
				if refused := errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "is not the site's"); refused != wrong {
					t.Errorf("%s, %q, %d sites: %v; the checker finds a wrong instruction: %v", arch, mutation, sites, err, wrong)
				}
			}
		}
	}
}
