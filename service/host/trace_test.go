// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/service"
)

// feed is a tracefs whose pipes hand out what is put into them.
type feed struct {
	tracefs.Files
	mu      sync.Mutex
	held    map[string]string
	fails   error
	refuses error
	opened  int // at a time
	most    int
}

func (f *feed) put(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[name] += text
}

func (f *feed) Open(name string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return nil, f.refuses
	}
	f.opened++
	f.most = max(f.most, f.opened)
	return &tap{f, name}, nil
}

type tap struct {
	of   *feed
	name string
}

func (p *tap) Read(b []byte) (int, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	n := copy(b, p.of.held[p.name])
	p.of.held[p.name] = p.of.held[p.name][n:]
	switch {
	case n > 0:
		return n, nil
	case p.of.fails != nil:
		return 0, p.of.fails
	}
	return 0, tracefs.ErrNothing
}

func (p *tap) Close() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.opened--
	return nil
}

const instancePipe = "instances/x/trace_pipe"

// line is what a task calls.
func line(function string) string {
	return fmt.Sprintf("             cat-123     [001] d..2.    12.345678: %s <-caller\n", function)
}

// heard is what a client is told until it has heard enough.
type heard struct {
	names  []string
	missed int
	begun  chan struct{}
	once   sync.Once
	done   chan error
}

// follow follows a client's trace until a line names enough.
func follow(t *testing.T, s *service.Service, client, ops, enough string) *heard {
	h := &heard{begun: make(chan struct{}), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		h.done <- s.Trace(ctx, client, ops, func(lines []service.Line, missed int) error {
			h.once.Do(func() { close(h.begun) })
			h.missed += missed
			for _, l := range lines {
				name := l.Name
				if l.Lost > 0 {
					name = fmt.Sprintf("lost %d", l.Lost)
				}
				h.names = append(h.names, name)
				if name == enough {
					cancel()
				}
			}
			return nil
		})
	}()
	<-h.begun
	return h
}

// TestTraceOfClients: two clients share one buffer, and each gets the lines of its own functions and events, the lost
// ones told to both; a line that is cut in two is one; what a client disables is not told any more.
func TestTraceOfClients(t *testing.T) {
	w := newWorld(t)
	f := &feed{Files: w.files, held: map[string]string{}}
	w.config.Files = f
	s, kill := w.start()
	defer kill()
	w.do(s, "one", true, "a", "c")
	w.do(s, "two", true, "a", "d")
	w.with(s, "two", "event", true, "sched/sched_switch")
	one, two := follow(t, s, "one", "", "lost 7"), follow(t, s, "two", "", "lost 7")
	events := follow(t, s, "two", "event", "lost 7")
	event := "             cat-123     [001] d..2.    12.345678: sched_switch: prev_comm=a\n"
	text := line("a") + line("b") + line("c [m]") + event + line("c") + line("d")
	f.put(instancePipe, text[:len(text)-9])
	f.put(instancePipe, text[len(text)-9:]+"CPU:1 [LOST 7 EVENTS]\n")
	for _, c := range []struct {
		*heard
		want []string
	}{{one, []string{"a", "c [m]", "lost 7"}}, {two, []string{"a", "sched_switch", "d", "lost 7"}}, {events, []string{"sched_switch", "lost 7"}}} {
		if err := <-c.done; !errors.Is(err, context.Canceled) || !slices.Equal(c.names, c.want) || c.missed > 0 {
			t.Errorf("%v: told %v and missed %d, want %v", err, c.names, c.missed, c.want)
		}
	}
	w.do(s, "one", false, "a")
	again := follow(t, s, "one", "", "c [m]")
	f.put(instancePipe, line("a")+line("c [m]"))
	if <-again.done; !slices.Equal(again.names, []string{"c [m]"}) {
		t.Errorf("told %v, though a is disabled", again.names)
	}
	if f.most != 1 || f.opened != 0 {
		t.Errorf("the pipe was open %d times at once, and is %d times now", f.most, f.opened)
	}
}

// TestGraphTrace: the graph's lines come from its own instance.
func TestGraphTrace(t *testing.T) {
	w := newWorld(t)
	f := &feed{Files: w.files, held: map[string]string{}}
	w.config.Files = f
	s, kill := w.start()
	defer kill()
	w.with(s, "one", "graph", true, "a")
	one := follow(t, s, "one", "graph", "lost 1")
	f.put(instancePipe, line("a"))
	f.put("instances/x.graph/trace_pipe", " 0)               |  a() {\n 0)   0.633 us    |    b();\n 0)   1.633 us    |  }\nCPU:1 [LOST 1 EVENTS]\n")
	if <-one.done; !slices.Equal(one.names, []string{"a", "a", "lost 1"}) {
		t.Errorf("told %v", one.names)
	}
	f.mu.Lock()
	f.refuses = fs.ErrNotExist
	f.mu.Unlock()
	if err := s.Trace(t.Context(), "one", "graph", nil); !errors.Is(err, service.ErrNoTrace) {
		t.Errorf("%v, want no trace", err)
	}
	if err := s.Trace(t.Context(), "one", "kprobe", nil); err == nil || !strings.Contains(err.Error(), "this machine has") {
		t.Errorf("%v", err)
	}
}

// TestSlowReader: what a reader does not take in time is counted, and the others get theirs; a pipe that fails ends its
// readers, and can be opened again.
func TestSlowReader(t *testing.T) {
	w := newWorld(t)
	f := &feed{Files: w.files, held: map[string]string{}}
	w.config.Files = f
	s, kill := w.start()
	defer kill()
	w.do(s, "slow", true, "a")
	w.do(s, "quick", true, "b")
	hold, slow := make(chan struct{}), make(chan error, 1)
	begun, lines, lost := make(chan struct{}), 0, 0
	go func() {
		first := true
		slow <- s.Trace(t.Context(), "slow", "", func(some []service.Line, missed int) error {
			if first {
				close(begun)
				<-hold
			}
			first = false
			lines, lost = lines+len(some), lost+missed
			return nil
		})
	}()
	<-begun
	quick := follow(t, s, "quick", "", "b")
	f.put(instancePipe, strings.Repeat(line("a"), mostLines+11)+line("b"))
	<-quick.done
	close(hold)
	f.mu.Lock()
	f.fails = errors.New("the device has gone")
	f.mu.Unlock()
	if err := <-slow; err == nil || !strings.Contains(err.Error(), "has gone") || lines != mostLines || lost != 11 {
		t.Errorf("%v: %d lines and %d missed, want %d and 11", err, lines, lost, mostLines)
	}
	f.mu.Lock()
	f.fails = nil
	f.mu.Unlock()
	again := follow(t, s, "slow", "", "a")
	f.put(instancePipe, line("a"))
	<-again.done
}
