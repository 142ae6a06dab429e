// SPDX-License-Identifier: Apache-2.0

// Package inputs says where the files of a request are, and how an error names a place in one.
// Files are where the request says, except for a worker, which carries out a request of another
// machine: its rows must name the files as the request does, but their contents came in another
// way.
package inputs

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

var (
	mu     sync.RWMutex
	copies map[string]string // where each file is, by its name; nil: every file is where its name says
	busy   sync.Mutex        // held while files are elsewhere
)

// Place is where a file is.
func Place(name string) string {
	mu.RLock()
	defer mu.RUnlock()
	if copies == nil {
		return name
	}
	return copies[name] // "" is nowhere: a worker reads only these
}

// Elsewhere says where the files of a request are, by name, until back is called. Others who
// call it wait for that.
func Elsewhere(files map[string]string) (back func()) {
	busy.Lock()
	set(files)
	return func() {
		set(nil)
		busy.Unlock()
	}
}

func set(files map[string]string) {
	mu.Lock()
	defer mu.Unlock()
	copies = files
}

// ends is the context in which files are opened and read: both end when it does.
var ends atomic.Pointer[context.Context]

// Until lets opening and reading end when ctx does. They happen far below the commands that hold the context, and would
// otherwise wait for ever at a pipe that has no other end.
func Until(ctx context.Context) { ends.Store(&ctx) }

func lifetime() context.Context {
	if ctx := ends.Load(); ctx != nil {
		return *ctx
	}
	return context.Background()
}

// File is an open file whose reading ends with the context of [Until].
type File struct {
	*os.File
	ctx  context.Context
	stop func() bool
}

// Open opens the file that a request names.
func Open(name string) (*File, error) {
	f, err := At(Place(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	ctx := lifetime()
	return &File{File: f, ctx: ctx, stop: context.AfterFunc(ctx, func() { f.Close() })}, nil
}

// At opens the file at a place, as os.OpenFile does. At a pipe it waits for another process at the other end, until the
// context of [Until] ends.
func At(place string, flag int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Stat(place); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.OpenFile(place, flag, mode)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(place, flag, mode)
		done <- opened{f, err}
	}()
	ctx := lifetime()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
	}
	if both, err := os.OpenFile(place, os.O_RDWR, 0); err == nil { // which does not wait for another process (fifo(7))
		if o := <-done; o.err == nil {
			o.f.Close()
		}
		both.Close()
	}
	return nil, context.Cause(ctx)
}

// Read implements io.Reader.
func (f *File) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if err != nil && f.ctx.Err() != nil {
		err = context.Cause(f.ctx)
	}
	return n, err
}

// Close implements io.Closer.
func (f *File) Close() error {
	f.stop()
	return f.File.Close()
}

// Read is the contents of a file that a request names, and an error where they are longer than limit.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(f, name, limit)
}

// Regular is the contents of a regular file: a pipe or a device may have no end.
func Regular(place string) ([]byte, error) {
	if info, err := os.Stat(place); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", place)
	}
	return os.ReadFile(place)
}

// All is what a reader holds, and an error that names it where that is longer than limit.
func All(r io.Reader, name string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%s: larger than %d bytes", name, limit)
	}
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ParseError says where an input stops making sense. It prints as one line:
//
//	foo.txt:17: address "zz": not hexadecimal
type ParseError struct {
	File   string // as it was asked for
	Line   int    // counted from 1; 0 where the input has no lines
	Value  string // what was looked at, named and quoted: address "zz"; may be ""
	Reason string // why it was refused
}

func (e *ParseError) Error() string {
	text := e.Reason
	if e.Value != "" {
		text = e.Value + ": " + text
	}
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", oneLine(e.File), e.Line, text)
	}
	return oneLine(e.File) + ": " + text
}

// oneLine keeps a file's name from breaking the line that it is printed in.
func oneLine(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return strconv.Quote(name)
	}
	return name
}

// Shipped reads every file of a folder that is a part of the program, in the order of their names: one that is wrong
// is a mistake of ours.
func Shipped[T any](files embed.FS, dir string, read func(name, text string) (*T, error)) (all []T) {
	entries, err := files.ReadDir(dir)
	for i := 0; err == nil && i < len(entries); i++ {
		var text []byte
		var one *T
		if text, err = files.ReadFile(dir + "/" + entries[i].Name()); err == nil {
			one, err = read(entries[i].Name(), string(text))
		}
		if err == nil {
			all = append(all, *one)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("embedded %s: %v", dir, err))
	}
	return all
}

// Below are the indented lines that follow a line "NAME:" of a text that is a part of the program, without what indents
// them; nil where there is no such line.
func Below(text, name string) (lines []string) {
	block, first := strings.CutPrefix(text, name+":\n")
	if !first {
		_, block, _ = strings.Cut(text, "\n"+name+":\n")
	}
	for line := range strings.Lines(block) {
		if line[0] != ' ' && line[0] != '\t' {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// Clip shortens a value that an error shows: to so many bytes and three dots, and no letter in two.
func Clip(value string, most int) string {
	if len(value) <= most {
		return value
	}
	for most > 0 && !utf8.RuneStart(value[most]) {
		most--
	}
	return value[:most] + "..."
}
