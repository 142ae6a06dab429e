// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/tracefs"
)

// events reads causes from trace events, in an instance of its own.
type events struct {
	files    tracefs.Files
	dir      string
	pipe     io.ReadCloser
	rest     []byte // of a line that is not whole yet
	isolated []int
	lost     int
}

// hear switches the events on.
func hear(files tracefs.Files, isolated []int) (_ source, err error) {
	e := &events{files: files, dir: fmt.Sprintf("instances/textpoke-%d", os.Getpid()), isolated: isolated}
	if _, err := files.Mkdir(e.dir); err != nil {
		return nil, fmt.Errorf("%w (root can, where tracefs is mounted)", err)
	}
	on := func(name string) bool { return files.Write(e.dir+"/events/"+name+"/enable", "1", true) == nil }
	heard := false
	for _, s := range senders {
		heard = on(s.name) || heard
	}
	if !heard && !on(flushes.name) {
		err = errNoEvents
	}
	if err == nil {
		e.pipe, err = files.Open(e.dir + "/trace_pipe")
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	where := spelling.Each(isolated, func(cpu int) string { return fmt.Sprint("CPU == ", cpu) })
	for _, t := range timers {
		if len(where) > 0 && files.Write(e.dir+"/events/"+t.name+"/filter", strings.Join(where, " || "), true) == nil {
			on(t.name)
		}
	}
	return e, nil
}

// Close removes the instance, and with it the events.
func (e *events) Close() (err error) {
	if e.pipe != nil {
		err = e.pipe.Close()
	}
	return errors.Join(err, e.files.Remove(e.dir))
}

// Lost is how many events the kernel overwrote before they were read.
func (e *events) Lost() int { return e.lost }

// Ran is 0: the kernel does not tell what writing a line costs.
func (e *events) Ran() time.Duration { return 0 }

func (e *events) take(add func(c Cause, times, isolated int64)) (err error) {
	for b := make([]byte, 1<<16); err == nil; {
		var n int
		if n, err = e.pipe.Read(b); n > 0 {
			e.read(b[:n], add)
		}
	}
	if errors.Is(err, tracefs.ErrNothing) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// read tells the causes of a text's lines. The last line may not be whole.
func (e *events) read(text []byte, add func(c Cause, times, isolated int64)) {
	e.rest = append(e.rest, text...)
	whole := bytes.LastIndexByte(e.rest, '\n') + 1
	for line := range bytes.Lines(e.rest[:whole]) {
		l := tracefs.ParseLine(strings.TrimRight(string(line), "\n"))
		e.lost += l.Lost
		if cause, cpu, ok := causeOf(&l); ok {
			isolated := int64(0)
			if slices.Contains(e.isolated, cpu) {
				isolated = 1
			}
			add(cause, 1, isolated)
		}
	}
	if e.rest = append(e.rest[:0], e.rest[whole:]...); len(e.rest) > 1<<16 { // a line without an end
		e.rest = e.rest[:0]
	}
}

var eventField = regexp.MustCompile(`(\w+)=([^\s+]+)`)

// causeOf is what a line says, and the CPU that is interrupted.
func causeOf(l *tracefs.Line) (c Cause, cpu int, ok bool) {
	fields := map[string]string{}
	for _, f := range eventField.FindAllStringSubmatch(l.Detail, -1) {
		fields[f[1]] = f[2]
	}
	cpu, c.Task, c.PID = l.CPU, l.Task, l.PID
	switch l.Name {
	case "csd_queue_cpu", "ipi_send_cpu":
		c.Function = cmp.Or(fields["func"], fields["callback"])
		var err error
		if cpu, err = strconv.Atoi(fields["cpu"]); err != nil || c.Function == emptiesQueue {
			return c, 0, false
		}
		if c.Function == "0x0" {
			c.Function = ""
		}
		c.Kind = kindOf(c.Function)
		return c, cpu, true
	case "tlb_flush": // on the CPU that flushes
		return Cause{Kind: flushes.kind}, cpu, strings.Contains(l.Detail, "remote shootdown")
	case "timer_expire_entry", "hrtimer_expire_entry":
		return Cause{Kind: "timer", Function: fields["function"]}, cpu, true
	}
	return c, 0, false
}
