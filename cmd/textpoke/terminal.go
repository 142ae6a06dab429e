package main

import (
	"fmt"
	"os"

	"github.com/textpoke/textpoke/check"

	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/textpoke/textpoke/check/explore"
)

// stderrIsTerminal tells whether somebody watches.
func (c *common) stderrIsTerminal() bool {
	f, ok := c.streams.err.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// watch shows how far a search has got, on one line that the next one overwrites.
func (c *common) watch(p explore.Progress) { c.overwrite(p.String()) }

// overwrite shows a line that the next one overwrites.
func (c *common) overwrite(line string) { fmt.Fprint(c.streams.err, "\r\x1b[K", line) }

// clearLine ends what watch has shown.
func (c *common) clearLine() { fmt.Fprint(c.streams.err, "\r\x1b[K") }

// incomplete is what a search that was cut short has covered.
func incomplete(r *check.VerdictRow) []zap.Field {
	return []zap.Field{
		zap.Strings("question", r.Flags()), zap.String("why", r.Cut),
		zap.Int("complete_to_depth", r.Depth-1), zap.Uint64("states", r.States),
	}
}
