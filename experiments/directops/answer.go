// SPDX-License-Identifier: Apache-2.0

package directops

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
	Attached []*attachRow
	times    []published.AttachTime
}

// Slow is the first pair on the slow path, where the difference is largest; nil if
// there is none.
func (a *answer) Slow() *pair {
	return a.first(func(p *pair) bool { return p.Each.slow })
}

func (a *answer) first(holds func(*pair) bool) *pair { return experiments.Find(a.Pairs(), holds) }

// Fast is the fast path in branch range of the same instruction set.
func (a *answer) Fast(like *pair) *pair {
	return a.first(func(p *pair) bool { return p.Each.arch == like.Each.arch && p.Each.setup == setup{} })
}

// Far are the pairs on the fast path out of branch range.
func (a *answer) Far() []pair {
	return experiments.Where(a.Pairs(), func(p pair) bool { return p.Each.far && !p.Each.slow })
}

// pair is the same calls with an ops each and with one for all.
type pair struct{ Each, One *row }

// Pairs are those with the most trampolines, in the order of rows.
func (a *answer) Pairs() (out []pair) {
	most := 0
	for _, r := range a.Rows {
		most = max(most, r.Trampolines)
	}
	for _, each := range a.Rows {
		if each.setup.one || each.Trampolines != most {
			continue
		}
		for _, one := range a.Rows {
			want := each.setup
			want.one = true
			if one.arch == each.arch && one.setup == want && one.Trampolines == most {
				out = append(out, pair{each, one})
			}
		}
	}
	return out
}

// statedWait is what a wait for all tasks takes, as the author of the
// measurements says: about 100 ms (bpf-next, 2026-01).
const statedWait = 0.1

// Comparisons are what one ops saves when a program is attached to some functions and
// detached again: a wait each.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	for _, with := range a.times {
		for _, without := range a.times {
			if with.Functions != without.Functions || !strings.HasSuffix(with.Case, "per-trampoline ops") ||
				!strings.HasSuffix(without.Case, "single direct ops") {
				continue
			}
			out = append(out, experiments.Comparison{
				What: fmt.Sprintf("seconds that one ops saves for %d functions, and a wait of %g ms for each", with.Functions,
					1e3*statedWait),
				Published: with.AttachS - without.AttachS, Ours: float64(with.Functions) * statedWait, Source: with.Source,
			})
		}
	}
	return out
}
