// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/poke"
)

// TestGolden: the models as people read them.
func TestGolden(t *testing.T) {
	for name, s := range map[string]explore.Setup{
		"breakpoint-x86_64": setup(t, "x86_64", "breakpoint", "", 2, 1),
		"word-arm64":        setup(t, "arm64", "word", "", 2, 2),
	} {
		golden.Check(t, filepath.Join("testdata", name+".pml"), exported(t, model(t, s)))
	}
}

// TestSums: the sums of all models that Spin is asked about, and why the others are refused. Where one changes, let Spin
// read it again: -spin.
func TestSums(t *testing.T) {
	var out bytes.Buffer
	sums := map[string]hash.Hash{}
	var names []string
	add := func(name string, m *explore.Model) {
		if sums[name] == nil {
			sums[name], names = sha256.New(), append(names, name)
		}
		if err := Write(sums[name], m); err != nil {
			fmt.Fprintln(sums[name], err)
			fmt.Fprintf(&out, "%s: %v\n", name, err)
		}
	}
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, fetch := range cpus.Fetches() {
				eachMutation(t, arch, protocol, 2, 2, fetch, func(_ string, s explore.Setup) {
					add(fmt.Sprintf("%s %s %s", arch, protocol, fetch), model(t, s))
				})
			}
		}
		add(arch+" one CPU", model(t, setup(t, arch, "native", "", 1, 1)))
		add(arch+" three CPUs", model(t, setup(t, arch, "stop-machine", "", 3, 1)))
	}
	for refs := range int3.RefsNames() {
		s := setup(t, "x86_64", "breakpoint", "", 3, 1)
		s.Refs = int3.Refs(refs)
		add("references "+s.Refs.String(), model(t, s))
	}
	for _, b := range museum.All() {
		for _, fixed := range []bool{false, true} {
			m, err := b.Model(fixed)
			if err != nil {
				t.Fatal(err)
			}
			add(fmt.Sprintf("%s, fixed %v", b.Name, fixed), m)
		}
	}
	for _, name := range names {
		fmt.Fprintf(&out, "%.8x %s\n", sums[name].Sum(nil), name)
	}
	golden.Check(t, filepath.Join("testdata", "sums.txt"), out.Bytes())
}

// TestUnsupported: what cannot be said is refused by name.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct {
		change func(*explore.Model)
		want   string
	}{
		{func(m *explore.Model) { m.Programs = append(m.Programs, m.Programs[0]) }, "2 patchers"},
		{func(m *explore.Model) { m.Preempt = true }, "tasks that are preempted"},
		{func(m *explore.Model) { m.Roles[1] = cpus.Isolated }, "isolated CPUs"},
		{func(m *explore.Model) { m.Roles[1] = cpus.Idle }, "idle CPUs"},
		{func(m *explore.Model) { m.Roles[1] = cpus.IrqsOff }, "irqsoff CPUs"},
		{func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.SiteApart) },
			"an ops that is loaded apart from the function that is called with it"},
		{func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.SiteApartMasked) }, "an entry that masks interrupts"},
		{func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.SiteDirect) },
			"calls that are looked up by the address of their site"},
		{func(m *explore.Model) { m.Code.Traits.CallOps = true }, "a site's literal that no step loads"},
		{func(m *explore.Model) { m.Code.Always = true }, "a site that makes no call meanwhile, though it must " +
			"always lead to a tracer"},
		{func(m *explore.Model) { m.NopOps = m.Programs[0].Patches[0].NewOps }, "text that calls an ops without a tracer"},
		{func(m *explore.Model) { m.Programs[0].Plan[2].Op = poke.Lock }, "a step Lock text_mutex"},
		{func(m *explore.Model) { m.Programs[0].Plan[2].Op = poke.Expect }, "a step Expect"},
		{func(m *explore.Model) { m.Programs[0].Plan[2].Op = poke.Resume }, "a step Resume that is not paired"},
		{func(m *explore.Model) {
			for range 24 { // beside its six
				m.Programs[0].Plan = append(m.Programs[0].Plan, poke.Step{Op: poke.Write, To: 1})
			}
		}, "over 29 stores"},
		{func(m *explore.Model) {
			for range 23 {
				m.Programs[0].Plan = append(m.Programs[0].Plan, poke.Step{Op: poke.Write, To: 1})
			}
		}, ""},
		{func(m *explore.Model) { m.Programs[0].Menu = []poke.Choice{{}} },
			"the workload endless, but it can have the workload once"},
		{func(m *explore.Model) {
			plan := m.Programs[0].Plan
			plan[slices.IndexFunc(plan, func(s poke.Step) bool { return s.Op == poke.Write })].Part = poke.Bytes
		}, "a step Write bytes 0-255 0"},
	} {
		m := model(t, setup(t, "x86_64", "breakpoint", "", 2, 1))
		c.change(m)
		if c.want == "" {
			if err := Write(io.Discard, m); err != nil {
				t.Error(err)
			}
			continue
		}
		err := Write(io.Discard, m)
		if want := "a Promela model cannot have " + c.want; !errors.Is(err, ErrUnsupported) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
