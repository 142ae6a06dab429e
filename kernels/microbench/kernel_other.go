// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package microbench

import (
	"errors"
	"runtime"
)

// Elsewhere there is no membarrier(2) that interrupts, and threads cannot be kept
// on a CPU: without CPUs to choose from, none of this is called.

func available() ([]int, error) { return nil, errors.ErrUnsupported }
func pin(int) error             { return errors.ErrUnsupported }
func registerSyncCore() error   { return errors.ErrUnsupported }
func syncCore() error           { return errors.ErrUnsupported }
func getpid() float64           { return 0 }
func describe() string          { return runtime.GOOS + " on " + runtime.GOARCH }
