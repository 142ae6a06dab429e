// SPDX-License-Identifier: Apache-2.0

package vmlinux

import (
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/internal/inputs"
)

// Fail is what is wrong with an image. [InFile] puts the file's name in front of it where
// that is known.
func Fail(what, reason string, args ...any) error {
	return &inputs.ParseError{Value: what, Reason: fmt.Sprintf(reason, args...)}
}

// InFile names the file that an error is about.
func InFile(file string, err error) error {
	var bad *inputs.ParseError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%s: %w", file, err)
	}
	in := *bad
	in.File = file
	return &in
}
