// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/poke"
)

// TestCertificatesArePinned: how many views each certificate has, how often a step leads
// from one to another, and what its obligations are called. Whoever changes a number says
// why: a view that is lost is a state that nobody looks at.
func TestCertificatesArePinned(t *testing.T) {
	var b strings.Builder
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, refs := range []int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef} {
				s := setup(t, arch, protocol, "")
				if s.Refs = refs; refs != int3.PerCPU && (!s.Protocol.Traps || protocol == "breakpoint-lazy") {
					continue
				}
				p := closed(t, s)
				if !p.Closed() {
					continue
				}
				fmt.Fprintf(&b, "%s %s, refs %s: %d views, %d steps\n", arch, protocol, refs, p.Views(), p.closure.steps)
				if refs != int3.PerCPU {
					continue
				}
				for _, o := range p.Obligations(false) {
					made := fmt.Sprintf("made %t", o.Fires)
					if o.goal == "(assert false)\n" {
						made = "of no step"
					}
					fmt.Fprintf(&b, "    %s, %s\n", o.Name, made)
				}
			}
		}
	}
	golden.Check(t, "testdata/certificates.txt", []byte(b.String()))
}

// TestTextsArePinned: the outline of each kernel's protocol, the ways to violations where a step is missing, and the
// hash of the obligations, which solvers accept in .ci/prove: run that where a hash changes.
func TestTextsArePinned(t *testing.T) {
	var b strings.Builder
	mutations := map[string]string{"x86_64": "drop-sync-2", "arm64": "no-grace-period", "riscv64": "no-fence"}
	for _, arch := range cpus.ArchNames() {
		mutation := mutations[arch]
		p := closed(t, setup(t, arch, "native", ""))
		o, err := p.Explain(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n%s", arch, o)
		for _, quantified := range []bool{false, true} {
			hash := sha256.New()
			for _, o := range p.Obligations(quantified) {
				fmt.Fprintln(hash, o.Text(true))
			}
			fmt.Fprintf(&b, "quantified %t: %x\n", quantified, hash.Sum(nil))
		}
		broken := closed(t, setup(t, arch, "native", mutation))
		for _, x := range broken.Broken {
			fmt.Fprintf(&b, "%s: %s: %s\n%s", mutation, x.Property, x.Step, x.Story)
		}
	}
	golden.Check(t, "testdata/texts.txt", []byte(b.String()))
}
