// SPDX-License-Identifier: Apache-2.0

// Package audit tells which known defects of code patching a kernel's image has. It looks at
// the calls and accesses of the code, and executes some of it; the release decides nothing.
// Each rule belongs to a case of the museum or to a finding, and has its name.
package audit

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/results"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Verdict is whether a kernel has a defect.
type Verdict string

// The verdicts. A kernel that lacks the code that a defect is in has it mended.
const (
	Has        Verdict = "has"
	Mended     Verdict = "mended"
	CannotTell Verdict = "cannot-tell"
)

// Finding is what a rule says of a kernel.
type Finding struct {
	Release, Arch, Defect string
	Verdict               Verdict
	Evidence              string // the code that shows it
}

//go:embed defects.rules
var text string

// Rules are all rules, by the names of cases in the museum, or of findings.
var Rules = image.MustRules(text)

// Of holds a kernel against every rule for its architecture.
func Of(k *image.Kernel) (out []Finding) {
	mechanisms := k.Answers()
	for i := range Rules {
		r := &Rules[i]
		if r.Arch != "" && r.Arch != k.Arch.Name {
			continue
		}
		a, _ := k.Judge(r, mechanisms)
		out = append(out, Finding{k.Release, k.Arch.Name, r.Name, Verdict(a.Value), a.Evidence})
	}
	return out
}

// Answer is what the findings of so many kernels come to, in a line. It tells whether none of them has a known defect.
func Answer(all []Finding, kernels int) (line string, clean bool) {
	var names []string
	ill := map[string]bool{}
	unknown := 0
	for _, f := range all {
		switch f.Verdict {
		case Has:
			names = append(names, f.Defect)
			ill[f.Release+" "+f.Arch] = true
		case CannotTell:
			unknown++
		}
	}
	slices.Sort(names)
	line = fmt.Sprintf("ANSWER: kernels with a known defect: %d of %d", len(ill), kernels)
	if len(names) > 0 {
		line += " (" + strings.Join(slices.Compact(names), ", ") + ")"
	}
	if unknown > 0 {
		line += fmt.Sprintf("; verdicts that the code does not tell: %d", unknown)
	}
	return line, len(names) == 0
}

// Columns are those of findings.
var Columns = results.Declare[Finding](declared, "rows", nil)

// RuleColumns are those of rules.
var RuleColumns = results.Declare[image.Rule](declared, "rule", nil)
