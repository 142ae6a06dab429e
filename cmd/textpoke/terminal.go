// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// newProgress is the line of a terminal; nil where w is none, or a dumb one.
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

// notFound is how shells exit, or with one more, where there is no such program, or none
// that can be executed (POSIX, Shell Command Language, 2.8.2).
const notFound = 126

// pager keeps output for a screen until all of it is there. Output that is longer than the
// screen goes through the program that PAGER names, less without one, as git does it.
type pager struct {
	screen *os.File
	kept   bytes.Buffer
	off    bool // everything goes to the screen at once
}

// newPager is a pager for a terminal; nil where w is none.
func newPager(w io.Writer) *pager {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &pager{screen: f}
}

func (p *pager) Write(b []byte) (int, error) {
	if p.off {
		return p.screen.Write(b)
	}
	return p.kept.Write(b)
}

// flush shows what was kept.
func (p *pager) flush() error {
	if p == nil || p.kept.Len() == 0 {
		return nil
	}
	_, height, err := term.GetSize(int(p.screen.Fd()))
	name, named := os.LookupEnv("PAGER")
	if name = cmp.Or(name, "less"); named && os.Getenv("PAGER") == "" {
		name = "cat"
	}
	if err != nil || bytes.Count(p.kept.Bytes(), []byte("\n")) < height || name == "cat" {
		_, err := p.kept.WriteTo(p.screen)
		return err
	}
	less := exec.Command("sh", "-c", name)
	less.Stdin, less.Stdout, less.Stderr = bytes.NewReader(p.kept.Bytes()), p.screen, os.Stderr
	if os.Getenv("LESS") == "" { // end where all fits, colours, and leave the text there
		less.Env = append(os.Environ(), "LESS=FRX")
	}
	err = less.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() < notFound {
		return nil // who leaves the pager early has seen enough
	}
	if err != nil { // there is no such program
		_, err = p.kept.WriteTo(p.screen)
	}
	return err
}
