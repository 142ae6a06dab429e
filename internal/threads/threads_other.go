// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package threads

import "errors"

// Elsewhere there is no membarrier(2) that interrupts, and threads cannot be kept on a CPU.

func Allowed() ([]int, error)           { return nil, errors.ErrUnsupported }
func Pin(int) (unpin func(), err error) { return nil, errors.ErrUnsupported }
func Register() error                   { return errors.ErrUnsupported }
func Sync() error                       { return errors.ErrUnsupported }
