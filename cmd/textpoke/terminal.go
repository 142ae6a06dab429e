// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// patience is how long a command takes until a terminal shows that it still works.
const patience = 2 * time.Second

// progress is the one line that says how far a command has got, or that it still works.
// Other text on stderr takes its place until it is drawn again. A nil one shows nothing:
// stderr is no terminal.
type progress struct {
	screen io.Writer
	width  func() int // of the screen; 0 where it is unknown

	mu    sync.Mutex
	line  string
	begun time.Time
	shown bool
	stop  chan struct{} // nil while nothing is watched
}

// newProgress is the line of a terminal; nil for what is none, or a dumb one.
func newProgress(w io.Writer) *progress {
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" { // which cannot take a line back
		return nil
	}
	return &progress{screen: f, width: func() int {
		n, _, _ := term.GetSize(int(f.Fd())) // 0 where it fails
		return n
	}}
}

// stderrIsTerminal tells whether stderr is a terminal.
func (c *common) stderrIsTerminal() bool { return c.progress != nil }

// watch shows the line of a command that takes longer than patience, until unwatch.
func (p *progress) watch(name string) {
	if p == nil {
		return
	}
	p.line, p.begun, p.stop = name, time.Now(), make(chan struct{})
	go func(stop chan struct{}) {
		tick := time.NewTicker(time.Second / 2)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.draw()
			}
		}
	}(p.stop)
}

// unwatch ends the line.
func (p *progress) unwatch() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
	p.wipe()
}

// say changes the line.
func (p *progress) say(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.line = line
	p.mu.Unlock()
	p.draw()
}

// overwrite changes the line that says how far a command has got.
func (c *common) overwrite(line string) { c.progress.say(line) }

// draw shows the line with the time that it took so far, once that is worth a word.
func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := time.Since(p.begun)
	if p.stop == nil || took < patience {
		return
	}
	line, more := p.line, fmt.Sprintf(" (%v)", took.Truncate(time.Second))
	if room := p.width() - 1 - len(more); room >= 0 && len(line) > room { // a second line would stay
		line = line[:room]
	}
	p.shown = true
	fmt.Fprint(p.screen, "\r\x1b[K", line, more)
}

// wipe takes the line away. The caller holds the lock.
func (p *progress) wipe() {
	if p.shown {
		fmt.Fprint(p.screen, "\r\x1b[K")
	}
	p.shown = false
}

// Write writes to the screen in the line's place.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	return p.screen.Write(b)
}
