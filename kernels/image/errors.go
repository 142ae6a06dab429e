// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/records"
)

// fail is what is wrong with an image. The file's name is put in front of it where
// that is known.
func fail(what, reason string, args ...any) error {
	return &records.ParseError{Value: what, Reason: fmt.Sprintf(reason, args...)}
}

// inFile names the file that an error is about.
func inFile(file string, err error) error {
	var bad *records.ParseError
	if errors.As(err, &bad) {
		return &records.ParseError{File: file, Line: bad.Line, Value: bad.Value, Reason: bad.Reason}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// cutShort words the end of a file that comes too early.
func cutShort(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "cut short"
	}
	return err.Error()
}
