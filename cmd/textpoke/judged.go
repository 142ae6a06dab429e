// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// judged is a table with an answer above it, which its rows are tallied for.
type judged struct {
	*common
	sim.Tally
	out output
}

// newJudged is a table whose headline is what the rows come to, beside the budget.
func newJudged(c *common, table results.Table, limits sim.Budget) *judged {
	return &judged{common: c, Tally: sim.Tally{Limits: limits}, out: output{c: c, table: table}}
}

// headed puts the answer above the table.
func (j *judged) headed(headline func() string) {
	j.out.above = func() string { return j.painted(j.Answer(headline())) }
}

// verdict prints what is wrong where people look, below the table, or on stderr
// when stdout is for scripts; and says what that makes of the answer.
func (j *judged) verdict(err error) error {
	for _, fault := range j.Faults() {
		fmt.Fprint(j.beside(), j.narrowed(j.asTyped(fault)))
	}
	err = errors.Join(err, j.Unknown)
	switch {
	case !j.No() || errors.Is(err, errNo):
		return err
	case err != nil:
		return noError{err}
	}
	return errNo
}
