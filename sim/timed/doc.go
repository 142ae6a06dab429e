// SPDX-License-Identifier: Apache-2.0

// Package timed is the machine in virtual time: one event queue in place of
// goroutines, nanoseconds that are counted and not measured. It executes the same
// plans (poke.Patcher) and the same steps of CPUs (cpus.Step) as the live machine,
// and adds what each of them takes, from a calibration. Everything that is random
// is drawn from seeded streams, so that the same machine does the same again to the
// last event.
//
//   - queue.go holds the events, in the order of time and, at one time, of asking.
//   - machine.go is the machine and its loop. A step before whose end no other
//     event comes goes on without the queue.
//   - cpu.go lets CPUs make steps and has the time of each; space.go is where they
//     run, user space or kernel, and which tasks they have preempted.
//   - trap.go makes a trap two events, and repeats what the last one at its site came to.
//   - calls.go draws the calls of traced functions. Only calls that can meet a
//     change are events.
//   - patcher.go executes an update, and says which stores wait in the patcher's store buffer, and how long. It works
//     on ground.go. shared.go is the state that CPUs share, with the versions of text and the cache line of a reference
//     count that all handlers share; ledger.go counts interrupts.
//   - estimate.go prices an update with other costs, without executing it.
//
// The machine shares its steps and rules with the other engines, but has a memory of its own: here an access also takes
// time. A store makes its site hot and begins or ends its exposure, the interrupts of a round arrive one by one, and a
// fetch sees a store after a lag.
//
// Times are as good as the calibration. A CPU that handles a trap or an interrupt
// makes no calls meanwhile. Caches, pipelines and memory count only as far as the
// calibration has them.
package timed
