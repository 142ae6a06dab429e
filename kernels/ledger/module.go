// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/sched"
)

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
		a.unload(m)
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
	r.loaded = append(r.loaded, m)
	r.staticCalls(m.Sites, fmt.Sprintf("%d sites of static calls in %s", m.Sites, m.Name))
	r.sent(cpus.Sync, r.k.SyncRow, m.Records, r.mech(image.RecordFences), r.k.Facts.code(),
		fmt.Sprintf("%d records of %s are disabled, one by one", m.Records, m.Name))
	for _, key := range slices.Sorted(maps.Keys(m.Keys)) {
		if r.keys[key] > 0 {
			r.key(key, m.Keys[key])
		}
	}
	if r.on(globalOps) || r.on(graphOps) || r.on(graphStub) { // such a tracer may trace a module's functions too
		batches := r.batches(m.Records, sched.Ascending)
		each := r.mech(image.BatchRounds)
		r.note(Entry{Cause: cpus.Sync, Row: r.k.SyncRow, Pokes: batches, RoundsPerPoke: each, Fewer: batches * each,
			Basis: Assumed, Source: fmt.Sprintf("%d records of %s in %d batches: the tracer that is on may trace them all",
				m.Records, m.Name, batches)})
	}
	areas := r.mech(image.ModuleAreas) > 0
	if each := r.mech(image.ModuleSyncs); each > 0 {
		n := 2 // one part stays, and one is for its start
		if areas {
			n = has(m, image.Text, image.Data, image.Rodata, image.AfterInit, image.InitText, image.InitData, image.InitRodata)
		}
		r.sent(cpus.CoreSync, r.k.SyncRow, n, each, r.k.Facts.code(),
			fmt.Sprintf("instruction caches are flushed for %d areas of %s: %s", n, m.Name,
				r.k.Facts.Mechanisms[image.ModuleSyncs].Evidence))
	}
	each := m.Zbb * r.k.Facts.value(image.ModulePlaces)
	r.note(Entry{Cause: cpus.CoreSync, Row: r.k.SyncRow, Pokes: 1, RoundsPerPoke: each, Fewer: each, Basis: Assumed,
		Source: fmt.Sprintf("%d places of %s are written where CPUs have the extension Zbb", m.Zbb, m.Name)})
	texts, constants := has(m, image.Text, image.InitText), has(m, image.Rodata, image.InitRodata)
	once := r.mech(image.ModuleLate) // or constants become read-only again after the start
	r.fences(r.k.Facts.value(image.ModuleFences)*texts+(3-once)*constants+has(m, image.Data, image.InitData)+
		2*has(m, image.AfterInit), m, image.InitText, image.InitData, image.InitRodata)
	text, late, start := r.mech(image.ModuleTexts)*texts, has(m, image.AfterInit), 1
	why := "text becomes read-only and executable, that of the start too"
	switch {
	case r.cached():
		late = min(1, has(m, image.AfterInit, image.CallTable))
		start = cachedFree*has(m, image.InitText) + has(m, image.InitData, image.InitRodata)
		if texts > 0 {
			text = 3*texts + 2
		}
		why = "text is taken from the cache of executable memory, twice where some is for the start alone: " +
			"a large page is split, each part becomes nx, rw and rox, and the page is joined again"
	case areas:
		start = has(m, image.InitText, image.InitData, image.InitRodata)
	}
	if r.noModules && r.cached() && texts > 0 && len(r.loaded) == 1 {
		r.flush(1, "a block of 2 MiB for the cache of executable memory becomes read-only and executable")
		r.flush(1, "the block that the last module left is unmapped before")
	}
	r.flushOrMore(text, why)
	r.flush(constants, "constants become read-only")
	if late > 0 || r.mech(image.ModuleLate) == 0 || r.cached() && has(m, image.InitText) > 0 {
		r.flush(1, "the file's copy is unmapped before the next change of protection")
	}
	r.flush(late, "what is read-only after the start becomes so")
	r.flush(start, "what was for the start is freed, after a grace period")
}

// fences are the flushes of translations by firmware: one for each change of protection (all but text becomes not
// executable, too: module_enable_data_nx, kernel/module/strict_rwx.c, Linux 6.12), and for areas that are freed.
func (r *Replay) fences(changes int, m *image.Module, freed ...image.Area) {
	pages := 0
	for _, a := range freed {
		pages += (m.Areas[a] + 4095) / 4096
	}
	r.note(Entry{Cause: cpus.PageAttributes, Row: flushRow, Basis: r.k.Facts.code(),
		Pokes:         changes + has(m, freed...) + pages*r.k.Facts.value(image.PageFences),
		RoundsPerPoke: min(1, r.k.Facts.value(image.ModuleFences)),
		Source: fmt.Sprintf("firmware flushes translations: %d changes of protection, %d areas of %d pages unmapped, page by page",
			changes, has(m, freed...), pages)})
}

// unload is free_module. It frees one area after the other, or the part that stays at once.
func (r *Replay) unload(m *image.Module) {
	r.loaded = slices.DeleteFunc(r.loaded, func(other *image.Module) bool { return other.Name == m.Name })
	r.note(Entry{Cause: cpus.CoreSync, Row: r.k.wakeRow(), Pokes: m.Caches, RoundsPerPoke: r.k.Facts.value(image.CacheWakes),
		Fewer: m.Caches, OrMore: true, Basis: Assumed, Source: fmt.Sprintf("%d calls destroy caches of objects, in a loop perhaps; "+
			"each CPU is given work for that, and woken; a busy one counts it as rescheduling", m.Caches)})
	r.fences(0, m, image.Text, image.Data, image.Rodata, image.AfterInit)
	switch {
	case r.cached():
		r.flush(cachedFree*has(m, image.Text), "text goes back to the cache of executable memory")
		r.flush(has(m, image.Data, image.Rodata)+min(1, has(m, image.AfterInit, image.CallTable)),
			"other areas are unmapped, one by one")
	case r.mech(image.ModuleAreas) > 0:
		r.flush(has(m, image.Text, image.Data, image.Rodata, image.AfterInit), "areas are unmapped, one by one")
	default:
		r.flush(1, "the module is unmapped")
	}
}

// cached tells whether text comes from the cache of executable memory (execmem_alloc_rw, mm/execmem.c), a module's as
// a trampoline's.
func (r *Replay) cached() bool { return r.mech(image.TrampFlushes) >= cachedFree }

// cachedFree is the flushes of an area of text that goes back to that cache: a large page is split, nx, rw, rox, and it
// is joined again. Their senders were counted on Linux 7.2, and on 6.12 for areas (kernel measure --callers).
const cachedFree = 5

// has is how many of these areas a module takes.
func has(m *image.Module, areas ...image.Area) int {
	return spelling.Count(areas, func(a image.Area) bool { return m.Areas[a] > 0 })
}
