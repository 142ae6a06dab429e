// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/results"
)

// Verdict is whether a kernel has a defect.
type Verdict string

// The verdicts. A kernel that lacks the code that a defect is in has it mended.
const (
	Has        Verdict = "has"
	Mended     Verdict = "mended"
	CannotTell Verdict = "cannot-tell"
)

// Rule is how one defect shows in a kernel's code.
type Rule struct {
	Defect string // the name of its case in the museum, or of its finding
	Arch   string // whose kernels may have it; "" for all
	Doc    string // what goes wrong
	judge  func(k *image.Kernel) (Verdict, string)
}

// Finding is what a rule says of a kernel.
type Finding struct {
	Release, Arch, Defect string
	Verdict               Verdict
	Evidence              string // the code that shows it
}

// Rules are all rules.
func Rules() []Rule { return slices.Clone(rules) }

// Of holds a kernel against every rule for its architecture.
func Of(k *image.Kernel) (out []Finding) {
	for _, r := range rules {
		if r.Arch != "" && r.Arch != k.Arch.Name {
			continue
		}
		verdict, evidence := r.judge(k)
		out = append(out, Finding{k.Release, k.Arch.Name, r.Defect, verdict, evidence})
	}
	return out
}

// Columns are those of findings.
var Columns = results.Columns[Finding]{
	{Name: "release", Doc: "as uname -r has it", Cell: func(f Finding) any { return f.Release }},
	{Name: "arch", Doc: "instruction set", Cell: func(f Finding) any { return f.Arch }},
	{Name: "defect", Doc: "the name of its case in the museum, or of its finding", Cell: func(f Finding) any { return f.Defect }},
	{Name: "verdict", Doc: "has, mended or cannot-tell", Cell: func(f Finding) any { return string(f.Verdict) }},
	{Name: "evidence", Doc: "the code that shows it", Cell: func(f Finding) any { return f.Evidence }},
}

// RuleColumns are those of rules.
var RuleColumns = results.Columns[Rule]{
	{Name: "defect", Doc: "its name", Cell: func(r Rule) any { return r.Defect }},
	{Name: "arch", Doc: "whose kernels may have it; empty for all", Cell: func(r Rule) any { return results.OrEmpty(r.Arch) }},
	{Name: "doc", Doc: "what goes wrong", Cell: func(r Rule) any { return r.Doc }},
}
