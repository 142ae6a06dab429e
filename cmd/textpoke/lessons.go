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
)

func lessonsCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use: "lessons FILE", Annotations: map[string]string{writes: ""},
		Short: "a page of five lessons, with counterexamples to step through",
		Long: "lessons asks five questions (why three phases, why each round, what order costs, what membarrier\n" +
			"is not, what a proof adds), answers them, and writes one HTML file: the commands, their answers, and the\n" +
			"ways in which something breaks, to be stepped forwards and backwards. - is stdout.",
		Example: "  textpoke lessons lessons.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			page, err := lessons.Page(cmd.Context())
			if err != nil {
				return err
			}
			return c.toPage(args[0], page.Write)
		},
	}
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
