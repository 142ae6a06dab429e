// SPDX-License-Identifier: Apache-2.0

package cutoff_test

import (
	"context"
	"flag"
	"testing"

	"github.com/textpoke/textpoke/check/cutoff"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

var long = flag.Bool("long", false, "also run what takes minutes")

// setup is a protocol on so many busy CPUs.
func setup(t testing.TB, arch, protocol string, ncpus, sites int) explore.Setup {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	s := explore.Setup{Arch: a, Protocol: poke.Named(protocol, a.Traits()), Sites: sites, Buffer: sched.Dynamic,
		Lookup: int3.BTree, Roles: make([]cpus.Role, ncpus)}
	return s
}

func model(t testing.TB, s explore.Setup) *explore.Model {
	t.Helper()
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func of(t testing.TB, m *explore.Model) *cutoff.Answer {
	t.Helper()
	a, err := cutoff.Of(context.Background(), m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// verdict explores a model, a large one with every reduction.
func verdict(t testing.TB, m *explore.Model) explore.Verdict {
	t.Helper()
	reduce := explore.Reductions{Symmetry: true, Sites: true, Order: len(m.Roles) > 3}
	r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: reduce})
	if err != nil {
		t.Fatal(err)
	}
	return r.Verdict
}
