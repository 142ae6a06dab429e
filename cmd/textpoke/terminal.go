// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// stderrIsTerminal tells whether somebody watches.
func (c *common) stderrIsTerminal() bool {
	f, ok := c.streams.err.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// overwrite shows a line that the next one overwrites.
func (c *common) overwrite(line string) { fmt.Fprint(c.streams.err, "\r\x1b[K", line) }

// clearLine ends what overwrite has shown.
func (c *common) clearLine() { fmt.Fprint(c.streams.err, "\r\x1b[K") }
