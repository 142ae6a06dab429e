// SPDX-License-Identifier: Apache-2.0

package coexist

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/tracers"
)

//go:embed cases.csv
var casesText string

// documented is a case that the kernel, or a proposal, documents.
type documented struct {
	Arch          string // "" for all
	First, Second string
	Errno         tracers.Errno
	Source        string
}

var cases = mustRead(casesText)

// mustRead reads the cases that are built in.
func mustRead(text string) []documented {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("cases.csv: %v", err)) // a mistake of ours
	}
	var out []documented
	for _, l := range lines[1:] {
		n, ok := tracers.ParseErrno(l[3])
		if !ok {
			panic(fmt.Sprintf("cases.csv: errno %q", l[3])) // a mistake of ours
		}
		out = append(out, documented{l[0], l[1], l[2], n, l[4]})
	}
	return out
}

// lookUp finds what is documented of a pair; nil if nothing is.
func lookUp(arch, first, second string) *documented {
	return experiments.Find(cases, func(c *documented) bool {
		return c.First == first && c.Second == second && (c.Arch == "" || c.Arch == arch)
	})
}
