// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Nearest is the rounds that counts are nearest to, and the interrupts that these leave over.
type Nearest struct {
	Rounds int64
	Sent   []int64 // how many of the rounds each CPU sent
	Left   []int64 // the part of each CPU's count that no round explains
}

// said is the rounds, their senders and the rest, in words.
func (n *Nearest) said(cpus []int) string {
	return fmt.Sprintf("%s, sent by %s; left over: %s", spelling.Several(int(n.Rounds), "round"), senders(n.Sent, n.Rounds, cpus),
		leftOver(n.Left, cpus))
}

// senders is how many CPUs sent a round or more.
func (n *Nearest) senders() int {
	return spelling.Count(n.Sent, func(sent int64) bool { return sent > 0 })
}

// strays is how many interrupts are left over.
func (n *Nearest) strays() int64 { return spelling.Sum(n.Left) }

const (
	// leftShare is the share of all interrupts, one in so many, that may be left over
	// for the sake of fewer senders: a CPU that counted a few less than the others may
	// have sent a round, or may have been spared by what else interrupts.
	leftShare = 20
	// mostCount bounds counts, so that their sums fit.
	mostCount = 1 << 40
)

// Near finds the rounds that leave the least over, where other interrupts have
// been counted among those of rounds. With N CPUs, R rounds of which CPU c sent s_c,
// and b_c other interrupts,
//
//	d_c = R - s_c + b_c,   sum of s_c = R,   s_c and b_c are not below 0.
//
// For a given R the sum of all b_c is that of all d_c less (N-1)R: the more rounds,
// the less is left over. R rounds are possible if the sum of min(d_c, R) is (N-1)R
// at least; that sum less (N-1)R is concave in R and 0 at 0, so that all R are
// possible up to a largest one. With k senders at most, all but the k smallest d_c are
// R at least. Near takes the fewest senders that leave no more than a twentieth of
// the interrupts over, or, if none do, the rounds that leave the least; and, of what
// several senders may have sent, as much as possible to the one that sent most.
//
// It fails for fewer than three CPUs, as any counts of two fit, for counts below 0, and
// where more than half of the interrupts would be left over.
func Near(delta []int64) (Nearest, bool) {
	if len(delta) < 3 || slices.Min(delta) < 0 || slices.Max(delta) > mostCount {
		return Nearest{}, false
	}
	sorted := slices.Sorted(slices.Values(delta))
	all := spelling.Sum(sorted)
	receivers := int64(len(delta) - 1)
	rounds := mostRounds(sorted)
	for k := 1; k < len(sorted); k++ {
		if r := min(rounds, sorted[k]); leftShare*(all-receivers*r) <= all {
			rounds = r
			break
		}
	}
	if 2*(all-receivers*rounds) > all {
		return Nearest{}, false
	}
	return nearest(delta, rounds), true
}

// mostRounds is the largest number of rounds that is possible.
func mostRounds(delta []int64) int64 {
	lo, hi := int64(0), slices.Max(delta)
	for lo < hi {
		r, sum := lo+(hi-lo+1)/2, int64(0)
		for _, d := range delta {
			sum += min(d, r)
		}
		if sum >= int64(len(delta)-1)*r {
			lo = r
		} else {
			hi = r - 1
		}
	}
	return lo
}

// nearest shares rounds, which are possible, among senders.
func nearest(delta []int64, rounds int64) Nearest {
	n := Nearest{rounds, make([]int64, len(delta)), make([]int64, len(delta))}
	rest, first := rounds, 0
	for i, d := range delta {
		n.Sent[i] = max(0, rounds-d)
		rest -= n.Sent[i]
		if n.Sent[i] > n.Sent[first] {
			first = i
		}
	}
	n.Sent[first] += rest
	for i, d := range delta {
		n.Left[i] = d - rounds + n.Sent[i]
	}
	return n
}

// mostNamed is how many CPUs a list names, so that it fits a line on a machine of
// hundreds.
const mostNamed = 4

// named lists the CPUs that have any of some counts, those with the most first.
func named(counts []int64, cpus []int, one func(n int64, where string) string) string {
	type count struct {
		cpu int
		n   int64
	}
	var list []count
	var rest int64
	for i, n := range counts {
		if n > 0 {
			list, rest = append(list, count{cpus[i], n}), rest+n
		}
	}
	slices.SortStableFunc(list, func(a, b count) int { return cmp.Compare(b.n, a.n) })
	var parts []string
	for i, c := range list {
		if i == mostNamed && len(list) > mostNamed+1 {
			parts = append(parts, one(rest, fmt.Sprintf("%d more CPUs", len(list)-i)))
			break
		}
		rest -= c.n
		parts = append(parts, one(c.n, fmt.Sprintf("CPU %d", c.cpu)))
	}
	return strings.Join(parts, ", ")
}

// senders is named for who sent rounds: "CPU 2", or "CPU 2 (400), CPU 3 (257)".
func senders(sent []int64, rounds int64, cpus []int) string {
	return named(sent, cpus, func(n int64, where string) string {
		if n == rounds {
			return where
		}
		return fmt.Sprintf("%s (%d)", where, n)
	})
}

// leftOver is named for interrupts: "1 on CPU 3".
func leftOver(left []int64, cpus []int) string {
	return named(left, cpus, func(n int64, where string) string { return fmt.Sprintf("%d on %s", n, where) })
}

// Subtract takes an idle reading's growth off the deltas of rows that both have, CPU by CPU, and
// never below 0.
func Subtract(deltas, idle []RowDelta) []RowDelta {
	out := slices.Clone(deltas)
	for i, d := range out {
		at := slices.IndexFunc(idle, func(b RowDelta) bool { return b.Name == d.Name })
		if at < 0 || d.Delta == nil || len(idle[at].Delta) != len(d.Delta) {
			continue
		}
		out[i].Delta = make([]int64, len(d.Delta))
		for c, n := range d.Delta {
			out[i].Delta[c] = max(min(n, 0), n-max(0, idle[at].Delta[c]))
		}
	}
	return out
}
