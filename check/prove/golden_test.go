// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/golden"
)

// TestTextsArePinned: what people read of each kernel's protocol, the ways to what breaks without a step of it, and the
// hash of what solvers read, which .ci/prove has them accept. Whoever changes a hash runs that.
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
