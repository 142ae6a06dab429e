// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/textpoke/textpoke/kernels/tracefs"
)

var errNoEvents = fmt.Errorf("the kernel has none of the events %s, %s (Linux 6.4 and later), %s",
	senders[0].name, senders[1].name, flushes.name)

// programs count causes in the kernel: a BPF program at each event adds to a table, which is read now and then. No line
// is written, and none is lost.
type programs struct {
	counts, isolated, lost *ebpf.Map
	loaded                 []*ebpf.Program
	links                  []link.Link
	measured               io.Closer
	last                   map[key]uint64
	names                  map[uint64]string // of functions, by address
}

// key is what the table tells apart. Programs lay it out as it stands here.
type key struct {
	Function                 uint64
	PID, Isolated, Event, No uint32 // Event is an index of hooks; No is always 0
	Task                     [16]byte
}

// noPID stands for all senders of a name, when the table was full.
const noPID = 1<<32 - 1

// symbolFile is where Linux lists its symbols; a test has another.
var symbolFile = "/proc/kallsyms"

// hooks are the events that programs are attached to.
var hooks = slices.Concat(senders, []event{flushes}, timers)

// runTime is BPF_STATS_RUN_TIME (include/uapi/linux/bpf.h).
const runTime = 0

// load attaches programs.
func load(files tracefs.Files, isolated []int) (_ source, err error) {
	if err := symbols(func(uint64, string) bool { return false }); err != nil {
		return nil, err // functions would have no names
	}
	_ = rlimit.RemoveMemlock() // before Linux 5.11; who may not is told so by the next call
	p := &programs{last: map[key]uint64{}, names: map[uint64]string{0: ""}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := p.tables(isolated); err != nil {
		return nil, err
	}
	for i, e := range hooks {
		if e.kind == flushes.kind && len(p.links) > 0 || e.kind == "timer" && len(isolated) == 0 {
			continue
		}
		format, err := files.Read("events/" + e.name + "/format")
		if err != nil {
			continue // a kernel without the event
		}
		if err := p.attach(i, string(format)); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if len(p.links) == 0 {
		return nil, errNoEvents
	}
	if p.measured, err = ebpf.EnableStats(runTime); err != nil {
		p.measured, err = io.NopCloser(nil), nil // before Linux 5.8
	}
	return p, nil
}

// tables makes the tables that programs use. That of isolated CPUs has a 1 for each.
func (p *programs) tables(isolated []int) (err error) {
	p.counts, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: keySize, ValueSize: 8, MaxEntries: 4 * mostCauses})
	if err == nil {
		p.lost, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	}
	if err != nil {
		return err
	}
	spec := ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	for _, cpu := range isolated {
		spec.MaxEntries = max(spec.MaxEntries, uint32(cpu)+1)
		spec.Contents = append(spec.Contents, ebpf.MapKV{Key: uint32(cpu), Value: uint32(1)})
	}
	p.isolated, err = ebpf.NewMap(&spec)
	return err
}

// attach loads the program of an event and attaches it.
func (p *programs) attach(hook int, format string) error {
	code, err := p.code(hook, format)
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.TracePoint, Instructions: code, License: "Apache-2.0"})
	if err != nil {
		return err
	}
	p.loaded = append(p.loaded, program)
	group, name, _ := strings.Cut(hooks[hook].name, "/")
	l, err := link.Tracepoint(group, name, program, nil)
	if err != nil {
		return err
	}
	p.links = append(p.links, l)
	return nil
}

// Close detaches the programs and gives everything back.
func (p *programs) Close() (err error) {
	for _, l := range p.links {
		err = errors.Join(err, l.Close())
	}
	for _, l := range p.loaded {
		err = errors.Join(err, l.Close())
	}
	if p.measured != nil {
		err = errors.Join(err, p.measured.Close())
	}
	for _, m := range []*ebpf.Map{p.counts, p.isolated, p.lost} {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	return err
}

// Lost is how many events found no room, or came while another program ran.
func (p *programs) Lost() int {
	var lost uint64
	if err := p.lost.Lookup(uint32(0), &lost); err != nil {
		return 0
	}
	for _, l := range p.loaded {
		if s, err := l.Stats(); err == nil {
			lost += s.RecursionMisses
		}
	}
	return int(lost)
}

// Ran is how long the programs have taken so far; 0 where the kernel does not measure it.
func (p *programs) Ran() (sum time.Duration) {
	for _, l := range p.loaded {
		if s, err := l.Stats(); err == nil {
			sum += s.Runtime
		}
	}
	return sum
}

func (p *programs) take(add func(c Cause, times, isolated int64)) error {
	grown := map[key]uint64{}
	var k key
	var n uint64
	each := p.counts.Iterate()
	for each.Next(&k, &n) {
		if more := n - p.last[k]; more > 0 {
			grown[k], p.last[k] = more, n
		}
	}
	if err := each.Err(); err != nil {
		return err
	}
	if err := p.name(grown); err != nil {
		return err
	}
	for k, n := range grown {
		c := Cause{Kind: hooks[k.Event].kind, Function: p.names[k.Function]}
		if c.Kind == "" {
			if c.Function == emptiesQueue {
				continue
			}
			c.Kind, c.Task, c.PID = kindOf(c.Function), string(bytes.TrimRight(k.Task[:], "\x00")), int(k.PID)
			switch k.PID {
			case 0:
				c.Task = "<idle>" // as trace events have it
			case noPID:
				c.PID = 0
			}
		}
		add(c, int64(n), int64(n)*int64(k.Isolated))
	}
	return nil
}

// name finds the names of functions that are not known yet.
func (p *programs) name(of map[key]uint64) error {
	unknown := 0
	for k := range of {
		if _, known := p.names[k.Function]; !known {
			p.names[k.Function] = fmt.Sprintf("%#x", k.Function)
			unknown++
		}
	}
	if unknown == 0 {
		return nil
	}
	return symbols(func(at uint64, name string) bool {
		if is, asked := p.names[at]; asked && strings.HasPrefix(is, "0x") {
			p.names[at] = name
		}
		return true
	})
}

// symbols hands over the kernel's symbols until one is enough. It fails where the kernel tells no addresses
// (kptr_restrict, Documentation/admin-guide/sysctl/kernel.rst): all of them are 0 there.
func symbols(next func(at uint64, name string) bool) error {
	f, err := os.Open(symbolFile)
	if err != nil {
		return err
	}
	defer f.Close()
	told := false
	s := bufio.NewScanner(f)
	for s.Scan() {
		fields := strings.Fields(s.Text())
		if len(fields) < 3 {
			continue
		}
		if at, err := strconv.ParseUint(fields[0], 16, 64); err == nil && at != 0 {
			if told = true; !next(at, fields[2]) {
				break
			}
		}
	}
	if err := s.Err(); err != nil || told {
		return err
	}
	return fmt.Errorf("%s tells no addresses (kernel.kptr_restrict)", symbolFile)
}

// field is where a field of an event lies, by the event's format.
func field(format, name string) (offset int16, err error) {
	found := regexp.MustCompile(`field:[^;]*[ *]` + name + `;\s*offset:(\d+);`).FindStringSubmatch(format)
	if found == nil {
		return 0, fmt.Errorf("its format has no field %s", name)
	}
	at, err := strconv.ParseInt(found[1], 10, 16)
	return int16(at), err
}
