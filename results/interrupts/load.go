// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
)

// ProcFile is where Linux shows the interrupts of the running machine.
const ProcFile = "/proc/interrupts"

// Read reads a snapshot from a file, such as [ProcFile].
func Read(path string) (Snapshot, error) {
	f, err := inputs.Open(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read interrupts: %w", err)
	}
	defer f.Close()
	return Parse(path, f)
}

// Load reads what two file names stand for: two snapshots, or, when both name
// the same file, all diffs in it, the "<" rows before and the ">" rows after.
func Load(before, after string) ([]Pair, error) {
	same, err := files.Same(before, after)
	if err != nil {
		return nil, fmt.Errorf("read interrupts: %w", err)
	}
	if same {
		f, err := inputs.Open(before)
		if err != nil {
			return nil, fmt.Errorf("read interrupts: %w", err)
		}
		defer f.Close()
		return ParseDiff(before, f)
	}
	b, err := Read(before)
	if err != nil {
		return nil, err
	}
	a, err := Read(after)
	if err != nil {
		return nil, err
	}
	return []Pair{{Before: b, After: a}}, nil
}

// Sample reads the file (ProcFile, outside of tests) before and after a call of
// run. When run fails the pair is still valid, next to run's error: the
// interrupts of a command that failed have happened all the same.
func Sample(path string, run func() error) (Pair, error) {
	before, err := Read(path)
	if err != nil {
		return Pair{}, err
	}
	runErr := run()
	after, err := Read(path)
	if err != nil {
		return Pair{}, errors.Join(runErr, err)
	}
	before.Name, after.Name = path+" before", path+" after"
	return Pair{Before: before, After: after}, runErr
}

// ParseError says where a text stops making sense: file, line, value, reason.
type ParseError = inputs.ParseError

// wrong is what is wrong with a text: in a line, counted from 1, or 0 for all of it; with a value, or "" for none.
func wrong(file string, line int, value, reason string) error {
	if value != "" {
		value = strconv.Quote(inputs.Clip(value, 48))
	}
	return &ParseError{File: file, Line: line, Value: value, Reason: reason}
}
