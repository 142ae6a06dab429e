// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/kernels/emulate"
)

// Batch is what the kernel's own code did with patches of ascending addresses, and then with
// one of a lower address.
type Batch struct {
	Slots     int // patches after which it changed text by itself; 0: never, of Queued
	Queued    int
	Rounds    int  // interrupts to every CPU that a batch of Slots took, or the last one
	FromOrder bool // a lower address ended the batch
}

// ErrNoBatch is about a kernel that has no vector of patches.
var ErrNoBatch = errors.New("no function that queues patches")

// enough is how many patches are queued before a vector is taken for one without a limit.
const enough = 5000

// RunBatch executes the functions that queue patches (smp_text_poke_batch_add, before 6.16
// text_poke_queue) and that end a batch, instruction by instruction.
func (k *Kernel) RunBatch() (Batch, error) {
	if !k.batchRan {
		k.batchRan = true
		k.batch, k.batchErr = k.runBatch()
	}
	return k.batch, k.batchErr
}

func (k *Kernel) runBatch() (Batch, error) {
	finish := k.entry("smp_text_poke_batch_finish", "text_poke_finish")
	if finish == 0 || k.Arch.Name != x86_64.Name {
		return Batch{}, ErrNoBatch
	}
	sites := k.Records.Sites
	if len(sites) < 3 {
		return Batch{}, errors.New("too few records to queue")
	}
	q := k.newQueue()
	if q.add == 0 {
		return Batch{}, ErrNoBatch
	}
	var b Batch
	for ; b.Queued < min(enough, len(sites)-1); b.Queued++ {
		if err := q.queue(sites[b.Queued+1]); err != nil {
			return Batch{}, err
		}
		if q.rounds > 0 {
			b.Slots, b.Rounds = b.Queued, q.rounds
			break
		}
	}
	if err := q.queue(sites[0]); err != nil {
		return Batch{}, err
	}
	b.FromOrder = q.rounds > 0
	if b.Slots == 0 {
		b.Rounds = q.rounds
	}
	q.rounds = 0
	if _, err := q.Call(finish); err != nil {
		return Batch{}, err
	}
	if b.Rounds == 0 {
		b.Rounds = q.rounds
	}
	if b.Rounds == 0 {
		return Batch{}, errors.New("no CPU was interrupted")
	}
	return b, nil
}

// RunSingle executes the poke of a single place (smp_text_poke_single, since 6.16) while a
// higher address is queued, and tells whether that one's batch was ended first.
func (k *Kernel) RunSingle() (alone bool, err error) {
	b, err := k.RunBatch()
	if err != nil {
		return false, err
	}
	single := k.entry("smp_text_poke_single")
	if single == 0 || len(k.Records.Sites) < 3 {
		return false, ErrNoBatch
	}
	q := k.newQueue()
	if err := q.queue(k.Records.Sites[2]); err != nil {
		return false, err
	}
	if _, err := q.Call(single, k.Records.Sites[1], q.opcode, 5, 0); err != nil {
		return false, err
	}
	return q.rounds == 2*b.Rounds, nil
}

// newQueue is a machine on which nothing is queued.
func (k *Kernel) newQueue() *queue {
	q := &queue{Machine: emulate.New(k.At), add: k.entry("smp_text_poke_batch_add", "text_poke_queue")}
	k.hook(q)
	q.opcode = q.Alloc(8)
	q.Store(q.opcode, []byte{0xe8, 0, 0, 0, 0}) // a call
	return q
}

// entry is the start of the first of some functions that there is.
func (k *Kernel) entry(names ...string) uint64 {
	for _, name := range names {
		if at, ok := k.Addr(name); ok {
			return at
		}
	}
	return 0
}

// queue is the machine on which patches are queued.
type queue struct {
	*emulate.Machine
	add, opcode uint64
	rounds      int // since the last patch was queued
}

func (q *queue) queue(site uint64) error {
	q.rounds = 0
	_, err := q.Call(q.add, site, q.opcode, 5, 0)
	return err
}

// systemRunning is SYSTEM_RUNNING (include/linux/kernel.h): before, text_poke_queue stores at
// once, in Linux 5.10 to 6.5.
const systemRunning = 3

// allocators give memory, of as many bytes as the argument says; those of a new one after
// another take the old memory's contents along.
var (
	allocators = map[string]int{"__kmalloc": 0, "__kmalloc_noprof": 0, "__kmalloc_cache_noprof": 2, "__kmalloc_large_noprof": 0,
		"kvmalloc_node": 0, "__kvmalloc_node_noprof": 0, "vmalloc": 0, "vmalloc_noprof": 0, "vzalloc": 0, "vzalloc_noprof": 0}
	reallocators = []string{"krealloc", "krealloc_noprof", "krealloc_node_align_noprof", "kvrealloc", "kvrealloc_noprof",
		"kvrealloc_node_align_noprof"}
)

// hook lets functions that reach beyond the code do no more than what counts here.
func (k *Kernel) hook(q *queue) {
	if at, ok := k.Addr("system_state"); ok {
		q.Store(at, []byte{systemRunning, 0, 0, 0})
	}
	nothing := func(m *emulate.Machine) { m.Return(0) }
	for _, name := range []string{"__fentry__", "perf_event_text_poke", "mutex_lock", "mutex_unlock", "__cond_resched", "kfree", "kvfree", "vfree",
		"sort", "sort_nonatomic", "sort_r", "sort_r_nonatomic", "mutex_lock_nested", "lock_acquire", "lock_release",
		"__might_sleep", "__might_resched"} {
		k.standIn(q, name, nothing)
	}
	k.standIn(q, "lock_is_held_type", func(m *emulate.Machine) { m.Return(1) }) // lockdep asks whether the caller has a lock
	for _, name := range broadcasts {
		k.standIn(q, name, func(m *emulate.Machine) { q.rounds++; m.Return(0) })
	}
	k.standIn(q, "__text_poke", func(m *emulate.Machine) { // function, address, bytes, length; to 5.18 without the function
		first := 1
		if m.Arg(2) <= longestPoke {
			first = 0
		}
		m.Store(m.Arg(first), m.Load(m.Arg(first+1), int(min(m.Arg(first+2), longestPoke))))
	})
	k.standIn(q, "text_poke", func(m *emulate.Machine) {
		m.Store(m.Arg(0), m.Load(m.Arg(1), int(min(m.Arg(2), longestPoke))))
	})
	k.hookMemory(q)
}

const longestPoke = 16 // bytes

// hookMemory stands in for functions with string instructions, and for the allocators.
func (k *Kernel) hookMemory(q *queue) {
	const most = 1 << 20 // bytes
	for _, name := range []string{"memcpy", "__memcpy", "memmove", "__memmove"} {
		k.standIn(q, name, func(m *emulate.Machine) {
			m.Store(m.Arg(0), m.Load(m.Arg(1), int(min(m.Arg(2), most))))
			m.Return(m.Arg(0))
		})
	}
	for _, name := range []string{"memset", "__memset"} {
		k.standIn(q, name, func(m *emulate.Machine) {
			m.Store(m.Arg(0), bytes.Repeat([]byte{byte(m.Arg(1))}, int(min(m.Arg(2), most))))
			m.Return(m.Arg(0))
		})
	}
	for name, size := range allocators {
		k.standIn(q, name, func(m *emulate.Machine) { m.Return(m.Alloc(min(m.Arg(size), most))) })
	}
	for _, name := range reallocators {
		k.standIn(q, name, func(m *emulate.Machine) {
			size := min(m.Arg(1), most)
			at := m.Alloc(size)
			if old := m.Arg(0); old != 0 {
				m.Store(at, m.Load(old, int(size)))
			}
			m.Return(at)
		})
	}
}

func (k *Kernel) standIn(q *queue, name string, do func(*emulate.Machine)) {
	for _, at := range k.Names[name] {
		q.Hooks[at] = do
	}
}

// said is what the code did, as evidence.
func (b Batch) said() string {
	s := fmt.Sprintf("executed: of patches with ascending addresses the one behind %d ends a batch", b.Slots)
	if b.Slots == 0 {
		s = fmt.Sprintf("executed: %d patches with ascending addresses go into one batch", b.Queued)
	}
	return fmt.Sprintf("%s, which interrupts every CPU %d times", s, b.Rounds)
}

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
	return 0, "its type and the distance of symbols do not tell"
}
