// SPDX-License-Identifier: Apache-2.0

// Package batches asks what three rounds a batch come to: the experiments about interrupts by size of the vector, by order
// of addresses and by era, about the vector that somebody should choose, and about static keys.
package batches

import (
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/grid"
)

func text(name string) string { return experiments.Text("batches/" + name) }

// FlushCause asks what address order costs: a batch closes when it is full, and when the next address is lower than the
// last.
var FlushCause = grid.Must("flush-cause.experiment", text("flush-cause.experiment"), grid.More{})

// EraLadder asks how each architecture has changed running code over time, from stop_machine to today: one row an era,
// counted by compiling what kernels of that era did.
var EraLadder = grid.Must("era-ladder.experiment", text("era-ladder.experiment"), grid.More{Open: open})

func open(name string) ([]byte, error) { return experiments.Files.ReadFile("batches/plans/" + name) }
