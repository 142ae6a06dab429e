// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/renameio/v2"
)

// traceFormat is the version of the format of trace files.
const traceFormat = 1

// traceFile is a trace as it is saved.
type traceFile struct {
	Format int `json:"format"`
	*Trace
}

// Save writes the trace as JSON: to a temporary name that is then renamed.
func (t *Trace) Save(path string) error {
	b, err := json.MarshalIndent(traceFile{traceFormat, t}, "", " ")
	if err != nil {
		return fmt.Errorf("trace %s: %w", path, err)
	}
	if err := renameio.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("trace %s: %w", path, err)
	}
	return nil
}

// maxTraceFile bounds what is read of a trace file, in bytes.
const maxTraceFile = 256 << 20

// LoadTrace reads a trace. Errors name the file and what is wrong with it.
func LoadTrace(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTraceFile+1))
	if err == nil && len(b) > maxTraceFile {
		err = fmt.Errorf("larger than %d MiB", maxTraceFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	t, err := parseTrace(b)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	return t, nil
}

func parseTrace(b []byte) (*Trace, error) {
	t := &Trace{}
	file := traceFile{Trace: t}
	if err := json.Unmarshal(b, &file); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("byte %d: %w", syntax.Offset, err)
		}
		return nil, err
	}
	if file.Format != traceFormat {
		return nil, fmt.Errorf("format %d: want %d", file.Format, traceFormat)
	}
	if len(t.Model) == 0 {
		return nil, errors.New(`no "model": it says what the steps are of`)
	}
	for i, s := range t.Steps {
		if _, _, err := parseAction(s.Do); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return t, nil
}
