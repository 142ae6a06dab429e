// SPDX-License-Identifier: Apache-2.0

package image

import "fmt"

// Unlimited stands for the slots of a vector that grows: no number of patches ends a batch.
const Unlimited = 1 << 30

// padding is how many bytes the linker may leave behind a variable, at most: up to the next
// cache line.
const padding = 64

// Slots is how many patches a batch takes, and what shows it. The kernel's own code says it
// when it is executed. The vector's room, which type information and the distance of symbols
// tell, must not be less; where the code cannot be executed, they must agree. 0 and a reason
// where nothing is known, or the witnesses contradict each other.
func (k *Kernel) Slots() (n int, how string) {
	room, witness := k.room()
	b, err := k.RunBatch()
	switch {
	case err == nil && b.Slots == 0:
		return Unlimited, b.said()
	case err == nil && room != 0 && b.Slots > room:
		return 0, fmt.Sprintf("%s, but the vector has room for %d, %s", b.said(), room, witness)
	case err == nil && room != 0 && b.Slots < room:
		return b.Slots, fmt.Sprintf("%s; the vector has room for %d, %s", b.said(), room, witness)
	case err == nil:
		return b.Slots, b.said()
	case room == 0:
		return 0, fmt.Sprintf("the size of the vector is not known: %v; %s", err, witness)
	}
	return room, fmt.Sprintf("room for %d, %s; its code cannot be executed: %v", room, witness, err)
}

// pageBytes is a page of x86_64, which the vector filled before 6.16 (TP_VEC_MAX,
// arch/x86/kernel/alternative.c).
const pageBytes = 4096

// room is how many patches fit into the vector, by its type and by the distance to the
// variable behind it; 0 where neither tells, or they contradict each other.
func (k *Kernel) room() (n int, witness string) {
	size, byType := k.layouts.poke, k.layouts.vector
	for _, name := range []string{"text_poke_array", "tp_vec"} { // since 6.16, before
		at, ok := k.Addr(name)
		next := k.After(at)
		if !ok || next == nil || size == 0 {
			continue
		}
		distance := next.Addr - at
		switch free := distance - byType*size; {
		case byType == 0 && distance == pageBytes:
			return int(distance / size), "by the distance of symbols, a page"
		case byType > 0 && free < padding: // the number of patches lies behind them
			return int(byType), "by its type and the distance of symbols"
		case byType > 0:
			return 0, fmt.Sprintf("its type has %d entries of %d bytes, and %d bytes lie between its symbol and the next", byType,
				size, distance)
		}
	}
	if byType > 0 {
		return int(byType), "by its type"
	}
	return 0, "neither its type nor the distance of symbols tells"
}
