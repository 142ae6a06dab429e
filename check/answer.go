// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// Answer is the verdict in a line, for people.
func (r *VerdictRow) Answer() string {
	switch r.Verdict {
	case explore.Unsafe:
		return fmt.Sprintf("UNSAFE: %s in %s", r.Violation.Property, several(r.Depth, "step"))
	case explore.Safe:
		return fmt.Sprintf("SAFE for %s, %s (%s)", machineOf(r.Model.Roles), several(len(r.Model.Code.Sites), "site"),
			several(int(r.States), "state"))
	}
	if r.Verdict == explore.NotFound {
		return fmt.Sprintf("NOT FOUND: %s of %s in all have met nothing, which proves nothing",
			several(int(r.Swarm), "search"), several(int(r.States), "state"))
	}
	return fmt.Sprintf("INCOMPLETE: nothing breaks in the first %s; %s", several(int(r.States), "state"), r.Cut)
}

// swarmed says what a swarm that has met nothing was about.
func (r *VerdictRow) swarmed() string {
	return fmt.Sprintf("%s went as deep as %s and met nothing: that proves nothing: %s",
		several(int(r.Swarm), "search"), several(r.Depth, "step"), Command(r.Short()))
}

// CutShort says how far an incomplete search has got, and what it was about.
func (r *VerdictRow) CutShort() string {
	if r.Verdict == explore.NotFound {
		return r.swarmed()
	}
	return fmt.Sprintf("nothing is known beyond %s and %s: %s: %s", several(r.Depth-1, "step"),
		several(int(r.States), "state"), r.Cut, Command(r.Short()))
}

// Answers is what several verdicts come to, in a line.
func Answers(rows []VerdictRow) string {
	count := map[explore.Verdict]int{}
	for i := range rows {
		count[rows[i].Verdict]++
	}
	var parts []string
	for _, v := range []explore.Verdict{explore.Unsafe, explore.Safe, explore.NotFound, explore.Incomplete} {
		if n := count[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToUpper(string(v))))
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(" of %s", several(len(rows), "question"))
}

// machineOf is a machine in words: how many CPUs, and which, unless all are busy.
func machineOf(roles []cpus.Role) string {
	text := cpus.FormatRoles(roles)
	if strings.Contains(text, "=") {
		return several(len(roles), "CPU") + " (" + text + ")"
	}
	return several(len(roles), "CPU")
}

func several(n int, what string) string {
	if n != 1 && strings.HasSuffix(what, "ch") {
		what += "es"
	} else if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
