// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
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

// mark begins the guest's lines. A checksum of what follows the checksum comes
// behind it.
const mark = "@vm "

// listen reads the console of a machine of so many CPUs to its end. It calls hear, which may be nil, with every
// reading and skip as it comes. It fails on the guest's own complaint and on damaged lines of the guest, and then
// returns the readings so far beside the error.
func listen(r io.Reader, cpus int, hear func(*Told)) (*Told, error) {
	l := listener{told: &Told{}, want: cpus}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		at := strings.Index(s.Text(), mark)
		if at < 0 {
			continue
		}
		text := strings.TrimRight(s.Text()[at+len(mark):], "\r")
		if err := l.line(text); err != nil {
			if _, ok := errors.AsType[guestError](err); ok {
				return l.told, err
			}
			return l.told, fmt.Errorf("console, line %d: %q: %w", n, text, err)
		}
		if l.reading == nil && hear != nil {
			hear(l.told)
		}
	}
	if err := s.Err(); err != nil {
		return l.told, fmt.Errorf("read console: %w", err)
	}
	return l.told, nil
}

// guestError is what a guest complains of.
type guestError string

func (e guestError) Error() string { return "the guest: " + string(e) }

// fieldsOf is how many fields a kind of line has; a row has one for each CPU.
var fieldsOf = map[string]int{"boot": 2, "skip": 2, "watched": 2, "caller": 3, "fail": 1, "reading": 4, "end": 0, "done": 0}

type listener struct {
	told    *Told
	want    int // CPUs of the machine
	cpus    int
	reading *Reading // that has begun
}

// line takes one line behind its mark.
func (l *listener) line(text string) error {
	sum, text, _ := strings.Cut(text, " ")
	want, err := strconv.ParseUint(sum, 16, 32)
	if err != nil || len(sum) != 8 {
		return errors.New("no checksum")
	}
	if got := crc32.ChecksumIEEE([]byte(text)); got != uint32(want) {
		return fmt.Errorf("damaged: its checksum is %08x", got)
	}
	var fields []string
	if err := json.Unmarshal([]byte(text), &fields); err != nil || len(fields) == 0 {
		return errors.New("no list of texts in JSON")
	}
	kind, fields := fields[0], fields[1:]
	if n, ok := fieldsOf[kind]; ok && n != len(fields) {
		return fmt.Errorf("%d fields, want %d", len(fields), n)
	}
	if (kind == "row" || kind == "end") != (l.reading != nil) && kind != "fail" {
		return errors.New("out of place")
	}
	switch kind {
	case "boot":
		l.told.Release, l.told.Online = fields[0], fields[1]
		err = l.brought()
	case "skip":
		l.told.Skips = append(l.told.Skips, Skip{fields[0], fields[1]})
	case "watched":
		w := Watched{Text: fields[1]}
		w.Code, err = strconv.Atoi(fields[0])
		l.told.Watched = append(l.told.Watched, w)
	case "caller":
		l.told.Callers = append(l.told.Callers, Caller{fields[0], fields[1], fields[2]})
	case "fail":
		return guestError(fields[0])
	case "reading":
		l.reading, err = readReading(fields)
	case "row":
		err = l.row(fields)
	case "end":
		l.told.Readings = append(l.told.Readings, *l.reading)
		l.reading = nil
	case "done":
		l.told.Done = true
	default:
		return errors.New("no such kind of line")
	}
	return err
}

// brought complains where the kernel has not brought up every CPU.
func (l *listener) brought() error {
	online, err := watch.ParseCPUs(l.told.Online)
	if err != nil {
		return err
	}
	if len(online) != l.want {
		return guestError(fmt.Sprintf("%s brought up %d of %d CPUs: %s", l.told.Release, len(online), l.want, l.told.Online))
	}
	return nil
}

func readReading(fields []string) (*Reading, error) {
	repetition, err1 := strconv.ParseUint(fields[2], 10, 31)
	took, err2 := strconv.ParseUint(fields[3], 10, 43)
	if !slices.Contains(directions, fields[1]) || err1 != nil || err2 != nil {
		return nil, errors.New("want an action, a direction, a repetition and microseconds")
	}
	return &Reading{Action: fields[0], Direction: fields[1], Repetition: int(repetition),
		Took: time.Duration(took) * time.Microsecond}, nil
}

func (l *listener) row(fields []string) error {
	if len(fields) < 3 {
		return errors.New("want a name, a description and a count for each CPU")
	}
	row := Row{Name: fields[0], About: fields[1]}
	for _, f := range fields[2:] {
		n, err := strconv.ParseUint(f, 10, 31)
		if err != nil {
			return fmt.Errorf("%q: no count", f)
		}
		row.Interrupts = append(row.Interrupts, int(n))
	}
	if l.cpus == 0 {
		l.cpus = len(row.Interrupts)
	}
	if len(row.Interrupts) != l.cpus {
		return fmt.Errorf("%d counts, and the rows before have %d", len(row.Interrupts), l.cpus)
	}
	l.reading.Rows = append(l.reading.Rows, row)
	return nil
}
