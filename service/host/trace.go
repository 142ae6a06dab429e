// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/service"
)

// Trace reads the instance's trace_pipe, or its graph instance's, while anybody follows.
func (h *Host) Trace(
	ctx context.Context, ops string, keep func(*service.Line) bool, tell func([]service.Line, int) error,
) error {
	p := h.pipe
	if ops == Ops()[graphOps] {
		p = h.graphs
	}
	return p.follow(ctx, &follower{keep: keep, more: make(chan struct{}, 1)}, tell)
}

// pipe hands the lines of a trace_pipe, which has one reader at a time, to all who follow it.
//
// Lock order: turn before mu.
type pipe struct {
	open   func() (io.ReadCloser, error)
	parser func() parser
	log    *zap.Logger

	turn sync.Mutex    // orders the first who comes and the last who goes
	stop chan struct{} // ends the reading; nil while no client follows
	done chan struct{} // is closed when it has ended

	mu        sync.Mutex
	followers map[*follower]bool
}

// parser reads one line after the other.
type parser func(text string) tracefs.Line

// follower has what was read and not taken yet.
type follower struct {
	keep   func(*service.Line) bool
	more   chan struct{} // holds one while there is something to take
	lines  []service.Line
	missed int
	failed error
}

const (
	mostLines = 1 << 16               // that wait for a follower
	lookPause = 20 * time.Millisecond // between two looks into an empty pipe
)

func (p *pipe) follow(ctx context.Context, f *follower, tell func([]service.Line, int) error) error {
	if err := p.join(f); err != nil {
		return err
	}
	defer p.leave(f)
	if err := tell(nil, 0); err != nil { // it has begun
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.more:
		}
		p.mu.Lock()
		lines, missed, failed := f.lines, f.missed, f.failed
		f.lines, f.missed = nil, 0
		p.mu.Unlock()
		if err := errors.Join(failed, tell(lines, missed)); err != nil {
			return err
		}
	}
}

func (p *pipe) join(f *follower) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.stop == nil || p.ended() {
		from, err := p.open()
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w with these ops: no client wants any", service.ErrNoTrace)
		}
		if err != nil {
			return err
		}
		p.followers, p.stop, p.done = map[*follower]bool{f: true}, make(chan struct{}), make(chan struct{})
		go p.read(from, p.stop, p.done)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers[f] = true
	return nil
}

// ended tells whether reading has failed.
func (p *pipe) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *pipe) leave(f *follower) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	delete(p.followers, f)
	last := len(p.followers) == 0
	p.mu.Unlock()
	if last {
		close(p.stop)
		<-p.done
		p.stop = nil
	}
}

// read reads until it is stopped, or reading fails.
func (p *pipe) read(from io.ReadCloser, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	parse, buf, held := p.parser(), make([]byte, 1<<16), 0
	for {
		n, err := from.Read(buf[held:])
		held += n
		whole := bytes.LastIndexByte(buf[:held], '\n') + 1
		if whole == 0 && held == len(buf) { // a line without an end
			whole = held
		}
		p.hand(buf[:whole], parse)
		held = copy(buf, buf[whole:held])
		if err != nil && !errors.Is(err, tracefs.ErrNothing) {
			p.fail(err)
			break
		}
		pause := time.Duration(0)
		if n == 0 {
			pause = lookPause
		}
		select {
		case <-stop:
		case <-time.After(pause):
			continue
		}
		break
	}
	if err := from.Close(); err != nil {
		p.log.Error("close the trace", zap.Error(err))
	}
}

// hand gives each follower its lines.
func (p *pipe) hand(text []byte, parse parser) {
	if len(text) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range bytes.Lines(text) {
		l := parse(string(bytes.TrimSuffix(line, []byte("\n"))))
		for f := range p.followers {
			switch {
			case !f.keep(&l):
			case len(f.lines) < mostLines:
				f.lines = append(f.lines, l)
			default:
				f.missed++
			}
		}
	}
	p.wake()
}

// fail tells all who follow that there is no more to come.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Error("read the trace", zap.Error(err))
	for f := range p.followers {
		f.failed = err
	}
	p.wake()
}

// wake is called with mu held.
func (p *pipe) wake() {
	for f := range p.followers {
		if len(f.lines)+f.missed > 0 || f.failed != nil {
			select {
			case f.more <- struct{}{}:
			default:
			}
		}
	}
}
