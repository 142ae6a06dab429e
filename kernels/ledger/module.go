// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
)

func doModule(a *asked, on bool) error { return a.module(on) }

func doUnload(a *asked, on bool) error { return a.module(!on) }

// module reads a module's file, and loads or unloads it.
func (a *asked) module(load bool) error {
	m, err := image.OpenModule(a.arg)
	if err != nil {
		return err
	}
	if m.Arch != a.k.Arch {
		return fmt.Errorf("%s is of %s", a.arg, m.Arch)
	}
	a.in("module", func() {
		if load {
			a.load(m)
			return
		}
		a.flush(1, "the module's pages are freed: once or more; no text is changed")
	})
	return nil
}

// load is load_module as far as it changes text: each site of a static call by itself,
// whether it is thrown away after the module's start or not (static_call_add_module,
// kernel/static_call_inline.c), each record where disabling one asks for a fence
// (ftrace_module_init), the branches of keys that are on already (jump_label_add_module,
// kernel/jump_label.c), and the records again if all functions are traced
// (ftrace_module_enable).
func (r *Replay) load(m *image.Module) {
	r.sent(cpus.StaticCall, r.k.callRow, m.Sites, r.mech(image.CallRounds), r.k.Facts.numbers(),
		fmt.Sprintf("%d sites of static calls in %s, one by one", m.Sites, m.Name))
	r.sent(cpus.Sync, r.k.SyncRow, m.Records, r.mech(image.RecordFences), r.k.Facts.code(),
		fmt.Sprintf("%d records of %s are disabled, one by one", m.Records, m.Name))
	for _, key := range slices.Sorted(maps.Keys(m.Keys)) {
		if r.keys[key] > 0 {
			r.key(key, m.Keys[key])
		}
	}
	traces := func(o *ops) bool {
		return o.name == globalOps.name || o.name == graphOps.name || o.name == graphStub.name
	}
	if slices.ContainsFunc(r.ops, traces) && r.mech(image.UpdateStops) == 0 {
		batches := 0
		if slots := r.k.Facts.value(image.BatchSlots); slots > 0 {
			batches = (m.Records + slots - 1) / slots
		}
		r.sent(cpus.Sync, r.k.SyncRow, batches, r.mech(image.BatchRounds), Assumed,
			fmt.Sprintf("%d records of %s in %d batches: the tracer that is on may trace them all", m.Records, m.Name, batches))
	}
	r.flush(
		leastProtections,
		"the protection of text, of read-only and of writable pages changes: together three to twenty were seen",
	)
}

// leastProtections is how many changes of protection a module takes at the least: its
// text becomes executable, its constants read-only, its data not executable
// (module_enable_text_rox, module_enable_rodata_ro, module_enable_data_nx,
// kernel/module/strict_rwx.c, Linux 6.12).
const leastProtections = 3
