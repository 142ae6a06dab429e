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
	"github.com/textpoke/textpoke/results"
)

// LitmusColumns are the columns of a table of litmus tests' answers.
var LitmusColumns = results.Columns[*litmus.Row]{
	{Name: "test", Doc: "name of the test", Cell: func(r *litmus.Row) any { return r.Test }},
	{Name: "class", Doc: "machine class: arm with (DIC,IDC) of CTR_EL0, intel, amd, rv by what it promises of fetches",
		Cell: func(r *litmus.Row) any { return r.Class }},
	{Name: "outcome", Doc: "what is asked for", Cell: func(r *litmus.Row) any { return r.Outcome }},
	{Name: "verdict", Doc: "whether some execution ends so: allowed or forbidden",
		Cell: func(r *litmus.Row) any { return r.Verdict.String() }},
	{Name: "expected", Doc: "what the file's source says", Cell: expected},
	{Name: "agrees", Kind: results.Boolean, Doc: "whether the two are the same, or nothing is expected",
		Cell: func(r *litmus.Row) any { return r.Agrees }},
	{Name: "window", Doc: "the answer of the coarser model that protocols are checked against",
		Cell: func(r *litmus.Row) any { return r.Window.String() }},
	{Name: "relation", Doc: "how that stands to what is expected: weaker allows more, stronger less",
		Cell: func(r *litmus.Row) any { return r.Relation.String() }},
	{Name: "why", Doc: "and why", Cell: why},
	{Name: "states", Kind: results.Integer,
		Detail: true, Doc: "states explored", Cell: func(r *litmus.Row) any { return r.States }},
}

func expected(r *litmus.Row) any {
	if r.Expected == litmus.None {
		return results.Empty
	}
	return r.Expected.String()
}

func why(r *litmus.Row) any {
	if r.Differs == "" {
		return r.Why
	}
	return strings.TrimPrefix(r.Why+"; "+r.Differs, "; ")
}

// Litmus runs litmus tests: files, shipped tests by name, or "all" of those. It
// also says in which rows the answer is not what the file expects.
func Litmus(ctx context.Context, names []string) (t results.Table, differ []string, err error) {
	if slices.Contains(names, "all") {
		names = litmus.ShippedNames()
	}
	var all []*litmus.Row
	for _, name := range names {
		test, err := openLitmus(name)
		if err != nil {
			return t, nil, err
		}
		rows, err := test.Run(ctx)
		if err != nil {
			return t, nil, fmt.Errorf("litmus %s: %w", name, err)
		}
		for i := range rows {
			if err := rows[i].Check(); err != nil {
				differ = append(differ, err.Error())
			}
			all = append(all, &rows[i])
		}
	}
	t, err = LitmusColumns.Fill("litmus", all)
	return t, differ, err
}

// LitmusWitness is how a test's outcome comes about in the classes that allow it,
// in numbered steps.
func LitmusWitness(ctx context.Context, name string) (string, error) {
	test, err := openLitmus(name)
	if err != nil {
		return "", err
	}
	rows, err := test.Run(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range rows {
		if r := &rows[i]; len(r.Witness) > 0 {
			fmt.Fprintf(&b, "\n%s on %s: %s\n", r.Test, r.Class, r.Outcome)
			for _, step := range r.Witness {
				fmt.Fprintf(&b, "  %s\n", step)
			}
		}
	}
	return b.String(), nil
}

// openLitmus reads a test from a file or, failing that, from those shipped.
func openLitmus(name string) (*litmus.Test, error) {
	f, err := inputs.Open(name)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains(litmus.ShippedNames(), name) {
		return shippedLitmus(name)
	}
	if err != nil {
		return nil, choice.Errorf("%s: %w (textpoke check %s names those that are shipped)", choice.Name("litmus"), err, choice.Name("list"))
	}
	defer f.Close()
	return litmus.Parse(name, f)
}

func shippedLitmus(name string) (*litmus.Test, error) {
	file := name + ".litmus"
	f, err := litmus.Shipped().Open(file)
	if err != nil {
		return nil, fmt.Errorf("litmus test %s: %w", name, err)
	}
	defer f.Close()
	return litmus.Parse(file, f)
}
