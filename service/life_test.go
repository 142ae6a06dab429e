// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/service"
)

// life is what a server is told that is going to be killed.
type life struct {
	Dir    string
	Seed   uint64
	Point  string  // where it kills itself; "": nowhere
	Pass   int     // how often it gets there before, from 1
	Linger bool    // there for a moment, while clients go on
	Again  []asked // what is asked for again: nobody saw how it ended
	Look   bool    // to end once it has said what there is
	Trace  bool    // to say every point that it passes
}

const lifeEnv = "TEXTPOKE_TEST_LIFE"

// TestLife is not a test but the server that TestKill starts, over and over, and
// that is killed.
func TestLife(t *testing.T) {
	spec := os.Getenv(lifeEnv)
	if spec == "" {
		t.Skip("TestKill starts this in a process of its own")
	}
	var l life
	if err := json.Unmarshal([]byte(spec), &l); err != nil {
		t.Fatal(err)
	}
	if err := (&living{life: l, out: writeLine}).live(t.Context()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// writeLine writes a line with one write: it is out, or it is not.
func writeLine(x line) {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(append(b, '\n')); err != nil {
		os.Exit(1) // nobody listens
	}
}

// living is a server and its clients.
type living struct {
	life
	machine *machine
	faults  faults
	all     []string // names of records
	out     func(line)
	talk    sync.Mutex // one line after the other
	at      sync.Mutex
	passes  int
}

// say hands a line out.
func (l *living) say(x line) {
	if x.At == 0 {
		x.At = time.Now().UnixNano()
	}
	l.talk.Lock()
	defer l.talk.Unlock()
	l.out(x)
}

// passing is told of every point where a crash is of interest.
func (l *living) passing(point string) {
	if l.Trace {
		l.say(line{Event: "point", State: point})
	}
	if point != l.Point {
		return
	}
	l.at.Lock()
	defer l.at.Unlock()
	if l.passes++; l.passes == l.Pass {
		if l.Linger { // what others are shown too early they now see
			time.Sleep(5 * time.Millisecond)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (l *living) live(ctx context.Context) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	if l.Look {
		return l.machine.close(ctx)
	}
	return l.work(ctx)
}

// begin starts the server and says what there is.
func (l *living) begin(ctx context.Context) (err error) {
	if l.machine, err = start(ctx, l.setup()); err != nil {
		return err
	}
	if l.all, err = l.machine.names(); err != nil {
		return err
	}
	ready := line{Event: "ready", Wrong: l.machine.wrong()}
	if ready.Updates, err = l.machine.updates(ctx); err != nil {
		return err
	}
	if ready.Set, err = l.machine.enabled(); err != nil {
		return err
	}
	l.say(ready)
	l.faults.armed.Store(true)
	return nil
}

func (l *living) setup() setup {
	s := setup{dir: l.Dir, records: fmt.Sprintf("gen:n=%d", lifeRecords), cpus: "busy=2,idle=1", seed: l.Seed,
		at: l.passing}
	if !l.Look {
		s.compact = 3 * time.Millisecond
		l.faults.rng = rand.New(rand.NewPCG(l.Seed, 7))
		s.fault = l.faults.fail
	}
	return s
}

// lifeRecords is few, so that clients meet.
const lifeRecords = 24

// work is clients that ask for this and that until ctx or the process ends.
func (l *living) work(ctx context.Context) error {
	for _, a := range l.Again {
		if err := l.ask(ctx, a, false); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, client := range clientNames {
		rng := rand.New(rand.NewPCG(l.Seed, uint64(i)+1))
		group.Go(func() error { return l.client(ctx, client, rng) })
	}
	group.Go(func() error { return l.looker(ctx) })
	group.Go(func() error { return l.machine.unplugger(ctx, rand.New(rand.NewPCG(l.Seed, 99))) })
	return group.Wait()
}

func (l *living) client(ctx context.Context, name string, rng *rand.Rand) error {
	for n := 0; ctx.Err() == nil; n++ {
		a := someRequest(rng, name, fmt.Sprintf("%s-%d-%d", name, l.Seed, n))
		if err := l.ask(ctx, a, rng.IntN(8) == 0); err != nil {
			return err
		}
	}
	return nil
}

// someRequest is about one to four records. One in three has a deadline: before it is taken up,
// or not long after, so that a restart comes too late.
func someRequest(rng *rand.Rand, client, key string) asked {
	a := asked{Client: client, Key: key, Ops: opsNames[rng.IntN(len(opsNames))], Enable: rng.IntN(2) == 0}
	for range 1 + rng.IntN(4) {
		a.Set |= 1 << rng.IntN(lifeRecords)
	}
	if rng.IntN(3) == 0 {
		most := []time.Duration{2 * time.Millisecond, 40 * time.Millisecond}[rng.IntN(2)]
		a.Expires = time.Now().Add(time.Duration(rng.Int64N(int64(most)))).UnixNano()
	}
	return a
}

// ask asks for something, and waits until it is answered.
func (l *living) ask(ctx context.Context, a asked, cancel bool) error {
	l.say(line{Event: "try", Asked: a})
	u, err := l.machine.Submit(ctx, a.request(l.all))
	if refusedNow(err) {
		l.say(line{Event: "no", Asked: a, State: err.Error()})
		return nil
	}
	if ctx.Err() != nil {
		return nil // this client is gone
	}
	if err != nil {
		return err
	}
	l.say(line{Event: "ack", Asked: a, ID: u.ID})
	if cancel {
		switch _, err := l.machine.Cancel(ctx, u.ID); {
		case err == nil:
			l.say(line{Event: "end", Asked: a, ID: u.ID, State: "cancelled"})
			return nil
		case !errors.Is(err, service.ErrTooLate) && ctx.Err() == nil:
			return err
		}
	}
	if u, err = l.machine.Wait(ctx, u.ID); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	l.say(line{Event: "end", Asked: a, ID: u.ID, State: string(u.State)})
	return nil
}

// looker looks what is enabled.
func (l *living) looker(ctx context.Context) error {
	for ctx.Err() == nil {
		x := line{Event: "look", At: time.Now().UnixNano()}
		var err error
		if x.Set, err = l.machine.enabled(); err != nil {
			return err
		}
		x.Until = time.Now().UnixNano()
		l.say(x)
		time.Sleep(200 * time.Microsecond)
	}
	return nil
}

// child is a life in a process of its own, as its parent has it.
type child struct {
	cmd   *exec.Cmd
	lines chan line // closed when the process is over
	err   error     // after that: how it ended, nil when killed or done
}

// born starts a life.
func born(t *testing.T, l life) *child {
	t.Helper()
	spec, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(os.Args[0], "-test.run=^TestLife$"), lines: make(chan line, 64)}
	c.cmd.Env = append(os.Environ(), lifeEnv+"="+string(spec))
	var stderr limited
	c.cmd.Stderr = &stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		c.read(out)
		err := c.cmd.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			err = nil
		}
		if err != nil {
			c.err = fmt.Errorf("the server ended by itself: %w: %s", err, stderr.text)
		}
	}()
	return c
}

// read reads lines until the process is gone. A last one that is torn was never
// said.
func (c *child) read(r io.Reader) {
	for b := bufio.NewReader(r); ; {
		text, err := b.ReadBytes('\n')
		if err != nil {
			return
		}
		var x line
		if json.Unmarshal(text, &x) == nil {
			c.lines <- x
		}
	}
}

// limited keeps the beginning of what is written.
type limited struct{ text []byte }

func (l *limited) Write(b []byte) (int, error) {
	if room := 2000 - len(l.text); room > 0 {
		l.text = append(l.text, b[:min(room, len(b))]...)
	}
	return len(b), nil
}
