// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/textpoke/textpoke/internal/spelling"
)

// beatEvery is the time between two messages of a worker that say that it is there, and which points it does:
// a second by default.
func (o *Options) beatEvery() time.Duration { return o.AckWait / 30 }

// beat is a worker's report about itself. It is for people: nothing rests on it.
type beat struct {
	Worker  string    `json:"worker"`
	Program string    `json:"program"`
	Ends    bool      `json:"ends,omitempty"`
	Trouble trouble   `json:"trouble"`
	Busy    []begun   `json:"busy,omitempty"`
	at      time.Time // when it came
}

// trouble is why a worker could not do a point of a run.
type trouble struct {
	Run string `json:"run,omitempty"`
	Why string `json:"why,omitempty"`
}

// begun is a point that a worker is at.
type begun struct {
	Run   string `json:"run"`
	Key   string `json:"key"`
	Nanos int64  `json:"nanos"` // since it has begun
}

// Slow is a point that takes long, or took.
type Slow struct {
	Key, Worker string
	Took        time.Duration
}

// State is how far a run has got.
type State struct {
	Done, Points int
	Found        int      // of Done, those that were there from before
	Workers      []string // that do points of this program
	Refused      []string // workers of other programs, which take nothing of this one
	Trouble      []string // what workers say that they could not do
	Slowest      Slow     // of the points that are done
	Longest      Slow     // of those that workers are at
}

// workers are the workers that have been heard of.
type workers struct {
	all     map[string]beat // by name
	seen    map[string]bool // of this program, ever
	refused map[string]bool
	trouble map[string]bool
}

// hear takes a worker's beat.
func (r *Rows) hear(m *nats.Msg) {
	var b beat
	if json.Unmarshal(m.Data, &b) != nil {
		return // of a later version
	}
	b.at = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case b.Program != r.run.Program:
		r.refuse(&b)
		return
	case b.Trouble.Run == r.id:
		r.workers.trouble[b.Worker+": "+b.Trouble.Why] = true
	}
	r.workers.seen[b.Worker] = true
	if r.workers.all[b.Worker] = b; b.Ends {
		delete(r.workers.all, b.Worker)
	}
}

// refuse notes a worker that takes nothing of this run, and tells it so, once.
func (r *Rows) refuse(b *beat) {
	if line := fmt.Sprintf("worker %s is textpoke %s, and takes nothing of what textpoke %s submits", b.Worker, b.Program,
		r.run.Program); !r.workers.refused[line] {
		r.workers.refused[line] = true
		_ = r.q.nc.Publish(refusedSubject(b.Worker), []byte(line)) // for people
	}
}

// State is the run's progress, and the workers that are at it.
func (r *Rows) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Points: len(r.keys), Found: r.found, Slowest: r.slowest, Refused: slices.Sorted(maps.Keys(r.workers.refused)),
		Trouble: slices.Sorted(maps.Keys(r.workers.trouble))}
	s.Done = spelling.Count(r.known, func(known bool) bool { return known })
	for name, b := range r.workers.all {
		if time.Since(b.at) > 5*r.q.beatEvery() { // it counts as gone
			continue
		}
		s.Workers = append(s.Workers, name)
		for _, p := range b.Busy {
			if took := time.Duration(p.Nanos); p.Run == r.id && took > s.Longest.Took {
				s.Longest = Slow{p.Key, name, took}
			}
		}
	}
	slices.Sort(s.Workers)
	return s
}

// Seen is how many workers have been heard of, those that are gone among them.
func (r *Rows) Seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.workers.seen)
}

// refusedSubject is where a worker is told that it cannot help.
func refusedSubject(worker string) string { return "textpoke.refused." + token(worker) }
