// SPDX-License-Identifier: Apache-2.0

// Package page makes one HTML file of a directory of results, which a person can
// attach to a mail: the question and its inputs, the answer, pictures, and the first
// rows of every table. The file needs no other file and runs no script.
//
// All files of the directory are foreign: text is escaped, Markdown loses its raw
// HTML and all links but those of the web, and pictures stand in img elements, in
// which a browser runs nothing. The page's policy forbids scripts and requests.
package page

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// ErrNone means that a directory holds no results.
var ErrNone = errors.New("no " + results.ManifestName + ": nothing was finished there")

// Page is what was read of a directory.
type Page struct {
	Title    string
	Sections []*Section // the directory itself, then those below it
}

// Section is one directory with a manifest.
type Section struct {
	Name     string // its path below the first, "." for the first
	Command  string // for the shell
	Manifest results.Manifest
	Unknown  bool // no manifest: the run did not get to its end
	Inputs   []Input
	Answer   []template.HTML // what was asked, and the answer in a line
	Pictures []Picture
	Prose    []template.HTML // Markdown, rendered: all else that reports say
	Tables   []Table
	Texts    []Text
	Lacks    []string // errors of files that the directory names
}

// Input is what was read, and the SHA-256 of its contents.
type Input struct{ Name, Sum string }

// Picture is a picture as an address that holds it all.
type Picture struct {
	Name    string
	Caption string // what it shows
	Source  template.URL
}

// firstText is the first line of text in a picture of ours: its title.
var firstText = regexp.MustCompile(`<text [^>]*>([^<]+)</text>`)

// caption is a picture's own title, or else its name.
func caption(name string, text []byte) string {
	if m := firstText.FindSubmatch(text); m != nil && path.Ext(name) == ".svg" {
		return fmt.Sprintf("%s (%s)", html.UnescapeString(string(m[1])), name)
	}
	return name
}

// answered is the beginning of a report: the question, and the answer in a line.
var answered = regexp.MustCompile(`(?s)^# [^\n]*\n.*?\n## Answer\n\n(?:\*\*Cut short:[^\n]*\n\n)?\*\*[^\n]*\*\*\n`)

// Text is a document of plain text.
type Text struct {
	Name, Body string
	Lines      int // of the file
	Cut        bool
}

// Read reads a directory of results and those right below it. quote makes one word of
// the shell out of a text. The error is [ErrNone] where no directory has a manifest.
func Read(files fs.FS, quote func(string) string) (*Page, error) {
	below, err := fs.Glob(files, "*/"+results.ManifestName)
	if err != nil {
		return nil, err
	}
	p := &Page{}
	for _, name := range append([]string{results.ManifestName}, below...) {
		s, err := readSection(files, path.Dir(name), quote)
		if errors.Is(err, fs.ErrNotExist) && name == results.ManifestName && len(below) > 0 {
			s, err = &Section{Name: ".", Unknown: true}, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNone
		}
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
	}
	p.Title = "textpoke"
	if args := p.Sections[0].Manifest.Args; len(args) > 0 {
		words := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
		p.Title = strings.Join(words, " ")
	}
	return p, nil
}

// readSection reads a directory. The error is [fs.ErrNotExist] where it has no manifest.
func readSection(files fs.FS, dir string, quote func(string) string) (*Section, error) {
	name := path.Join(dir, results.ManifestName)
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	s := &Section{Name: dir}
	if err := json.Unmarshal(text, &s.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.Command = strings.Join(spelling.Each(s.Manifest.Args, quote), " ")
	for _, in := range slices.Sorted(maps.Keys(s.Manifest.Inputs)) {
		s.Inputs = append(s.Inputs, Input{in, s.Manifest.Inputs[in]})
	}
	for _, f := range s.Manifest.Files {
		s.take(files, f.Name, func(text []byte) error {
			if err := s.table(f.Name, f.Columns, text); err != nil {
				return err
			}
			if n := s.Tables[len(s.Tables)-1].Of; n != f.Rows {
				return fmt.Errorf("%s says that it has %d rows; the page shows the %d that are there", results.ManifestName, f.Rows, n)
			}
			return nil
		})
	}
	for _, doc := range s.Manifest.Documents {
		// The page has from elsewhere what is in pixels and there to be scaled, and the index of the directories below.
		stem, pixels := strings.CutSuffix(doc, ".png")
		if pixels && slices.Contains(s.Manifest.Documents, stem+".svg") || doc == "index.md" {
			continue
		}
		s.take(files, doc, func(text []byte) error { return s.document(doc, text) })
	}
	return s, nil
}

// take reads a file of the directory, or notes its error.
func (s *Section) take(files fs.FS, name string, use func([]byte) error) {
	err := fmt.Errorf("%q is not a plain file name", name)
	if name == path.Base(name) && fs.ValidPath(name) {
		var text []byte
		if text, err = fs.ReadFile(files, path.Join(s.Name, name)); err == nil {
			err = use(text)
		}
	}
	if err != nil {
		s.Lacks = append(s.Lacks, fmt.Sprintf("%s: %v", name, err))
	}
}

func (s *Section) table(name string, columns []results.Column, text []byte) error {
	t, err := readTable(name, columns, text)
	if err == nil {
		s.Tables = append(s.Tables, t)
	}
	return err
}

// document takes up a document.
func (s *Section) document(name string, text []byte) error {
	switch path.Ext(name) {
	case ".svg", ".png":
		source, err := picture(name, text)
		if err == nil {
			s.Pictures = append(s.Pictures, Picture{name, caption(name, text), source})
		}
		return err
	case ".csv":
		return s.table(name, nil, text)
	case ".md":
		return s.report(text)
	}
	s.Texts = append(s.Texts, cutText(name, string(text)))
	return nil
}

// report adds a text in Markdown: its question and answer come before the pictures.
func (s *Section) report(text []byte) error {
	n := len(answered.Find(text))
	for part, to := range map[string]*[]template.HTML{string(text[:n]): &s.Answer, string(text[n:]): &s.Prose} {
		if part == "" {
			continue
		}
		var b strings.Builder
		if err := markdown.Convert([]byte(part), &b); err != nil {
			return err
		}
		*to = append(*to, template.HTML(b.String()))
	}
	return nil
}

// Took is how long the run took, to the second.
func (s *Section) Took() time.Duration { return s.Manifest.Finished.Sub(s.Manifest.Started) }

// Seeds are the seeds of random choices, "" for none.
func (s *Section) Seeds() string {
	seeds := s.Manifest.Seeds
	if s.Manifest.Seed != nil {
		seeds = []uint64{*s.Manifest.Seed}
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(seeds), " ", ", "), "[]")
}

// Calibrations are the names of those that times rest on.
func (s *Section) Calibrations() string { return strings.ReplaceAll(s.Manifest.Calibration, ",", ", ") }

//go:embed page.css
var style string

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(style) },
	"utc":   func(t time.Time) string { return t.UTC().Format("2 January 2006 15:04:05 UTC") },
}).Parse(source))

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return page.Execute(w, p) }

// rowsShown and linesShown are how much of a table or a text is shown. A page is to be
// read; the files are beside it.
const rowsShown, linesShown = 40, 60

// Table is the first rows of a table.
type Table struct {
	Name   string
	Same   []Cell // columns whose cells are all the same, of two rows or more
	Head   []results.Column
	Rows   [][]Cell
	Of     int // rows in the file
	Absent int // columns that are empty in all rows
}

// Cell is a cell of a table, or a column's name and what all its cells hold.
type Cell struct {
	Name, Text string
	Number     bool
}

// Documented tells whether it is known what columns hold.
func (t Table) Documented() bool {
	return slices.ContainsFunc(t.Head, func(c results.Column) bool { return c.Doc != "" })
}

// readTable reads a table's CSV. It leaves out columns that are empty in all rows, and says once
// what all rows share.
func readTable(name string, columns []results.Column, text []byte) (Table, error) {
	t := Table{Name: name}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err == nil && len(rows) == 0 {
		err = errors.New("it has no header")
	}
	if err != nil {
		return t, err
	}
	docs := map[string]string{}
	for _, c := range columns {
		docs[c.Name] = c.Doc
	}
	t.Of = len(rows) - 1
	t.Rows = make([][]Cell, min(t.Of, rowsShown))
	for i, name := range rows[0] {
		same, empty := t.Of > 1, true
		for _, row := range rows[1:] {
			same = same && row[i] == rows[1][i]
			empty = empty && row[i] == ""
		}
		switch {
		case empty && t.Of > 0:
			t.Absent++
		case same:
			t.Same = append(t.Same, cell(name, rows[1][i]))
		default:
			t.Head = append(t.Head, results.Column{Name: name, Doc: docs[name]})
			for j := range t.Rows {
				t.Rows[j] = append(t.Rows[j], cell(name, rows[1+j][i]))
			}
		}
	}
	return t, nil
}

// cell is a cell as people read it: times and sizes with a unit.
func cell(name, text string) Cell {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Cell{Name: name, Text: text}
	}
	if strings.Contains(text, ".") { // six digits, as in tables for people
		if v, err = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64); err == nil {
			text = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	switch (results.Column{Name: name}).Unit() {
	case "ns":
		text = results.Nanoseconds(v)
	case "B":
		text = results.Bytes(v)
	}
	return Cell{Name: name, Text: text, Number: true}
}

// cutText is the first lines of a text.
func cutText(name, body string) Text {
	lines := strings.SplitAfter(strings.TrimSuffix(body, "\n"), "\n")
	t := Text{Name: name, Lines: len(lines), Cut: len(lines) > linesShown}
	t.Body = strings.Join(lines[:min(len(lines), linesShown)], "")
	return t
}
