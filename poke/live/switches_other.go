// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && amd64)

package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

var errNone = errors.New("plans on this process's own text are for linux/amd64")

// Switches is what only Linux on x86-64 has.
type Switches struct{}

// Caller is a goroutine that would call sites.
type Caller struct{}

// Define says that there are none.
func Define(int, int) (*Switches, error) {
	return nil, fmt.Errorf("%w, and this is %s/%s", errNone, runtime.GOOS, runtime.GOARCH)
}

// Close is never got to.
func (*Switches) Close() error { return errNone }

// Register is never got to.
func (*Switches) Register() (*Caller, error) { return nil, errNone }

// Enable is never got to.
func (*Switches) Enable(context.Context, ...int) error { return errNone }

// Disable is never got to.
func (*Switches) Disable(context.Context, ...int) error { return errNone }

// Enabled is never got to.
func (*Switches) Enabled() []int { return nil }

// Check is never got to.
func (*Switches) Check() error { return errNone }

// Unregister is never got to.
func (*Caller) Unregister() {}

// Call is never got to.
func (*Caller) Call(int) bool { return false }
