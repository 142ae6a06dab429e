// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/textpoke/textpoke/internal/inputs"
)

// MaxLine bounds a line of text in bytes, the end of the line included.
const MaxLine = 64 << 10

// lines hands out a text line by line without keeping it.
type lines struct {
	ctx  context.Context
	file string
	r    *bufio.Reader
	n    int // line last handed out, counted from 1
}

// next is the next line without its end, which may be CR LF. The bytes are
// valid until the next call. It fails with io.EOF at the end, with a
// *ParseError or with the context's error.
func (l *lines) next() ([]byte, error) {
	if l.n%4096 == 0 && l.ctx.Err() != nil {
		return nil, fmt.Errorf("read %s: %w", l.file, l.ctx.Err())
	}
	line, err := l.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, l.fail("", fmt.Sprintf("line longer than %d bytes", MaxLine))
	case err != nil && err != io.EOF:
		return nil, err
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	}
	l.n++
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// each gives all lines to take, until it fails.
func (l *lines) each(take func(line []byte) error) error {
	for {
		line, err := l.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = take(line)
		}
		if err != nil {
			return err
		}
	}
}

// each gives all lines but blank ones to add, which adds a record or passes over the line.
func (b *builder) each(l *lines, add func(line []byte) error) error {
	return l.each(func(line []byte) error {
		b.line = l.n
		if len(bytes.TrimSpace(line)) == 0 {
			b.skip()
			return nil
		}
		return add(line)
	})
}

// fail makes an error at the line after the last one handed out.
func (l *lines) fail(value, reason string) error {
	return &ParseError{File: l.file, Line: l.n + 1, Value: value, Reason: reason}
}

// field cuts the first field off a line of fields separated by blanks.
func field(line []byte) (head, rest []byte) {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	j := i
	for j < len(line) && line[j] != ' ' && line[j] != '\t' {
		j++
	}
	return line[i:j], line[j:]
}

// bracketed takes the brackets off a module's name.
func bracketed(f []byte) (name []byte, ok bool) {
	if len(f) < 3 || f[0] != '[' || f[len(f)-1] != ']' {
		return nil, false
	}
	return f[1 : len(f)-1], true
}

// parseHex reads a hexadecimal address, with or without 0x. The reason says
// what is wrong with it, "" if nothing is.
func parseHex(s []byte) (a Addr, reason string) {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		s = s[2:]
	}
	if len(s) == 0 {
		return 0, "missing"
	}
	for _, c := range s {
		var d byte
		switch {
		case '0' <= c && c <= '9':
			d = c - '0'
		case 'a' <= c && c <= 'f':
			d = c - 'a' + 10
		case 'A' <= c && c <= 'F':
			d = c - 'A' + 10
		default:
			return 0, "not hexadecimal"
		}
		if a>>60 != 0 {
			return 0, "more than 64 bits"
		}
		a = a<<4 | Addr(d)
	}
	return a, ""
}

// ParseError says where an input stops making sense: file, line, value, reason.
type ParseError = inputs.ParseError

// quotedMax is how many bytes of a wrong value an error message shows.
const quotedMax = 60

// quoted names a value in an error: address "zz". Long values are cut, and
// bytes that would upset a terminal are escaped.
func quoted[T string | []byte](what string, v T) string {
	s := string(v[:min(len(v), quotedMax)])
	q := strconv.Quote(s)
	if len(v) > quotedMax {
		q = q[:len(q)-1] + `..."`
	}
	return what + " " + q
}
