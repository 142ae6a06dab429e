// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timeline"
)

// traceLimit is the size of a timeline at most, in bytes: room for some four
// million traps, 60 bytes each. A browser that opens it holds it in memory.
const traceLimit = 256 << 20

// traceFile is where --trace writes. A nil one is none.
type traceFile struct {
	timeline *timeline.Recorder
	file     *files.File
	path     string
	log      *zap.Logger
}

// openTrace begins the file before anything runs, and lets every combination tell it. It
// has its name only when all is over.
func (c *common) openTrace(path string, configs []sim.Config) (*traceFile, error) {
	if path == "" {
		return nil, nil
	}
	t := &traceFile{path: path, log: c.logger()}
	if _, err := os.Stat(filepath.Dir(path)); err != nil { // a wrong name makes no directory
		return nil, fmt.Errorf("--trace: %w", err)
	}
	var err error
	if t.file, err = files.Create(path, 0o666); err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	t.timeline = timeline.New(t.file, nil, traceLimit)
	for i := range configs {
		configs[i].Timeline = t.timeline
	}
	return t, nil
}

// close is [keepTrace], and does nothing where none was asked for.
func (t *traceFile) close(failed error) error {
	if t == nil {
		return failed
	}
	return keepTrace(t.file, func() error {
		err := t.timeline.Close()
		if n := t.timeline.Dropped(); n > 0 {
			t.log.Warn("the timeline is full, later events are left out", zap.String("trace", t.path),
				zap.Uint64("left_out", n), zap.Int("limit_bytes", traceLimit))
		}
		return err
	}, failed)
}

// keepTrace ends a timeline and gives its file the name, unless what it is of came to nothing. It hands on what became
// of that.
func keepTrace(f *files.File, end func() error, failed error) error {
	defer f.Abort()
	if failed != nil && !errors.Is(failed, errNo) && !sim.Stopped(failed) {
		return failed
	}
	err := end()
	if err == nil {
		err = f.Commit()
	}
	if err != nil && failed == nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return failed
}
