// SPDX-License-Identifier: Apache-2.0

package results

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/textpoke/textpoke/internal/files"
)

// ManifestName is the file that a [Manifest] is written to.
const ManifestName = "manifest.json"

// Dir is a directory that results are written to. No file in it is ever seen
// half written: see [Dir.Create].
type Dir struct {
	path string
}

// OpenDir makes the directory if it is missing and makes sure that files can be
// created in it, so that a long run does not fail at its end.
func OpenDir(path string) (*Dir, error) {
	if path == "" {
		return nil, errors.New("output directory: the name is empty")
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("output directory %s: it is a file", path)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("make output directory %s: %w", path, files.Cause(err))
	}
	probe, err := os.CreateTemp(path, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("output directory %s: cannot create files: %w", path, files.Cause(err))
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return nil, fmt.Errorf("output directory %s: cannot remove files: %w", path, files.Cause(err))
	}
	return &Dir{path: path}, nil
}

// Create starts the file of that name. The name appears when it is committed.
func (d *Dir) Create(name string) (*files.File, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("create result file: %q is not a plain file name", name)
	}
	f, err := files.Create(filepath.Join(d.path, name), 0o666)
	if err != nil {
		return nil, fmt.Errorf("result file: %w", err)
	}
	return f, nil
}

// Write creates the file, lets fill write it and commits it. When fill fails or
// panics, nothing remains of it and a previous file of that name is untouched.
func (d *Dir) Write(name string, fill func(io.Writer) error) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := fill(f); err != nil {
		return fmt.Errorf("write result file %s: %w", filepath.Join(d.path, name), err)
	}
	return f.Commit()
}

// WriteCSV writes the table to NAME.csv, where NAME is the table's name, and returns the file's
// SHA-256 in hexadecimal.
func (d *Dir) WriteCSV(t Table) (sum string, err error) {
	h := sha256.New()
	err = d.Write(t.Name+".csv", func(w io.Writer) error { return WriteCSV(io.MultiWriter(w, h), t) })
	return hex.EncodeToString(h.Sum(nil)), err
}

// Document is a file that stands beside the tables, for people: a report, a plot.
type Document struct {
	Name  string // a plain file name
	Write func(io.Writer) error
}

// WriteDocument writes the document.
func (d *Dir) WriteDocument(doc Document) error { return d.Write(doc.Name, doc.Write) }
