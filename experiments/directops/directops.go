// SPDX-License-Identifier: Apache-2.0

// Package directops asks what one ops for all direct trampolines changes, for a
// call and for attaching, and what the trampoline's address in the ops was for.
package directops

import (
	"context"
	_ "embed"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
)

// Config says which trampolines are called and attached.
// Its fields are the flags of direct-ops.experiment.
type Config struct {
	Arches      []isa.Arch
	Trampolines []int
	Published   string
}

//go:embed direct-ops.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Measure: measure,
}).Experiment()

// counted are the kernels whose attaching is counted: both designs, and all instruction sets.
var counted = []string{"x86_64-6.12", "x86_64-7.2", "arm64-6.12", "riscv64-7.2"}

// row is the calls of one set-up.
type row struct {
	arch isa.Arch
	setup
	Trampolines int
	InKernel    bool
	mean
}

// Arch is the instruction set's name.
func (r *row) Arch() string { return r.arch.Traits().Name }

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"ops": func(r *row) any { return r.setup.ops() },
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	times, err := published.AttachTimes.Read(c.Published)
	if err != nil {
		return nil, err
	}
	var kernels []*ledger.Kernel
	for _, name := range counted {
		k, err := ledger.Named(name)
		if err != nil {
			return nil, err
		}
		kernels = append(kernels, k)
	}
	a := &answer{Study: s, times: times}
	if a.Attached, err = c.attach(kernels); err != nil {
		return nil, err
	}
	if err := experiments.Beside(s, "attach", a.Attached); err != nil {
		return nil, err
	}
	for _, arch := range c.Arches {
		s.Asked += 2 * len(setups(arch)) * len(c.Trampolines)
	}
	for _, arch := range c.Arches {
		t, err := records.Open(ctx, records.DefaultFor(arch.Traits().Name), records.Options{})
		if err != nil {
			return nil, err
		}
		for _, paths := range setups(arch) {
			for _, n := range c.Trampolines {
				r := row{arch: arch, Trampolines: n, InKernel: has(kernels, arch, paths[0])}
				if err := a.count(ctx, paths, t.Addrs()[:n], r); err != nil {
					return &experiments.Findings{Report: a}, err
				}
			}
		}
	}
	return &experiments.Findings{Report: a}, nil
}

// count counts the fast path and then the slow one of trampolines of these functions.
func (a *answer) count(ctx context.Context, paths [2]setup, ips []records.Addr, r row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := gather(r.arch, paths[0], ips)
	if err != nil {
		return err
	}
	for _, s := range paths {
		if s.slow {
			if err := c.traceAll(); err != nil {
				return err
			}
		}
		done := r
		done.setup, done.mean = s, c.calls(s.slow)
		if err := a.Add(&done); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether a kernel does it so: all that are known have one or the other.
func has(kernels []*ledger.Kernel, arch isa.Arch, s setup) bool {
	for _, k := range kernels {
		if k.Arch == arch.Traits().Name && k.SharedDirectOps() == s.one {
			return true
		}
	}
	return false
}
