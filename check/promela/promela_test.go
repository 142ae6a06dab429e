// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestGolden: the models as people read them.
func TestGolden(t *testing.T) {
	for name, s := range map[string]explore.Setup{
		"breakpoint-x86_64": setup(t, "x86_64", "breakpoint", "", 2, 1),
		"word-arm64":        setup(t, "arm64", "word", "", 2, 2),
	} {
		got := exported(t, model(t, s))
		path := filepath.Join("testdata", name+".pml")
		if *update {
			if err := os.WriteFile(path, got, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what is exported now; run with -update and read the difference", path)
		}
	}
}

// TestUnsupported: what cannot be said is refused by name.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct {
		change func(*explore.Model)
		want   string
	}{
		{func(m *explore.Model) { m.Programs = append(m.Programs, m.Programs[0]) }, "2 patchers"},
		{func(m *explore.Model) { m.Preempt = true }, "preempted"},
		{func(m *explore.Model) { m.Roles[1] = cpus.Isolated }, "isolated CPUs"},
		{func(m *explore.Model) { m.Roles[1] = cpus.Idle }, "idle CPUs"},
		{func(m *explore.Model) { m.Roles[1] = cpus.IrqsOff }, "irqsoff CPUs"},
		{func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.SiteApart) }, "apart"},
		{func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.SiteApartMasked) }, "masks interrupts"},
		{func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.SiteDirect) }, "looked up"},
		{func(m *explore.Model) { m.Code.Traits.CallOps = true }, "no step loads"},
		{func(m *explore.Model) { m.Code.Always = true }, "always lead to a tracer"},
		{func(m *explore.Model) { m.NopOps = m.Programs[0].Patches[0].NewOps }, "without a tracer"},
		{func(m *explore.Model) { m.Programs[0].Plan[2].Op = poke.Lock }, "a step Lock text_mutex"},
		{func(m *explore.Model) { m.Programs[0].Plan[2].Op = poke.Expect }, "a step Expect"},
		{func(m *explore.Model) { m.Programs[0].Plan[2].Op = poke.Resume }, "a step Resume that is not paired"},
		{func(m *explore.Model) {
			for range 30 {
				m.Programs[0].Plan = append(m.Programs[0].Plan, poke.Step{Op: poke.Write, To: 1})
			}
		}, "over 29 stores"},
	} {
		m := model(t, setup(t, "x86_64", "breakpoint", "", 2, 1))
		c.change(m)
		err := Write(io.Discard, m)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want something about %q", err, c.want)
		}
	}
}
