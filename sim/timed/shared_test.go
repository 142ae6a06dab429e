// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// TestFindRemembers: a handler finds, at the same number of comparisons, what a search
// of the batch that is published finds, whoever has looked the site up before, and in
// which batch.
func TestFindRemembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := &cpus.Code{Arch: x86_64.Arch, Traits: x86_64.Arch.Traits(), Len: x86_64.SiteLen, Entry: 0x100}
		for i := range rapid.IntRange(1, 40).Draw(t, "sites") {
			code.Sites = append(code.Sites, records.Addr(0x1000+16*i))
		}
		m, err := New(Config{
			Code: code, Roles: make([]cpus.Role, 2), Costs: &calibration.Costs{},
			Lookup:  int3.Lookup(rapid.IntRange(0, len(int3.LookupNames())-1).Draw(t, "lookup")),
			Initial: func(int) isa.Text { return x86_64.Nop5 },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				m.Clear()
			case 1:
				var batch []poke.Patch
				for i, at := range code.Sites {
					if rapid.Bool().Draw(t, "patched") {
						call, _ := x86_64.Call(at, records.Addr(rapid.IntRange(0x100, 0x110).Draw(t, "target")))
						batch = append(batch, poke.Patch{Site: int32(i), Addr: at, Old: x86_64.Nop5, New: call})
					}
				}
				m.Publish(0, batch, false)
			default:
				site := rapid.IntRange(0, len(code.Sites)-1).Draw(t, "site")
				m.padOf = rapid.IntRange(0, 1).Draw(t, "cpu")
				m.cpus[m.padOf].cpu.Site = int32(site)
				var twin, probe cpus.Probe
				wantInsn, wantFound := m.Table.Find(code.Sites[site], &twin)
				insn, found := m.Find(code.Sites[site], &probe)
				if insn != wantInsn || found != wantFound || m.comparisons != twin.Comparisons {
					t.Fatalf("site %d: %v, %d, %d comparisons; want %v, %d, %d", site, insn, found, m.comparisons,
						wantInsn, wantFound, twin.Comparisons)
				}
			}
		}
	})
}
