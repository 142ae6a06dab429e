// SPDX-License-Identifier: Apache-2.0

package force

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kind is what a step does.
type kind uint8

const (
	runTo  kind = iota // CPUs run until one comes to a place
	runFor             // for some time
	look               // something must be so, or the kernel outlived it
	letGo              // all CPUs go on, to the end
)

// everybody is all CPUs, where a number stands for one.
const everybody = -1

// Step is one step of a schedule.
type Step struct {
	Text string // as the schedule has it
	Note string // why, for people

	kind    kind
	who     int      // the CPU that runs, or everybody
	answers int      // the CPU that stands still but for its interrupts; everybody for none
	place   []string // names of a function; the place is the entry of the first one that the kernel has
	access  string   // or an access: to a page table, or to a variable, which the place names then
	when    []condition
	unless  []condition // where these hold meanwhile, the place will not be reached
	limit   time.Duration
	again   bool // where the place is not reached: back to the last step that all CPUs run in
}

// words are what is left to read of a step.
type words []string

// take reads some words, if they come next.
func (w *words) take(said string) bool {
	want := strings.Fields(said)
	if len(*w) < len(want) || strings.Join((*w)[:len(want)], " ") != said {
		return false
	}
	*w = (*w)[len(want):]
	return true
}

// next reads a word; "" at the end.
func (w *words) next() (word string) {
	if len(*w) > 0 {
		word, *w = (*w)[0], (*w)[1:]
	}
	return word
}

func (w *words) duration() (time.Duration, error) {
	d, err := time.ParseDuration(w.next())
	if err == nil && (d <= 0 || d > time.Minute) {
		err = errors.New("want a time of up to a minute")
	}
	return d, err
}

// patience is how long a place is waited for that says no time.
const patience = 30 * time.Second

// ParseStep reads a step: "all to PLACE", "cpu 0 while cpu 1 answers to PLACE", "cpu 0 for 1s", "look CONDITION", "go".
// Behind a place may stand "when CONDITION and CONDITION", "within 5s", "unless CONDITION", and "or again".
func ParseStep(text string) (st Step, err error) {
	st = Step{Text: text, who: everybody, answers: everybody, limit: patience}
	w := words(strings.Fields(text))
	switch {
	case w.take("go"):
		st.kind = letGo
	case w.take("look"):
		st.kind = look
		st.when, err = w.conditions()
	default:
		err = st.run(&w)
	}
	if err == nil && len(w) > 0 {
		err = fmt.Errorf("%q: not understood", strings.Join(w, " "))
	}
	return st, err
}

// run reads who runs, and for how long or where to.
func (st *Step) run(w *words) (err error) {
	if !w.take("all") {
		if !w.take("cpu") {
			return errors.New(`want "all" or "cpu" and a number, "look" or "go"`)
		}
		if st.who, err = w.cpu(); err != nil {
			return err
		}
		if w.take("while cpu") {
			if st.answers, err = w.cpu(); err != nil || !w.take("answers") {
				return errors.Join(err, errors.New(`want "answers" behind "while cpu N"`))
			}
		}
	}
	if w.take("for") {
		st.kind = runFor
		st.limit, err = w.duration()
		return err
	}
	if !w.take("to") {
		return errors.New(`want "to" and a place, or "for" and a time`)
	}
	if err = st.target(w); err == nil && w.take("when") {
		st.when, err = w.conditions()
	}
	if err == nil && w.take("within") {
		st.limit, err = w.duration()
	}
	if err == nil && w.take("unless") {
		st.unless, err = w.conditions()
	}
	st.again = w.take("or again")
	return err
}

// accesses are those that a step may run to.
var accesses = []string{lastRead, entryWrite, slotWrite}

const (
	lastRead   = "last read of entry"
	entryWrite = "write of entry"
	slotWrite  = "write of slot"
	variable   = "read of"
)

// target reads a place.
func (st *Step) target(w *words) error {
	for _, a := range accesses {
		if w.take(a) {
			st.access = a
			return nil
		}
	}
	if w.take(variable) {
		st.access = variable
	}
	st.place = strings.Split(w.next(), "|")
	if st.place[0] == "" {
		return errors.New("want a place")
	}
	return nil
}

func (w *words) cpu() (int, error) {
	n, err := strconv.ParseUint(w.next(), 10, 6)
	if err != nil {
		return 0, errors.New("want the number of a CPU")
	}
	return int(n), nil
}
