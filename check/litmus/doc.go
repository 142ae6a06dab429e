// SPDX-License-Identifier: Apache-2.0

// Package litmus answers one question: can this outcome of a small program
// that patches running code happen on that class of machine? A litmus test (a
// file in tests/, parse.go) has a writer, executors, an outcome and the expected
// verdict of each class. Run searches all executions of an operational model and
// says allowed or forbidden, and beside it the verdict of the coarser model of
// package cpus (class.window), on which the protocols are judged.
//
// # The model
//
// Memory is flat: a store to data or to code becomes visible to the data reads of
// all CPUs at once, when it is performed. A site of code keeps its versions in
// the order in which they were stored. The model is weak in two places: the order
// in which instructions are performed, and the version that a fetch returns.
//
// On arm and x86 a CPU fetches its instructions in program order, as far ahead as it
// likes, and performs what it has fetched in any order that its class and the
// barriers, dependencies and addresses between them leave open (order.go).
// The fetch decides as which text a site executes. From these two rules alone
// follow the tests in which data comes behind a fetch (MP.FR, LB.RF, MP.FW):
// no instruction is performed before it is fetched. One that synchronises
// the context (isb, a serialising one) keeps everything behind it from
// being fetched until it is performed. Accesses to one address keep their
// order; there is no forwarding from a store buffer, which one of the tests
// can tell (ifetch-SM+RW).
//
// A fetch returns any version of its site that is not older than the oldest one that this CPU may
// still hold. These steps move that bound:
//
//   - arm, DIC=0: an ic moves it on every CPU, for each at its own time, up to
//     the version at the point of unification. With IDC=1 that is the newest
//     version; with IDC=0 it is the one that a dc last pushed there, or any
//     newer one that went there by itself. The dsb behind an ic waits until all
//     CPUs were reached. An isb and an exception move nothing: they only
//     discard what was fetched early.
//   - arm, DIC=1: fetches are coherent, the bound is always the newest version.
//     Text that was fetched early stays old until an isb or an exception.
//   - rv: a fetch reads memory, at a time of its own: it need not come in program
//     order. Two things hold it. It comes before the accesses of the instruction that
//     it fetched, and behind all accesses before a fence.i that it stands behind. So
//     every site lags by itself, for as long as it likes, and a hart may read data
//     before it fetches what stands before the read. Classes promise more: rv(ziccid)
//     that fetches come in program order, rv(decode-w) and rv(decode) that each comes
//     before later writes, or before all later accesses, rv(ir3) that fence.i orders
//     earlier fetches too.
//   - intel, amd: a serialising instruction and an interrupt move it; so does
//     the CPU's own store through the address that it executes from, not
//     through an alias. Before that the vendors promise no order between two
//     reads of the fetcher.
//
// A site of several parts (bytes, or parcels of rv) may be fetched in parts
// from different versions: on intel always; on amd unless the parts lie in one
// naturally aligned quadword, which one read returns whole, though the next
// instruction in it is another read; on rv unless Ziccif holds and the site is
// aligned; on arm never.
//
// An IPI is taken between two instructions, when all before are performed; its
// handler synchronises as its class does (isb by exception, fence.i, the return
// from the interrupt) and then answers.
//
// Not modelled: two sites in one cache line, stores that straddle sites,
// instructions outside Arm's list of those that may be replaced live (Arm ARM,
// B2.2.5), traps. A text is only a name: the model does not execute it.
//
// # Sources
//
// The arm classes follow Simner, Flur, Pulte, Armstrong, Pichon-Pharabod,
// Maranget and Sewell, "ARMv8-A system semantics: instruction fetch in relaxed
// architectures" (ESOP 2020), with aarch64.cat and the catalogue aarch64-ifetch
// of herdtools7 for the expected kinds. intel: SDM vol. 3A, "Handling Self- and
// Cross-Modifying Code". amd: APM vol. 2, 7.6.1. rv: the unprivileged manual's
// Zifencei, Ziccif from the RVA profiles, and the five models of
// rems-project/litmus-tests-riscv-ifetch (June 2026), which calls some of the rules
// open. Its 64 tests are here in this format, as ifetch-NAME; one of them differs.
package litmus
