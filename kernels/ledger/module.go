// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/textpoke/textpoke/cpus"
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
	if r.tracesAll() && r.mech(image.UpdateStops) == 0 {
		batches := r.batches(m.Records, sched.Ascending)
		each := r.mech(image.BatchRounds)
		r.note(Entry{Cause: cpus.Sync, Row: r.k.SyncRow, Pokes: batches, RoundsPerPoke: each, Fewer: batches * each,
			Basis: Assumed, Source: fmt.Sprintf("%d records of %s in %d batches: the tracer that is on may trace them all",
				m.Records, m.Name, batches)})
	}
	if each := r.k.Facts.value(image.ModuleSyncs); each > 0 {
		areas := 2 // the module, and what is for its start alone
		if r.k.since(6, 4) {
			areas = has(m, image.Text, image.Data, image.Rodata, image.AfterInit, image.InitText, image.InitData, image.InitRodata)
		}
		r.sent(cpus.CoreSync, r.k.SyncRow, areas, each, r.k.Facts.code(),
			fmt.Sprintf("instruction caches are flushed for %d areas of %s: %s", areas, m.Name,
				r.k.Facts.Mechanisms[image.ModuleSyncs].Evidence))
	}
	texts, inits := has(m, image.Text, image.InitText), has(m, image.InitData, image.InitRodata)
	switch {
	case r.cached():
		if texts > 0 {
			r.flushOrMore(3*texts+2, "text is taken from the cache of executable memory, twice where some is for the start alone: "+
				"a large page is split, each part becomes nx, rw and rox, and the page is joined again")
		}
		r.flush(has(m, image.Rodata, image.InitRodata), "constants become read-only")
		r.flush(1+min(1, has(m, image.AfterInit, image.CallTable)),
			"what is read-only after the start becomes so; the file's copy is unmapped before")
		r.flush(cachedFree*has(m, image.InitText)+inits, "what was for the start is freed, after a grace period")
	case r.areas():
		r.flushOrMore(texts, "text becomes executable, that of the start too")
		r.flush(has(m, image.Rodata, image.InitRodata), "constants become read-only")
		r.flush(1+has(m, image.AfterInit), "what is read-only after the start becomes so; the file's copy is unmapped before")
		r.flush(has(m, image.InitText)+inits, "what was for the start is unmapped, after a grace period")
	default:
		r.flushOrMore(leastProtections,
			"the protection of text, of read-only and of writable pages changes: together three to twenty were seen")
	}
}

// unload is free_module, which frees one area after the other.
func (r *Replay) unload(m *image.Module) {
	r.loaded = slices.DeleteFunc(r.loaded, func(other *image.Module) bool { return other.Name == m.Name })
	switch {
	case r.cached():
		r.flush(cachedFree*has(m, image.Text), "text goes back to the cache of executable memory")
		r.flush(has(m, image.Data, image.Rodata)+min(1, has(m, image.AfterInit, image.CallTable)),
			"other areas are unmapped, one by one")
	case r.areas():
		r.flush(has(m, image.Text, image.Data, image.Rodata, image.AfterInit), "areas are unmapped, one by one")
	default:
		r.flushOrMore(1, "the module's pages are freed: once or more; no text is changed")
	}
}

// cached tells whether text comes from the cache of executable memory (execmem_alloc_rw, mm/execmem.c), a module's as
// a trampoline's.
func (r *Replay) cached() bool { return r.mech(image.TrampFlushes) >= cachedFree }

// areas tells whether memory is kept by area (enum mod_mem_type, since Linux 6.4). x86's was looked at.
func (r *Replay) areas() bool { return r.mech(image.BatchRounds) > 0 && r.k.since(6, 4) }

// cachedFree is what an area of text takes that goes back to that cache: a large page is split, nx, rw, rox, and it is
// joined again. Who sends it was counted on Linux 7.2, and on 6.12 for areas (kernel measure --callers).
const cachedFree = 5

// leastProtections is how many changes of protection a module takes at the least on other kernels: its text becomes
// executable, its constants read-only, its data not executable (kernel/module/strict_rwx.c, Linux 6.1).
const leastProtections = 3

// has is how many of these areas a module takes.
func has(m *image.Module, areas ...image.Area) (n int) {
	for _, a := range areas {
		if m.Areas[a] {
			n++
		}
	}
	return n
}
