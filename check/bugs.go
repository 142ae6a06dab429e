package check

import (
	"fmt"

	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/check/museum"
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

// noBug says why there is no scenario of a name.
func noBug(name string) error {
	var names []string
	for _, b := range museum.All() {
		names = append(names, b.Name)
	}
	for _, o := range museum.OmittedBugs() {
		if o.Name == name {
			return fmt.Errorf("--bug %q: it cannot be told in this machine's words: %s", name, o.Reason)
		}
	}
	return fmt.Errorf("--bug %q: %w", name, spelling.NotOneOf(name, names))
}

// List is all that can be checked: protocols, mutations, bugs and those that
// cannot be told, litmus tests.
func List() (results.Table, error) {
	t := results.Table{Name: "list", Columns: []results.Column{
		{Name: "kind", Doc: "protocol, mutation, bug, tracer bug, tracer case, omitted bug or litmus test; tracers are about who is called"},
		{Name: "name", Doc: "as the flags spell it"},
		{Name: "what", Doc: "what it is"},
		{Name: "source", Detail: true, Doc: "where the kernel does it, who has found it, or why it cannot be told"},
	}}
	var err error
	add := func(cells ...any) {
		if err == nil {
			err = t.Add(cells...)
		}
	}
	add("protocol", poke.Native, "what the architecture's current kernel does", "")
	for _, p := range poke.Protocols() {
		add("protocol", p.Name, p.Summary, p.Source)
	}
	for _, m := range poke.AllMutations() {
		add("mutation", m.Name, m.Summary, "")
	}
	for _, b := range museum.All() {
		add(b.Kind(), b.Name, fmt.Sprintf("%s (%s): %s", b.Title, b.Versions, b.Want), b.Source)
	}
	for _, o := range museum.OmittedBugs() {
		add("omitted bug", o.Name, o.Title, o.Reason)
	}
	for _, name := range litmus.ShippedNames() {
		test, e := shippedLitmus(name)
		if e != nil {
			return t, e
		}
		add("litmus", test.Name, test.About, test.Source)
	}
	return t, err
}
