// SPDX-License-Identifier: Apache-2.0

package fprobe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/published"
)

// What --add can be asked to add.
const (
	asTime    = "time"
	asPercent = "percent"
)

// extra is by how much a hit lengthens one turn of the bench, as a share of the turn
// without a program: throughput that falls by p % means time x 1/(1 - p/100).
func extra(h published.Hit) float64 { return h.Slowdown() - 1 }

// sum is mechanisms attached together, when each costs what it costs alone.
type sum struct {
	Names []string
	extra float64
}

// Slowdown is the time of a turn over that without a program.
func (s *sum) Slowdown() float64 { return 1 + s.extra }

// Percent is the hit that such an extra time is.
func (s *sum) Percent() float64 { return 100 * (1 - 1/(1+s.extra)) }

// addUp adds the costs of the mechanisms that are asked for; nil for none.
func (c *Config) addUp(hits []published.Hit) (*sum, error) {
	var chosen []published.Hit
	for _, name := range c.Add {
		i := slices.IndexFunc(hits, func(h published.Hit) bool { return h.Mechanism == name })
		if i < 0 {
			var valid []string
			for _, h := range hits {
				valid = append(valid, h.Mechanism)
			}
			return nil, fmt.Errorf("--add %q: %w", name, spelling.NotOneOf(name, valid))
		}
		chosen = append(chosen, hits[i])
	}
	if c.AddAs == asPercent {
		return nil, refusal(chosen)
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	s := &sum{Names: c.Add}
	for _, h := range chosen {
		s.extra += extra(h)
	}
	return s, nil
}

// refusal says why per cents of throughput are not added.
func refusal(chosen []published.Hit) error {
	const why = "--add-as percent: hits are shares of a throughput, and each would be a share of what the others " +
		"left: they do not add"
	if len(chosen) < 2 {
		return fmt.Errorf("%s; add times, time x 1/(1 - p/100)", why)
	}
	var terms []string
	total, s := 0.0, sum{}
	for _, h := range chosen {
		terms = append(terms, fmt.Sprintf("%g", h.Percent))
		total, s.extra = total+h.Percent, s.extra+extra(h)
	}
	return fmt.Errorf("%s; %s would be %.1f %%, and times make it %.1f %% (time x %.3f)", why, strings.Join(terms, " + "),
		total, s.Percent(), 1+s.extra)
}
