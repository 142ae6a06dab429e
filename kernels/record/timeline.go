// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"io"

	"github.com/textpoke/textpoke/results/perfetto"
)

// stepTime is how far apart steps are on a timeline, in nanoseconds: their order is known, and no time.
const stepTime = 1000

// ends are the steps that end what another one has begun.
var ends = map[Kind]bool{End: true, Done: true, Leave: true, Pass: true, Resume: true, Go: true, Elapsed: true}

// Timeline writes a recording for ui.perfetto.dev: a track for each CPU, whose time is the number of the step.
func (r *Recording) Timeline(to io.Writer) error {
	w := perfetto.NewWriter(to, 0)
	tracks, open := make([]perfetto.Track, r.CPUs), make([]int, r.CPUs)
	for cpu := range tracks {
		tracks[cpu] = w.Track(perfetto.About{Name: fmt.Sprintf("CPU %d", cpu), Rank: cpu})
	}
	for i := range r.Steps {
		s, now := &r.Steps[i], int64(i+1)*stepTime
		name := fmt.Sprintf("%s %s", s.Kind, s.Name)
		if s.At != 0 {
			name = fmt.Sprintf("%s %#x % x", s.Kind, s.At, s.New)
		}
		switch {
		case ends[s.Kind] && open[s.CPU] > 0:
			w.End(tracks[s.CPU], now)
			open[s.CPU]--
		case s.Kind == Begin || s.Kind == Round || s.Kind == Trap || s.Kind == Stop || s.Kind == Stand || s.Kind == Grace:
			w.Begin(tracks[s.CPU], name, now, perfetto.Link{})
			open[s.CPU]++
		default:
			w.Instant(tracks[s.CPU], name, now, perfetto.Link{})
		}
	}
	for cpu, n := range open {
		for range n {
			w.End(tracks[cpu], int64(len(r.Steps)+1)*stepTime)
		}
	}
	return w.Close()
}
