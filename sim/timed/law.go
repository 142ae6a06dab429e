// SPDX-License-Identifier: Apache-2.0

package timed

// law is weights to draw from.
type law struct {
	upTo  []float64 // weight of all up to this one
	guide []int32   // by part of the whole weight: the first that reaches up to there; empty until it is needed
}

// clear forgets all weights, add puts one behind the others.
func (l *law) clear() { l.upTo, l.guide = l.upTo[:0], l.guide[:0] }

func (l *law) add(weight float64) {
	l.upTo, l.guide = append(l.upTo, l.total()+weight), l.guide[:0]
}

// total is the sum of the weights.
func (l *law) total() float64 {
	if len(l.upTo) == 0 {
		return 0
	}
	return l.upTo[len(l.upTo)-1]
}

// at is the first whose sum reaches x, or the last; there must be one. A table of as
// many parts of the whole says where to look, so that two comparisons are enough on
// average (Chen and Asau, "On generating random variates from an empirical
// distribution", AIIE Transactions 6, 1974).
func (l *law) at(x float64) int {
	n := len(l.upTo)
	part := l.total() / float64(n)
	if len(l.guide) == 0 {
		i := 0
		for k := range n {
			for i < n-1 && l.upTo[i] < float64(k)*part {
				i++
			}
			l.guide = append(l.guide, int32(i))
		}
	}
	i := int(l.guide[max(min(int(x/part), n-1), 0)])
	for i > 0 && l.upTo[i-1] >= x { // where rounding has gone beyond it
		i--
	}
	for i < n-1 && l.upTo[i] < x {
		i++
	}
	return i
}
