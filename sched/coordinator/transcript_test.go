// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts plays testdata/*.txt and compares what happens, line by line. Each
// "run" is a coordinator whose updates are held up until they are told to go on:
//
//	NAME: CLIENT enables|disables RECORD...  submits a request of that name
//	cancel NAME                              withdraws it
//	update ok|fails                          ends the update that is held up
//	wait DURATION                            lets time pass
//	close                                    takes no more requests
//	live                                     says which records are enabled
//
// go test ./sched/coordinator -rewrite writes the outputs anew: read them.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			cfg := Config{Records: 8}
			for key, to := range map[string]*time.Duration{"max-wait": &cfg.MaxWait, "gather": &cfg.Gather} {
				if d.HasArg(key) {
					d.ScanArgs(t, key, to)
				}
			}
			if d.HasArg("queue") {
				d.ScanArgs(t, "queue", &cfg.Queue)
			}
			var out string
			synctest.Test(t, func(t *testing.T) { out = newStage(t, cfg).play(d.Input) })
			return out
		})
	})
}

// stage is one run of a transcript.
type stage struct {
	t       *testing.T
	c       *Coordinator
	begun   time.Time
	goOn    chan error // how the update that is held up ends
	mu      sync.Mutex
	happens strings.Builder
	tickets map[string]*Ticket
	names   map[int64]string
	closed  sync.WaitGroup
}

func newStage(t *testing.T, cfg Config) *stage {
	s := &stage{t: t, begun: time.Now(), goOn: make(chan error), tickets: map[string]*Ticket{}, names: map[int64]string{}}
	cfg.Apply = func(ctx context.Context, changes []Change) error {
		s.say("update:%s", describe(changes))
		select {
		case err := <-s.goOn:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	cfg.Listener = Listener{
		Began: func(_ time.Time, ts []*Ticket) { s.say("together: %s", s.named(ts)) },
		Split: func(n int, err error) { s.say("%v: the %d requests are tried one by one", err, n) },
		Ended: func(e End) {
			how := "live"
			if e.Err != nil {
				how = e.Err.Error()
			}
			s.say("%s: %s", s.named(e.Tickets), how)
		},
	}
	s.c = started(t, t.Context(), cfg)
	return s
}

// describe is changes as a person reads them: +3 -5.
func describe(changes []Change) (out string) {
	for _, c := range changes {
		sign := "-"
		if c.Enable {
			sign = "+"
		}
		out += " " + sign + strconv.Itoa(c.Record)
	}
	return out
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.happens, "  %s\n", fmt.Sprintf(format, args...))
}

func (s *stage) named(ts []*Ticket) string {
	var out []string
	for _, t := range ts {
		out = append(out, s.names[t.Requests()[0].ID])
	}
	return strings.Join(out, ", ")
}

// play makes every line happen and says what follows from it.
func (s *stage) play(script string) string {
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		s.mu.Lock()
		fmt.Fprintf(&s.happens, "%s\n", line)
		s.mu.Unlock()
		if err := s.do(line); err != nil {
			s.say("refused: %v", err)
		}
		synctest.Wait()
	}
	s.mu.Lock()
	out := s.happens.String()
	s.mu.Unlock()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.c.Close(gone) // whatever the script left is of no interest
	s.closed.Wait()
	return out
}

func (s *stage) do(line string) error {
	words := strings.Fields(line)
	switch words[0] {
	case "cancel":
		if !s.tickets[words[1]].Cancel() {
			return errors.New("it is too late for that")
		}
		return nil
	case "update":
		var err error
		if words[1] != "ok" {
			err = errBad
		}
		select {
		case s.goOn <- err:
			return nil
		default:
			return errors.New("no update runs")
		}
	case "wait":
		d, err := time.ParseDuration(words[1])
		time.Sleep(d)
		return err
	case "close":
		s.closed.Go(func() { _ = s.c.Close(context.Background()) })
		return nil
	case "live":
		s.say("%d", slices.Collect(s.c.Snapshot().Records()))
		return nil
	}
	return s.submit(words)
}

// submit reads "NAME: CLIENT enables RECORD...".
func (s *stage) submit(words []string) error {
	name := strings.TrimSuffix(words[0], ":")
	r := Request{Client: words[1], Enable: words[2] == "enables", ID: int64(len(s.names))}
	for _, w := range words[3:] {
		n, err := strconv.Atoi(w)
		if err != nil {
			return err
		}
		r.Records = append(r.Records, n)
	}
	s.names[r.ID] = name
	t, err := s.c.Submit(s.t.Context(), r)
	if err == nil {
		s.tickets[name] = t
	}
	return err
}
