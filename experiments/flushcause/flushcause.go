// SPDX-License-Identifier: Apache-2.0

// Package flushcause asks what address order costs: a batch closes when it is
// full, and when the next address is lower than the last.
package flushcause

import (
	_ "embed"

	"github.com/textpoke/textpoke/experiments/grid"
)

//go:embed flush-cause.experiment
var text string

// Experiment is the question.
var Experiment = grid.Must("flush-cause.experiment", text, grid.More{})
