// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && amd64)

package hardware

import (
	"context"
	"fmt"
	"runtime"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/poke"
)

// Child is what only Linux on x86-64 can have.
type Child struct{ Machine }

// NewChild says that there is none.
func NewChild(Config) (*Child, error) {
	_, err := Allowed()
	return nil, err
}

// Renew says that there is none.
func (*Child) Renew(Config) error { return ErrNone }

// Machine is what only Linux on x86-64 can have.
type Machine struct{}

// Benches says that there are none.
func Benches() ([]microbench.Bench, func(), error) {
	_, err := Allowed()
	return nil, nil, err
}

// Allowed implements nothing here.
func Allowed() (int, error) {
	return 0, fmt.Errorf("%w: it is for linux/amd64, and this is %s/%s", ErrNone, runtime.GOOS, runtime.GOARCH)
}

// New says that there is none.
func New(Config) (*Machine, error) {
	_, err := Allowed()
	return nil, err
}

// Close has nothing to end.
func (*Machine) Close() error { return nil }

// Fault has nothing to fail.
func (*Machine) Fault(func(poke.Step, int32) error) {}

// Peek sees nothing.
func (*Machine) Peek(int) isa.Text { return 0 }

// Update says that there is none.
func (*Machine) Update(context.Context, *poke.Update) (Outcome, error) {
	_, err := Allowed()
	return Outcome{}, err
}
