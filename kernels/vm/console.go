// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/kernels/watch"
)

// The directions of a reading.
const (
	Enable  = "enable"
	Again   = "again" // the probed site is hit once more
	Disable = "disable"
	Control = "idle" // nothing was switched for as long as the longer of the two took
)

var directions = []string{Enable, Again, Disable, Control}

// Reading is what was counted around one action.
type Reading struct {
	Action, Direction string
	Repetition        int // from 0
	Took              time.Duration
	Rows              []Row // those that grew on some CPU
}

// Row is one row of /proc/interrupts, or a counter of the firmware.
type Row struct {
	Name, About string
	Interrupts  []int // by CPU
}

// Skip is an action that the kernel or the guest cannot do.
type Skip struct{ Action, Why string }

// Told is everything that a guest told.
type Told struct {
	Release  string
	Online   string // CPUs, as the kernel lists them
	Readings []Reading
	Skips    []Skip
	Watched  []Watched
	Callers  []Caller
	Done     bool // it came to its end
}

// Caller is a stack that the CPU that switches had when it interrupted others.
type Caller struct {
	Action, Direction string
	Stack             string // the innermost function first, with " < " between
}

// Watched is what a watcher told in the machine, and the code that it ended with.
type Watched struct {
	Text string
	Code int
}

// mark begins the guest's lines. A checksum of what follows the checksum comes behind it.
const mark = "@vm "

// line is what one line tells: a part of Told, in JSON, or what ends it all.
type line struct {
	Told
	Fail string
}

// listen reads the console of a machine of so many CPUs to its end. It calls hear, which may be nil, with every
// reading and skip as it comes. It fails on the guest's own complaint and on damaged lines of the guest, and then
// returns the readings so far beside the error.
func listen(r io.Reader, cpus int, hear func(*Told)) (*Told, error) {
	told, width := &Told{}, 0
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		at := strings.Index(s.Text(), mark)
		if at < 0 {
			continue
		}
		text := strings.TrimRight(s.Text()[at+len(mark):], "\r")
		more, err := readLine(text)
		for i := range more.Readings {
			err = cmp.Or(err, more.Readings[i].check(&width))
		}
		if err == nil {
			err = told.add(more, cpus)
		}
		if _, ok := errors.AsType[guestError](err); ok {
			return told, err
		} else if err != nil {
			return told, fmt.Errorf("console, line %d: %q: %w", n, text, err)
		}
		if hear != nil {
			hear(told)
		}
	}
	if err := s.Err(); err != nil {
		return told, fmt.Errorf("read console: %w", err)
	}
	return told, nil
}

// guestError is what a guest complains of.
type guestError string

func (e guestError) Error() string { return "the guest: " + string(e) }

// readLine reads a line behind its mark.
func readLine(text string) (l line, err error) {
	sum, text, _ := strings.Cut(text, " ")
	want, err := strconv.ParseUint(sum, 16, 32)
	if err != nil || len(sum) != 8 {
		return l, errors.New("no checksum")
	}
	if got := crc32.ChecksumIEEE([]byte(text)); got != uint32(want) {
		return l, fmt.Errorf("damaged: its checksum is %08x", got)
	}
	in := json.NewDecoder(strings.NewReader(text))
	in.DisallowUnknownFields()
	return l, in.Decode(&l)
}

// add adds what a line tells, and complains where the kernel has not brought up every CPU.
func (t *Told) add(l line, cpus int) error {
	t.Readings, t.Skips = append(t.Readings, l.Readings...), append(t.Skips, l.Skips...)
	t.Watched, t.Callers = append(t.Watched, l.Watched...), append(t.Callers, l.Callers...)
	t.Done = t.Done || l.Done
	switch {
	case l.Fail != "":
		return guestError(l.Fail)
	case l.Release == "":
		return nil
	}
	t.Release, t.Online = l.Release, l.Online
	online, err := watch.ParseCPUs(t.Online)
	if err == nil && len(online) != cpus {
		err = guestError(fmt.Sprintf("%s brought up %d of %d CPUs: %s", t.Release, len(online), cpus, t.Online))
	}
	return err
}

// check refuses a reading that cannot be. Its rows have as many counts as the rows before, which are width.
func (r *Reading) check(width *int) error {
	if !slices.Contains(directions, r.Direction) || r.Repetition < 0 || r.Took < 0 {
		return errors.New("want an action, a direction, a repetition and a time")
	}
	for _, row := range r.Rows {
		if *width = cmp.Or(*width, len(row.Interrupts)); len(row.Interrupts) != *width || *width == 0 {
			return fmt.Errorf("%d counts, and the rows before have %d", len(row.Interrupts), *width)
		}
		if slices.Min(row.Interrupts) < 0 {
			return fmt.Errorf("row %s: a count below 0", row.Name)
		}
	}
	return nil
}
