// SPDX-License-Identifier: Apache-2.0

package check

import (
	_ "embed"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Columns are the columns of a table of verdicts.
var Columns = results.Declare(declared, "verdict", map[string]func(*VerdictRow) any{
	"sites":    func(r *VerdictRow) any { return len(r.Model.Code.Sites) },
	"cpus":     func(r *VerdictRow) any { return cpus.FormatRoles(r.Model.Roles) },
	"patchers": func(r *VerdictRow) any { return len(r.Model.Programs) },
	"states_per_s": func(r *VerdictRow) any {
		return results.If(r.Elapsed > 0, int(float64(r.States)/r.Elapsed.Seconds()))
	},
	"complete":  func(r *VerdictRow) any { return r.Safe() || r.Verdict == explore.Unsafe && r.Swarm == 0 },
	"collision": func(r *VerdictRow) any { return results.If(!r.Options.Exact, r.Collision) },
	"never":     func(r *VerdictRow) any { return results.OrEmpty(strings.Join(r.Coverage.Never, "; ")) },
})

// Safe tells whether the verdict is that nothing can break.
func (r *VerdictRow) Safe() bool { return r.Verdict == explore.Safe }
