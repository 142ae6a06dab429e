// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"slices"

	"github.com/textpoke/textpoke/results"
)

// Stack is a stack of callers, and how often it interrupted others in all repetitions.
type Stack struct {
	Caller
	Times int
}

// Stacks are all stacks of all actions, as they first occurred.
func (m *Measurement) Stacks() (out []Stack) {
	for _, c := range m.Callers {
		i := slices.IndexFunc(out, func(s Stack) bool { return s.Caller == c })
		if i < 0 {
			i, out = len(out), append(out, Stack{Caller: c})
		}
		out[i].Times++
	}
	return out
}

// CallerColumns are those of stacks.
var CallerColumns = results.Declare[Stack](declared, "caller", nil)
