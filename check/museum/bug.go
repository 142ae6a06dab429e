// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Bug is one defect that a kernel has had.
type Bug struct {
	Name     string // short, as --bug spells it
	Number   string // in the catalogue; a report with two sides has two exhibits; "" for a case
	Title    string // one line
	Versions string // of Linux that have it
	Source   string // the report or the commit: title, who, when
	Story    string // who does what, and what breaks
	Fix      string // what upstream did about it, and in which commit

	// Want is what breaks, in the way that the report says.
	Want cpus.Property

	// Otherwise is what breaks instead where fetches are as one of these models has them.
	Otherwise map[cpus.Fetch]cpus.Property
	// Rests are the fetch models that the fix relies on; without it, it holds with all.
	Rests []cpus.Fetch

	// About is what it is about beside how text is changed, or what it is if not a bug:
	// one of the words of kinds.
	About string

	file     string         // that it is told in
	sections []inputs.Block // its machine, before and after the fix
}

// Model is the machine that the bug is shown on, ready to be explored; fixed:
// with the upstream fix as the only change.
func (b *Bug) Model(fixed bool) (*explore.Model, error) {
	m, err := b.laidOut(fixed)
	if err != nil {
		return nil, err
	}
	if err := m.Prepare(); err != nil {
		return nil, fmt.Errorf("bug %s: %w", b.Name, err)
	}
	return m, nil
}

//go:embed cases/*.case
var cases embed.FS

// all reads the cases, in the order of their files.
var all = sync.OnceValue(func() []Bug { return inputs.Shipped(cases, "cases", read) })

// All are the bugs, in the catalogue's order, and behind them the cases.
func All() []Bug { return slices.Clone(all()) }

// Kind is the bug's kind in lists.
func (b *Bug) Kind() string {
	if b.Number == "" && b.About == aboutTracers {
		return "tracer case"
	}
	return kinds[b.About]
}

// Named finds a bug or a case.
func Named(name string) (*Bug, error) {
	b, err := spelling.Find("bug", name, All(), func(b Bug) string { return b.Name })
	return &b, err
}

// Omitted is a bug that cannot be told in this machine's words.
type Omitted struct {
	Name   string
	Number string // in the catalogue
	Title  string // what it was, with its source
	Reason string // what the machine does not have
}

//go:embed omitted.json
var omittedText []byte

// OmittedBugs are those of the catalogue that are no exhibits.
func OmittedBugs() (list []Omitted) {
	if err := json.Unmarshal(omittedText, &list); err != nil {
		panic(fmt.Sprintf("embedded omitted.json: %v", err)) // it is part of the program
	}
	return list
}
