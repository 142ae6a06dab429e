// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/lessons"
	"github.com/textpoke/textpoke/check/stepper"
	"github.com/textpoke/textpoke/results"
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
			return c.toFile(args[0], page.Write)
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

// toFile writes a file, complete or not at all; - is stdout.
func (c *common) toFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(c.streams.out)
	}
	dir, err := results.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return dir.Write(filepath.Base(path), write)
}
