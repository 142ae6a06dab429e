// SPDX-License-Identifier: Apache-2.0

// Package timeline records what an engine does as a timeline that ui.perfetto.dev
// opens: a track for the patcher with the steps of its plan, one for each CPU with
// what interrupts it, an arrow from every round to every delivery, and counters.
//
// Engines tell a Recorder in their own terms, when something is over. Several runs
// go into one file, one after the other.
package timeline

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results/perfetto"
)

// Recorder records runs. All methods may be called at the same time by many, and
// do nothing on a nil Recorder. Times are nanoseconds of the run's own clock.
//
// Events may come in any order across CPUs; those of one CPU, and the patcher's,
// come in the order in which they end. The steps of a plan do not overlap. What
// does not fit into that is moved so that time does not go back on a track, and
// never left out.
type Recorder struct {
	mu    sync.Mutex
	w     *perfetto.Writer
	roles []cpus.Role
	runs  int
	base  int64 // where the run's time 0 is in the file

	patcher   line
	cpus      []line
	group     perfetto.Track
	waiting   []int // CPUs whose lines hold something
	held      int
	traps     counter
	fill      counter
	trapTimes []int64 // of traps that are not counted in the file yet
	rounds    map[uint64]arrows
}

// counter is a track of values.
type counter struct {
	track       perfetto.Track
	last, value int64
}

// arrows is what is left of a round's.
type arrows struct {
	next perfetto.Flow
	left int
	at   int64
}

// New begins a timeline of machines with these roles, of at most limit bytes; 0 for no limit. Later
// events are counted; see Dropped.
func New(w io.Writer, roles []cpus.Role, limit int64) *Recorder {
	return &Recorder{w: perfetto.NewWriter(w, limit), roles: roles, rounds: map[uint64]arrows{}}
}

// Listener is the recorder as who listens to a machine; nil where it is.
func (r *Recorder) Listener() *cpus.Listener {
	if r == nil {
		return nil
	}
	return &cpus.Listener{Round: r.Round, Interrupt: r.Interrupt, Trap: r.Trap, Step: r.Step, Batch: r.Batch}
}

// locked calls f while no other goroutine uses the recorder; it does nothing without a recorder.
func (r *Recorder) locked(f func()) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// told is locked for an event, which is left out where there is no room.
func (r *Recorder) told(f func()) {
	r.locked(func() {
		if r.open() {
			f()
		}
	})
}

// Machine says that the runs that follow are on a machine with other roles.
func (r *Recorder) Machine(roles []cpus.Role) { r.locked(func() { r.roles = roles }) }

// runGap is what lies between two runs at least, in nanoseconds.
const runGap = 1000

// Run begins a run: a group of tracks of that name. Its time 0 is at that
// nanosecond of the file, or behind the last event of the runs before it, if that
// is later. Nothing of an earlier run may be told after that.
func (r *Recorder) Run(name string, at int64) { r.locked(func() { r.run(name, at) }) }

func (r *Recorder) run(name string, at int64) {
	r.giveUp()
	r.flush(math.MaxInt64)
	r.base = max(at, 0)
	if r.runs > 0 {
		r.base = max(at, r.w.Last()+runGap)
	}
	r.runs++
	r.group = r.w.Track(perfetto.About{Name: name, Rank: r.runs})
	track := func(a perfetto.About) perfetto.Track {
		a.Parent = r.group
		return r.w.Track(a)
	}
	r.patcher = line{track: track(perfetto.About{Name: "patcher", Rank: 1}), last: r.base}
	r.traps = counter{track: track(perfetto.About{Name: "traps", Rank: 2, Counter: true}), last: r.base}
	r.fill = counter{track: track(perfetto.About{Name: "batch fill", Rank: 3, Counter: true, Unit: "patches"}),
		last: r.base}
	r.cpus = r.cpus[:0]
	for cpu := range r.roles {
		r.addCPU(cpu)
	}
}

// addCPU adds a CPU's line. A track without events is not shown, and a CPU that
// nothing interrupts should be: each begins with its role.
func (r *Recorder) addCPU(cpu int) {
	role := cpus.Busy
	if cpu < len(r.roles) {
		role = r.roles[cpu]
	}
	l := line{
		track: r.w.Track(perfetto.About{Name: fmt.Sprintf("CPU %d (%s)", cpu, role), Parent: r.group, Rank: 4 + cpu}),
		last:  r.base,
	}
	r.w.Instant(l.track, role.String(), r.base, perfetto.Link{})
	r.cpus = append(r.cpus, l)
}

// open begins a run that has no name if none was begun, and tells whether there
// is room left.
func (r *Recorder) open() bool {
	if r.runs == 0 {
		r.run("run", 0)
	}
	if r.w.Dropped() > 0 {
		r.w.LeaveOut()
		return false
	}
	return true
}

// hold keeps a slice on a CPU's line until the slice around it is known.
func (r *Recorder) hold(cpu int, s slice) {
	for cpu >= len(r.cpus) {
		r.addCPU(len(r.cpus))
	}
	l := &r.cpus[cpu]
	if len(l.held) == 0 {
		r.waiting = append(r.waiting, cpu)
	}
	l.hold(s)
	if r.held++; r.held > holdAtMost {
		r.flush(s.from)
	}
}

// When a step ends, slices are written if more than holdAbout are held. In a step
// in which more than holdAtMost come they are written before, and the step's slice
// begins behind those of its CPU.
const (
	holdAbout  = 1 << 10
	holdAtMost = 1 << 16
)

// Step records a step of the plan, which the patcher made on that CPU: a slice on
// both tracks.
func (r *Recorder) Step(cpu int, name string, from, until int64) {
	r.told(func() {
		s := slice{name: name, from: r.base + from, until: r.base + until}
		r.patcher.hold(s)
		r.hold(cpu, s)
		// No later step begins before this one has ended: slices that have begun by
		// then can be part of none.
		if r.held > holdAbout {
			r.flush(s.until)
		}
	})
}

// Round records that the patcher sends a round; targets arrows leave there.
func (r *Recorder) Round(id uint64, from int, cause cpus.Cause, targets int, at int64) {
	r.told(func() {
		at := max(r.base+at, r.patcher.last) // its arrows must not arrive before it
		s := slice{name: cause.String(), from: at, until: at, instant: true}
		if targets > 0 {
			first, ok := r.w.Flows(targets)
			if !ok {
				return
			}
			s.link = perfetto.Link{First: first, Count: targets}
			r.rounds[id] = arrows{next: first, left: targets, at: s.from}
		}
		r.patcher.hold(s)
	})
}

// Interrupt records the delivery of a round to one of its targets: an arrow of
// that round arrives.
func (r *Recorder) Interrupt(id uint64, cpu int, cause cpus.Cause, from, until int64) {
	r.locked(func() {
		s := slice{name: cause.String(), from: r.base + from, until: r.base + until}
		a, ok := r.rounds[id]
		switch {
		case ok: // there is room for it: see Round
			s.link.Arrives, s.from = a.next, max(s.from, a.at+1) // an arrow points forward
			if a.next, a.left = a.next+1, a.left-1; a.left == 0 {
				delete(r.rounds, id)
			} else {
				r.rounds[id] = a
			}
		case !r.open():
			return
		}
		r.hold(cpu, s)
	})
}

// Trap records that a CPU ran into a breakpoint; hit: its handler found the entry.
func (r *Recorder) Trap(cpu int, from, until int64, hit bool) {
	r.told(func() {
		s := slice{name: "trap", from: r.base + from, until: r.base + until}
		if !hit {
			s.name = "trap without entry"
		}
		r.hold(cpu, s)
		r.trapTimes = append(r.trapTimes, s.from)
	})
}

// Batch records how many patches the published batch has, 0 for no batch.
func (r *Recorder) Batch(at int64, fill int) {
	r.told(func() { r.fill.set(r.w, r.base+at, int64(fill)) })
}

func (c *counter) set(w *perfetto.Writer, at, value int64) {
	c.last, c.value = max(c.last, at), value
	w.Count(c.track, value, c.last)
}

// flush writes what began before that time.
func (r *Recorder) flush(before int64) {
	r.patcher.write(r.w, before)
	waiting := r.waiting[:0]
	r.held = 0
	for _, cpu := range r.waiting {
		l := &r.cpus[cpu]
		l.write(r.w, before)
		if n := len(l.held); n > 0 {
			waiting = append(waiting, cpu)
			r.held += n
		}
	}
	r.waiting = waiting
	slices.Sort(r.trapTimes)
	n := 0
	for n < len(r.trapTimes) && r.trapTimes[n] < before {
		r.traps.set(r.w, r.trapTimes[n], r.traps.value+1)
		n++
	}
	r.trapTimes = slices.Delete(r.trapTimes, 0, n)
}

// undelivered is the place of arrows of rounds that no CPU will take any more: of a run that was
// cut short in the middle of one.
const undelivered = "not delivered"

// giveUp lets the arrows arrive that are still on their way.
func (r *Recorder) giveUp() {
	for _, id := range slices.Sorted(maps.Keys(r.rounds)) {
		a := r.rounds[id]
		for i := range a.left {
			at := max(a.at+1, r.patcher.last)
			r.patcher.hold(slice{name: undelivered, from: at, until: at, instant: true,
				link: perfetto.Link{Arrives: a.next + perfetto.Flow(i)}})
		}
	}
	clear(r.rounds)
}

// Dropped is how many events were left out because the limit was reached.
func (r *Recorder) Dropped() (n uint64) {
	r.locked(func() { n = r.w.Dropped() })
	return n
}

// Close writes the rest. Nothing may be told after that.
func (r *Recorder) Close() (err error) {
	r.locked(func() {
		r.giveUp()
		r.flush(math.MaxInt64)
		err = r.w.Close()
	})
	return err
}

// line is a track, and the slices that are not written to it yet. A slice is told when it has
// ended, after those that it encloses; in the file it comes before them.
type line struct {
	track perfetto.Track
	last  int64   // time of the last event written
	held  []slice // in order of their beginning, an enclosing one first
	open  []int64 // ends of the slices being written
}

// slice is a slice or an instant.
type slice struct {
	name        string
	from, until int64
	instant     bool
	link        perfetto.Link
}

// hold keeps a slice: in front of what began no earlier, which it encloses.
func (l *line) hold(s slice) {
	i := len(l.held)
	for i > 0 && l.held[i-1].from >= s.from {
		i--
	}
	l.held = slices.Insert(l.held, i, s)
}

// write writes the slices that began before that time, and those that they enclose.
func (l *line) write(w *perfetto.Writer, before int64) {
	n := 0
	for n < len(l.held) && l.held[n].from < before {
		s := &l.held[n]
		from := max(s.from, l.last)
		l.close(w, from)
		if s.instant {
			w.Instant(l.track, s.name, from, s.link)
		} else if w.Begin(l.track, s.name, from, s.link) {
			until := max(s.until, from)
			if k := len(l.open); k > 0 {
				until = min(until, l.open[k-1])
			}
			l.open = append(l.open, until)
			before = max(before, until)
		}
		l.last = from
		n++
	}
	for k := len(l.open); k > 0; k-- {
		l.end(w)
	}
	l.held = slices.Delete(l.held, 0, n)
}

// close ends the open slices that are over at that time.
func (l *line) close(w *perfetto.Writer, at int64) {
	for k := len(l.open); k > 0 && l.open[k-1] <= at; k-- {
		l.end(w)
	}
}

func (l *line) end(w *perfetto.Writer) {
	k := len(l.open) - 1
	w.End(l.track, l.open[k])
	l.last = l.open[k]
	l.open = l.open[:k]
}
