// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
)

// ConfigError says which field of a Config cannot be as it was asked for.
type ConfigError struct {
	Field string // its key
	Err   error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("config.%s: %v", e.Field, e.Err) }

// Unwrap is the error about the value.
func (e *ConfigError) Unwrap() error { return e.Err }

// Limits of one request. The time that it may take has a limit besides.
const (
	maxValues = 64        // in a list
	maxText   = 4096      // bytes of a field
	maxNumber = 1_000_000 // of functions, records and other things that take memory each
)

// configure sets fields to texts, and returns those that were set, as they can be set
// again. Fields that name files are refused: they would be files of the server.
func configure(r *experiments.Request, config choice.Choices) (map[string]string, error) {
	set := map[string]string{}
	for key, texts := range config {
		i := slices.IndexFunc(r.Fields, func(f *choice.Field) bool { return f.Key() == key })
		if i < 0 {
			return nil, &ConfigError{key, errNoField(r, key)}
		}
		f := r.Fields[i]
		err := bounded(f, texts)
		if err == nil {
			err = f.SetAll(texts)
		}
		if err != nil {
			return nil, &ConfigError{key, err}
		}
		set[key] = f.String()
	}
	return set, nil
}

func errNoField(r *experiments.Request, key string) error {
	var keys []string
	for _, f := range r.Fields {
		keys = append(keys, f.Key())
	}
	return fmt.Errorf("the experiment has no such field%s", spelling.Hint(key, keys))
}

// bounded refuses files of the server, and what would take all of its memory.
func bounded(f *choice.Field, texts []string) error {
	text := strings.Join(texts, ",")
	switch {
	case len(text) > maxText:
		return fmt.Errorf("%d characters: want %d at most", len(text), maxText)
	case strings.Count(text, ",") >= maxValues:
		return fmt.Errorf("want %d values at most", maxValues)
	case f.IsFile(text) || slices.ContainsFunc(texts, f.IsFile):
		return errors.New("a file of the server cannot be named")
	}
	generated := strings.Contains(text, "gen:")
	for part := range strings.SplitSeq(text, ",") {
		number := strings.TrimPrefix(strings.TrimPrefix(part, "gen:"), "n=")
		if n, err := strconv.ParseFloat(number, 64); err == nil && n > maxNumber && (generated || f.Type == "list") {
			return fmt.Errorf("%.100q: want %d at most", part, maxNumber)
		}
	}
	return nil
}
