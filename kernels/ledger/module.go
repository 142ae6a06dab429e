// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
)

// doModule is load_module as far as it changes text that other CPUs may be asked about:
// each site of a static call by itself, whether it is thrown away after the module's
// start or not (static_call_add_module, kernel/static_call_inline.c), and each record
// where disabling one asks for a fence (ftrace_module_init).
func doModule(a *asked, on bool) error {
	if !on {
		return nil
	}
	m, err := image.OpenModule(a.arg)
	if err != nil {
		return err
	}
	if m.Arch != a.k.Arch {
		return fmt.Errorf("%s is of %s", a.arg, m.Arch)
	}
	a.in("module", func() {
		a.sent(cpus.StaticCall, a.k.callRow, m.Sites, a.mech(image.CallRounds), a.k.Facts.numbers(),
			fmt.Sprintf("%d sites of static calls in %s, one by one", m.Sites, m.Name))
		a.sent(cpus.Sync, a.k.SyncRow, m.Records, a.mech(image.RecordFences), a.k.Facts.code(),
			fmt.Sprintf("%d records of %s are disabled, one by one", m.Records, m.Name))
		a.flush(1, "the protection of the module's pages changes: some three to twenty, which no image tells")
	})
	return nil
}
