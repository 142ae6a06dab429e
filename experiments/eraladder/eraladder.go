// SPDX-License-Identifier: Apache-2.0

// Package eraladder asks how each architecture has changed running code over
// time, from stop_machine to today: one row an era, counted by compiling the
// protocols of that era's kernels.
package eraladder

import (
	"embed"

	"github.com/textpoke/textpoke/experiments/grid"
)

//go:embed era-ladder.experiment
var text string

//go:embed plans/*.plan
var plans embed.FS

func open(name string) ([]byte, error) { return plans.ReadFile("plans/" + name) }

// Experiment is the question.
var Experiment = grid.Must("era-ladder.experiment", text, grid.More{Open: open})
