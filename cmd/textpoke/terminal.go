// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// stderrIsTerminal tells whether somebody watches.
func (c *common) stderrIsTerminal() bool {
	f, ok := c.streams.err.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// patience is how long a command takes until somebody who watches is told that it is
// still at it.
const patience = 2 * time.Second

// progress is the one line that says how far a command has got, or that it is still at
// it.
type progress struct {
	mu    sync.Mutex
	line  string
	shown bool
	stop  chan struct{}
}

// watch shows the line of a command that takes longer than anybody waits without a word,
// until the function that it returns is called.
func (c *common) watch(name string) (end func()) {
	if !c.stderrIsTerminal() {
		return func() {}
	}
	p := c.progress
	p.line, p.stop = name, make(chan struct{})
	begun := time.Now()
	go func(stop chan struct{}) {
		tick := time.NewTicker(time.Second / 2)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				if d := now.Sub(begun); d >= patience {
					c.draw(fmt.Sprintf(" (%v)", d.Truncate(time.Second)))
				}
			}
		}
	}(p.stop)
	return c.unwatch
}

// unwatch ends the line: something else is about to show how far it is, or all is over.
func (c *common) unwatch() {
	p := c.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
	if p.shown {
		fmt.Fprint(c.streams.err, "\r\x1b[K")
	}
	p.shown = false
}

// draw shows the line with more behind it.
func (c *common) draw(more string) {
	p := c.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		line := p.line + more
		if f, ok := c.streams.err.(*os.File); ok {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && len(line) >= width { // a second line would stay
				line = line[:max(0, width-1-len(more))] + more
			}
		}
		p.shown = true
		fmt.Fprint(c.streams.err, "\r\x1b[K", line)
	}
}

// overwrite shows a line that the next one overwrites.
func (c *common) overwrite(line string) {
	c.progress.mu.Lock()
	c.progress.line = line
	c.progress.mu.Unlock()
	c.draw("")
}
