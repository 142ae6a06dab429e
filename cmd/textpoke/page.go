// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/lessons"
	"github.com/textpoke/textpoke/check/stepper"
	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/results/page"
)

func lessonsCommand(c *common) *cobra.Command {
	return newCommand("lessons FILE", func(cmd *cobra.Command, args []string) error {
		page, err := lessons.Page(cmd.Context())
		if err != nil {
			return err
		}
		return c.toPage(args[0], page.Write)
	}, writes)
}

// pageOf is a page of verdicts, each with its counterexample if it has one.
func pageOf(rows []check.VerdictRow) stepper.Page {
	p := stepper.Page{Title: "textpoke check: " + check.Answers(rows)}
	var cases []stepper.Case
	for i := range rows {
		cases = append(cases, lessons.Case(&rows[i]))
	}
	if len(cases) == 1 {
		if p.Title = cases[0].Answer; cases[0].Trace != nil {
			p.Title = "How it breaks: " + string(cases[0].Trace.Violation.Property)
		}
	}
	p.Chapters = []stepper.Chapter{{Cases: cases}}
	return p
}

// toPage writes a page for a browser, and says so; - is stdout.
func (c *common) toPage(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(c.streams.out)
	}
	if err := toFile(path, write); err != nil {
		return err
	}
	fmt.Fprintf(c.streams.err, "textpoke: wrote %s: open it in a browser\n", path)
	return nil
}

// toFile writes a file into a directory that is there.
func toFile(path string, write func(io.Writer) error) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("write %s: there is no directory %s", path, folder)
	}
	return files.Write(path, 0o666, write)
}

// reportName is the page that stands in the directory which it is about.
const reportName = "report.html"

func reportCommand(c *common) *cobra.Command {
	var html string
	cmd := newCommand("report DIR", func(cmd *cobra.Command, args []string) error {
		if html == "" {
			html = filepath.Join(args[0], reportName)
		}
		return c.writePage(args[0], html)
	}, writes)
	cmd.Flags().StringVar(&html, "html", "", "`file` to write; - is stdout (default DIR/"+reportName+")")
	return cmd
}

// writePage writes the page of a directory.
func (c *common) writePage(dir, file string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s: it is a file: want a directory that was written with --out", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer root.Close()
	p, err := page.Read(root.FS(), quote)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return c.toPage(file, p.Write)
}
