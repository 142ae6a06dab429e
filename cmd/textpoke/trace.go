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

// openTrace begins the file before anything runs, and lets every combination tell it. It
// has its name only when all is over: end is [keepTrace], and does nothing where no file was asked for.
func (c *common) openTrace(path string, configs []sim.Config) (end func(failed error) error, err error) {
	if path == "" {
		return func(failed error) error { return failed }, nil
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil { // a wrong name makes no directory
		return nil, fmt.Errorf("--trace: %w", err)
	}
	f, err := files.Create(path, 0o666)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	t := timeline.New(f, nil, traceLimit)
	for i := range configs {
		configs[i].Timeline = t
	}
	finish := func() error {
		err := t.Close()
		if n := t.Dropped(); n > 0 {
			c.logger().Warn("the timeline is full, later events are left out", zap.String("trace", path),
				zap.Uint64("left_out", n), zap.Int("limit_bytes", traceLimit))
		}
		return err
	}
	return func(failed error) error { return keepTrace(f, finish, failed) }, nil
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
