// SPDX-License-Identifier: Apache-2.0

// Package published holds figures that others measured and published, each with its
// source. They are inputs: some calibrate a model, others are compared with its results,
// and each use says which. A file with the same columns can replace any table.
package published

import (
	"bytes"
	"embed"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/sheet"
)

//go:embed data/*.csv
var data embed.FS

// Set is one published table with rows of type T, whose tags name the columns ([sheet.Read]). A
// table of one's own may leave the column "source" out.
type Set[T any] struct {
	Name   string // of the embedded file, without .csv
	Source string // of all its rows; "" where each row names its own
}

// maxFile is how long a table may be, in bytes.
const maxFile = 16 << 20

// Read reads the table: that of a file, or, for "", the one that comes with the
// program. Errors are a *[inputs.ParseError] or about the file as a whole.
func (s *Set[T]) Read(file string) ([]T, error) {
	if file == "" {
		f, err := data.Open("data/" + s.Name + ".csv")
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return s.read(s.Name, f)
	}
	text, err := inputs.Read(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return s.read(file, bytes.NewReader(text))
}

// read reads the table from r, which errors call name.
func (s *Set[T]) read(name string, r io.Reader) ([]T, error) { return sheet.Read[T](name, r) }

// Figure is a number that may be missing.
type Figure = sheet.Figure
