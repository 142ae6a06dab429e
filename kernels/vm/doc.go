// SPDX-License-Identifier: Apache-2.0

// Package vm boots a kernel image in an emulator and counts what an action
// interrupts: every row of /proc/interrupts on every CPU, and the firmware's
// counters of remote fences where there are some.
//
// The machine is QEMU's, by software translation: counts mean something there,
// times do not. Its only program is a guest of ours, which is the init of an
// initramfs that is made here. The guest switches on CPU 0 and tells what it has
// counted on the serial console, in lines of its own with a checksum each; the
// kernel may print between them.
//
// The guest is Go. The go tool builds it from the source that is embedded here, for the
// architecture of the image, and the program is kept in the user's cache, by the hash of the
// source: a guest that was built beforehand would be three programs in the repository that cannot
// be reviewed. QEMU translates in one thread: with several it may execute stale code, and the guest
// makes the kernel patch code. The processor of x86_64 is without cmpxchg16b, rdrand and rdseed,
// behind which QEMU 7.2 was seen to leave a wrong word of flags: kernels died there long before the
// guest. A machine that dies is booted again, twice.
package vm
