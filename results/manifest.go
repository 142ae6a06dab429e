// SPDX-License-Identifier: Apache-2.0

package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
)

// Manifest says how the files in a directory came to be, and how to make them
// again.
type Manifest struct {
	// Version and Revision name the program: its release, and the commit it was
	// built from.
	Version  string `json:"version"`
	Revision string `json:"revision"`
	// Args is the command line, the program's name first.
	Args []string `json:"args"`
	// Seed fixed every random choice; nil (null) when there was none to make, or
	// when there were several.
	Seed *uint64 `json:"seed"`
	// Seeds are those of a sweep over several.
	Seeds []uint64 `json:"seeds,omitempty"`
	// Calibration names the set of costs that times rest on; empty when there are
	// no times.
	Calibration string `json:"calibration"`
	// Inputs maps each file or built-in table that was read to the SHA-256 of its
	// contents, in hexadecimal.
	Inputs map[string]string `json:"inputs"`
	// Started and Finished are written in UTC, to the second (RFC 3339).
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	// Complete is false when the run was cut short: the files hold what was
	// finished by then.
	Complete bool `json:"complete"`
	// Part is the part that the files hold of a sweep that is divided among machines; nil
	// for all of it.
	Part *Part `json:"part,omitempty"`
	// Exit is the exit code, where the answer that the files hold is not yes.
	Exit int `json:"exit,omitempty"`
	// Reused is how many rows an interrupted run had finished before, and this one
	// took over.
	Reused int `json:"reused,omitempty"`
	// Files describes the tables in the directory.
	Files []ManifestFile `json:"files"`
	// Documents names the files beside the tables, if there are any.
	Documents []string `json:"documents,omitempty"`
}

// Part is one of Of parts of a sweep, the Index-th from 0: of its Points points the
// Index-th and every Of-th after it.
type Part struct {
	Index  int `json:"index"`
	Of     int `json:"of"`
	Points int `json:"points"`
	// Rows is how many rows of the first table every point has.
	Rows int `json:"rows_per_point"`
}

// ManifestFile describes one table in the directory.
type ManifestFile struct {
	Name    string   `json:"name"`
	Rows    int      `json:"rows"`
	SHA256  string   `json:"sha256,omitempty"` // of its contents, in hexadecimal
	Columns []Column `json:"columns"`
}

// AddInput hashes what r yields and notes it under the given name.
func (m *Manifest) AddInput(name string, r io.Reader) error {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return fmt.Errorf("hash input %s: %w", name, err)
	}
	m.AddSum(name, hex.EncodeToString(h.Sum(nil)))
	return nil
}

// AddSum notes an input's SHA-256, in hexadecimal, under the given name.
func (m *Manifest) AddSum(name, sum string) {
	if m.Inputs == nil {
		m.Inputs = make(map[string]string)
	}
	m.Inputs[name] = sum
}

// AddInputFile hashes a file and notes it under its path.
func (m *Manifest) AddInputFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("hash input: %w", err)
	}
	defer f.Close()
	return m.AddInput(filepath.ToSlash(path), f)
}

// AddTable describes a table that was written with [Dir.WriteCSV], which gave its SHA-256.
func (m *Manifest) AddTable(t Table, sum string) {
	m.Files = append(m.Files, ManifestFile{Name: t.Name + ".csv", Rows: len(t.Rows), SHA256: sum, Columns: t.Columns})
}

// AddDocument names a file that was written with [Dir.WriteDocument].
func (m *Manifest) AddDocument(d Document) { m.Documents = append(m.Documents, d.Name) }

// maxManifest is how long a manifest may be, in bytes.
const maxManifest = 64 << 20

// ReadManifest reads the manifest of a directory. Where there is none the error is fs.ErrNotExist.
func ReadManifest(dir string) (m Manifest, err error) {
	path := filepath.Join(dir, ManifestName)
	text, err := inputs.Read(path, maxManifest)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return m, err
}

// WriteManifest writes the manifest to manifest.json. It comes last: a directory
// without a manifest belongs to a run that did not get to its end.
func (d *Dir) WriteManifest(m Manifest) error {
	m.Started = m.Started.UTC().Truncate(time.Second)
	m.Finished = m.Finished.UTC().Truncate(time.Second)
	// Nothing to list is an empty list in the file, not null.
	if m.Args == nil {
		m.Args = []string{}
	}
	if m.Inputs == nil {
		m.Inputs = map[string]string{}
	}
	if m.Files == nil {
		m.Files = []ManifestFile{}
	}
	return d.Write(ManifestName, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(m)
	})
}

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
