// SPDX-License-Identifier: Apache-2.0

// Package claims holds this project's statements about the kernel's source, so that a test
// can compare them with it. claims.txt is a table: a statement, the releases that it is
// about, a file and a function, and the texts that must and must not stand there.
// Documents, tables and cases cite a claim as claim:NAME.
//
// There is no code but the test that reads the table against a source tree:
//
//	TEXTPOKE_SOURCE=/usr/src/linux-source-6.12 go test ./kernels/claims -run Source -v
//
// It says of each claim "holds", "absent" (the release is outside of the claim's, and the described
// text does not stand there), "fails" or "cannot tell" (the file or the function is not in this
// tree, or the claim's bound is not known exactly and the release lies behind it). Several trees
// are separated by colons. With -update the answers go to answers.csv and to the table in
// docs/claims.md.
package claims

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

//go:embed claims.txt
var table string

// claim is one statement about the source of some releases.
type claim struct {
	name, says, file, function, source string
	from, to                           bound
	also                               []string
	has, lacks, comment                []string
}

// bound is a release at one end of a claim's; open says that the release beside it was not
// looked at. The zero bound is none.
type bound struct {
	release string
	open    bool
}

// parse reads the table.
func parse(text string) (all []claim, err error) {
	for at, paragraph := range strings.Split(text, "\n\n") {
		c := claim{}
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			key, value, _ := strings.Cut(line, ":")
			if err := c.set(key, strings.TrimSpace(value)); err != nil {
				return nil, fmt.Errorf("claims.txt, paragraph %d, %s: %w", at+1, c.name, err)
			}
		}
		if c.name != "" {
			all = append(all, c)
		}
	}
	return all, nil
}

func (c *claim) set(key, value string) error {
	one := map[string]*string{"claim": &c.name, "says": &c.says, "file": &c.file, "function": &c.function,
		"source": &c.source}
	many := map[string]*[]string{"has": &c.has, "lacks": &c.lacks, "comment": &c.comment}
	switch {
	case value == "":
		return fmt.Errorf("%s: nothing is given", key)
	case one[key] != nil:
		*one[key] = value
	case many[key] != nil:
		*many[key] = append(*many[key], value)
	case key == "also":
		c.also = strings.Split(value, ", ")
	case key == "releases":
		from, to, ok := strings.Cut(" "+value+" ", " to ")
		if !ok {
			return fmt.Errorf("releases %q: want FROM to TO", value)
		}
		c.from, c.to = boundOf(from), boundOf(to)
	default:
		return fmt.Errorf("%q: not one of claim, says, releases, also, file, function, has, lacks, comment, source", key)
	}
	return nil
}

func boundOf(s string) bound {
	release, open := strings.CutPrefix(strings.TrimSpace(s), "?")
	return bound{release, open}
}

// releases is what the table says of them.
func (c *claim) releases() string {
	switch {
	case c.from.release == "":
		return "to " + c.to.release
	case c.to.release == "":
		return "since " + c.from.release
	}
	return c.from.release + " to " + c.to.release
}

func claims(t *testing.T) []claim {
	t.Helper()
	all, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTable: each claim has a name of its own, a place, something to look for and a source.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range claims(t) {
		if seen[c.name] || c.says == "" || c.file == "" || c.source == "" || len(c.has)+len(c.lacks)+len(c.comment) == 0 ||
			c.from == c.to {
			t.Errorf("%+v", c)
		}
		seen[c.name] = true
	}
	for text, want := range map[string]string{
		"claim: a\nreleases: 5.6": `releases "5.6": want FROM to TO`, "claim: a\nsaid: b": `"said": not one of`,
		"claim: a\nhas:": "has: nothing is given",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
