// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import "errors"

// Forbid says that it cannot.
func Forbid(string) error { return errors.ErrUnsupported }

// Mounts says that it cannot.
func Mounts(func() error) error { return errors.ErrUnsupported }

// Works tells that it does not.
func Works() bool { return false }
