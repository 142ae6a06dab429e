// SPDX-License-Identifier: Apache-2.0

// Package cutoff says how many CPUs are as many as any number of them: a machine of
// that size in which nothing can break stands for every larger one.
//
// The argument is that CPUs do not look at each other. Take a run of a large machine in
// which one CPU breaks a property, and leave out all CPUs but that one, the homes of the
// patchers, and one of each role. What is left is a run of the small machine: no step
// of a CPU that stays reads anything that one that is gone has written, and a patcher, which
// waits for all CPUs, waits for fewer. The same property breaks there.
//
// Whether this holds of a plan and a path is not taken from their names. Of looks at
// every step that they make in a machine a little larger than the cutoff, by
// explore.Examine, and says which condition fails where one does. docs/cutoff.md has the
// argument in full.
//
// Sites are left out in another way, and one by one: a machine of one site among others
// stands for those of any number of them. Sites holds every step of machines of two sites
// against it, by explore.ExamineSites.
package cutoff
