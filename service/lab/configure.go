// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
)

// ConfigError says which field of a Config cannot be as it was asked for.
type ConfigError struct {
	Field string // its key
	Err   error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("config.%s: %v", e.Field, e.Err) }

// Unwrap is what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }

// Limits of one request. The time that it may take has a limit besides.
const (
	maxValues = 64        // in a list
	maxText   = 4096      // bytes of a field
	maxNumber = 1_000_000 // of functions, records and whatever else takes memory each
)

// configure sets fields to texts, and returns those that were set, as they can be set
// again. Fields that name files are refused: they would be files of the server.
func configure(r *experiments.Request, config map[string][]string) (map[string]string, error) {
	byKey := map[string]*experiments.Field{}
	var keys []string
	for _, f := range r.Fields {
		byKey[f.Key()] = f
		keys = append(keys, f.Key())
	}
	set := map[string]string{}
	for key, texts := range config {
		f := byKey[key]
		err := errNoField(key, keys)
		if f != nil {
			err = setField(f, texts)
		}
		if err != nil {
			return nil, &ConfigError{key, err}
		}
		set[key] = f.String()
	}
	return set, nil
}

func errNoField(key string, keys []string) error {
	return fmt.Errorf("the experiment has no such field%s", spelling.Hint(key, keys))
}

func setField(f *experiments.Field, texts []string) error {
	whole := strings.Join(texts, ",")
	switch {
	case len(whole) > maxText:
		return fmt.Errorf("%d characters: want %d at most", len(whole), maxText)
	case strings.Count(whole, ",") >= maxValues:
		return fmt.Errorf("want %d values at most", maxValues)
	}
	if !f.Repeated {
		texts = []string{whole}
	}
	for _, text := range texts {
		if err := bounded(f, text); err != nil {
			return err
		}
		if err := f.Set(text); err != nil {
			return fmt.Errorf("%.100q: %w", text, err)
		}
	}
	return nil
}

// bounded refuses files of the server, and what would take all of its memory.
func bounded(f *experiments.Field, text string) error {
	if f.IsFile(text) {
		return errors.New("a file of the server cannot be named")
	}
	numbers := text
	if spec, ok := strings.CutPrefix(text, "gen:"); ok {
		numbers = ""
		for part := range strings.SplitSeq(spec, ",") {
			if n, ok := strings.CutPrefix(part, "n="); ok {
				numbers = n
			}
		}
	} else if f.Type != "list" {
		return nil
	}
	for part := range strings.SplitSeq(numbers, ",") {
		if n, err := strconv.ParseFloat(part, 64); err == nil && n > maxNumber {
			return fmt.Errorf("%.100q: want %d at most", part, maxNumber)
		}
	}
	return nil
}
