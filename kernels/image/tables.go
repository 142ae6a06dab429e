// SPDX-License-Identifier: Apache-2.0

package image

import (
	"slices"
)

// Keys are the branches of static keys (include/linux/jump_label.h).
type Keys struct {
	Entries  int                 // of the table
	Init     int                 // of them, in text that is thrown away after boot
	Branches map[uint64][]uint64 // by key: the others' addresses, ascending
}

// Sites are the call sites of static calls (include/linux/static_call_types.h).
type Sites struct {
	Entries int
	Init    int
	Of      map[uint64][]uint64 // by key, in the order of the table
}

// Sizes of the tables' entries: place-relative, as CONFIG_HAVE_ARCH_JUMP_LABEL_RELATIVE
// has them on all three instruction sets.
const (
	jumpBytes = 16 // s32 code, s32 target, s64 key, whose low two bits are flags
	siteBytes = 8  // s32 site, s32 key, whose low two bits are flags
)

// byKey sorts the places that a table of entries of size bytes names, each relative to
// itself, by what they belong to. It counts the entries, and those that are gone after boot.
func (k *Kernel) byKey(at uint64, table []byte, size int, places map[uint64][]uint64,
	key func(at uint64, entry []byte) uint64) (entries, gone int) {
	for ; len(table) >= size; at, table = at+uint64(size), table[size:] {
		entries++
		place := at + signed(le.Uint32(table), 32)
		if !k.Stays(place) {
			gone++
			continue
		}
		of := key(at, table)
		places[of] = append(places[of], place)
	}
	return entries, gone
}

func (k *Kernel) readKeys() {
	k.Keys.Branches = map[uint64][]uint64{}
	if !k.Has("__start___jump_table") {
		k.findJumps()
	}
	at, b := k.Between("__start___jump_table", "__stop___jump_table", jumpBytes)
	k.Keys.Entries, k.Keys.Init = k.byKey(at, b, jumpBytes, k.Keys.Branches, func(at uint64, entry []byte) uint64 {
		return at + 8 + le.Uint64(entry[8:])&^3
	})
	for _, branches := range k.Keys.Branches { // jump_label_sort_entries
		slices.Sort(branches)
	}
}

func (k *Kernel) readSites() {
	k.Sites.Of = map[uint64][]uint64{}
	if !k.Has("__start_static_call_sites") {
		return
	}
	at, b := k.Between("__start_static_call_sites", "__stop_static_call_sites", siteBytes)
	k.Sites.Entries, k.Sites.Init = k.byKey(at, b, siteBytes, k.Sites.Of, func(at uint64, entry []byte) uint64 {
		return at + 4 + signed(le.Uint32(entry[4:])&^3, 32)
	})
}

// KeyNames are the keys by name: the symbol, with the distance from it where the key
// lies inside of something larger. A key without any symbol goes by its address.
func (k *Kernel) KeyNames() map[uint64]string {
	out := make(map[uint64]string, len(k.Keys.Branches))
	for key := range k.Keys.Branches {
		out[key] = k.Name(key)
	}
	return out
}
