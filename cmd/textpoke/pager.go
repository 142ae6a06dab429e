// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"

	"golang.org/x/term"
)

// notFound is how shells exit, or with one more, where there is no such program, or none
// that can be executed (POSIX, Shell Command Language, 2.8.2).
const notFound = 126

// pager keeps what is meant for a screen until all of it is there. What is longer than the
// screen goes through the program that PAGER names, less without one, as git does it.
type pager struct {
	screen *os.File
	kept   bytes.Buffer
	off    bool // everything goes to the screen at once
}

// newPager is a pager for a terminal; nil for what is none.
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
