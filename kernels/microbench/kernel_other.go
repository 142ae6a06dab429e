// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package microbench

import "runtime"

// Elsewhere threads cannot be kept on a CPU: without CPUs to choose from, getpid is not called.

func getpid() float64  { return 0 }
func describe() string { return runtime.GOOS + " on " + runtime.GOARCH }
