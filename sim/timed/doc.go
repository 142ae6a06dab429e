// SPDX-License-Identifier: Apache-2.0

// Package timed is the machine in virtual time: one event queue in place of
// goroutines, nanoseconds that are counted and not measured. It executes the same
// plans (poke.Patcher) and the same steps of CPUs (cpus.Step) as the live machine,
// and adds what each of them takes, from a calibration. Everything that is random
// is drawn from seeded streams, so that the same machine does the same again to the
// last event.
//
//   - queue.go holds the events, in the order of time and, at one time, of asking.
//   - machine.go is the machine and its loop. Somebody who is alone until what he
//     does is over goes on without the queue.
//   - cpu.go lets CPUs make steps and says what steps take; space.go is where they
//     run, user space or kernel, and which tasks they have preempted.
//   - calls.go draws the calls of traced functions, of which only those that can
//     meet something are events.
//   - patcher.go executes an update, and says which stores wait in the patcher's store buffer, and how long;
//     ground.go is what it works on, shared.go what the CPUs share, with the versions of text and the cache line that
//     all handlers want where they share one reference count, ledger.go the interrupts.
//   - estimate.go says what an update would take on other costs, without executing it.
//
// The machine shares its steps and rules with the other engines, and not its memory: here an access also keeps the books
// of time. A store makes its site hot and begins or ends its exposure, a round has its interrupts arrive one by one, and
// a fetch sees a store after a lag.
//
// Times are as good as the calibration. A CPU that handles a trap or an interrupt
// does nothing else meanwhile; caches, pipelines and memory are in the calibration
// or nowhere.
package timed
