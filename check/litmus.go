// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// LitmusColumns are the columns of a table of litmus tests' answers.
var LitmusColumns = results.Declare(declared, "litmus", map[string]func(*litmus.Row) any{"why": why})

func why(r *litmus.Row) any {
	if r.Differs == "" {
		return r.Why
	}
	return strings.TrimPrefix(r.Why+"; "+r.Differs, "; ")
}

// Litmus runs litmus tests: files, shipped tests by name, or "all" of those. It
// also says in which rows the answer is not what the file expects.
func Litmus(ctx context.Context, names []string) (all []*litmus.Row, differ []string, err error) {
	if slices.Contains(names, "all") {
		names = litmus.ShippedNames()
	}
	for _, name := range names {
		test, err := openLitmus(name)
		if err != nil {
			return nil, nil, err
		}
		rows, err := test.Run(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("litmus %s: %w", name, err)
		}
		for i := range rows {
			if err := rows[i].Check(); err != nil {
				differ = append(differ, err.Error())
			}
			all = append(all, &rows[i])
		}
	}
	return all, differ, nil
}

// LitmusAnswer is what Litmus says, in a line.
func LitmusAnswer(all []*litmus.Row, differ []string) string {
	allowed := spelling.Count(all, func(r *litmus.Row) bool { return r.Verdict == litmus.Allowed })
	return fmt.Sprintf("ANSWER: %d of %d outcomes are allowed; %d are not as expected", allowed, len(all), len(differ))
}

// openLitmus reads a test from a file or, failing that, from those shipped.
func openLitmus(name string) (*litmus.Test, error) {
	f, err := inputs.Open(name)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains(litmus.ShippedNames(), name) {
		return litmus.Shipped(name)
	}
	if err != nil {
		return nil, choice.Errorf("%s: %w (textpoke check %s names those that are shipped)", choice.Name("litmus"), err, choice.Name("list"))
	}
	defer f.Close()
	return litmus.Parse(name, f)
}
