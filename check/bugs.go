// SPDX-License-Identifier: Apache-2.0

package check

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
)

// BugQuestions are scenarios of the museum, by name, with or without the upstream
// fix.
func BugQuestions(names []string, fixed bool) ([]*Question, error) {
	var out []*Question
	for _, name := range names {
		bug, err := museum.Named(name)
		if err != nil {
			return nil, noBug(name)
		}
		m, err := bug.Model(fixed)
		if err != nil {
			return nil, err
		}
		q := &Question{Bug: bug.Name, Fixed: fixed, Model: m, about: bug}
		out = append(out, q)
	}
	return out, nil
}

// BugNames are the names of the museum's scenarios.
func BugNames() []string {
	return spelling.Each(museum.All(), func(b museum.Bug) string { return b.Name })
}

// noBug says why there is no scenario of a name.
func noBug(name string) error {
	names := BugNames()
	for _, o := range museum.OmittedBugs() {
		if o.Name == name {
			return choice.Errorf("%s %q: it cannot be told in this machine's words: %s", choice.Name("bug"), name, o.Reason)
		}
	}
	if spelling.Nearest(name, names) == "" {
		return choice.Errorf("%s %q: none of %d scenarios: textpoke check %s names them", choice.Name("bug"), name, len(names),
			choice.Name("list"))
	}
	return choice.Errorf("%s %q: %w", choice.Name("bug"), name, spelling.NotOneOf(name, names))
}

// Listed is something that can be checked, or why it cannot.
type Listed struct{ Kind, Name, What, Source string }

// ListColumns are the columns of List.
var ListColumns = results.Declare[Listed](declared, "list", nil)

// List is a table of everything that can be checked: protocols, mutations, bugs and litmus
// tests, and of the omitted bugs.
func List() (results.Table, error) {
	all := []Listed{{"protocol", poke.Native, "what the architecture's current kernel does", ""}}
	for _, p := range poke.Protocols() {
		all = append(all, Listed{"protocol", p.Name, p.Summary, p.Source})
	}
	for _, m := range poke.AllMutations() {
		all = append(all, Listed{"mutation", m.Name, m.Summary, ""})
	}
	for _, b := range museum.All() {
		all = append(all, Listed{b.Kind(), b.Name, fmt.Sprintf("%s (%s): %s", b.Title, b.Versions, b.Want), b.Source})
	}
	for _, o := range museum.OmittedBugs() {
		all = append(all, Listed{"omitted bug", o.Name, o.Title, o.Reason})
	}
	for _, name := range litmus.ShippedNames() {
		test, err := litmus.Shipped(name)
		if err != nil {
			return results.Table{}, err
		}
		all = append(all, Listed{"litmus", test.Name, test.About, test.Source})
	}
	return ListColumns.Fill("list", all)
}

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
