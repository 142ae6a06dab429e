// SPDX-License-Identifier: Apache-2.0

// Package build makes a kernel of a distribution's source package, with patches, and with a small
// configuration that has what this project looks at: tracing, static keys and calls, modules, BPF
// with type information.
//
//	source.go   the source: a Debian package, an archive, or a tree
//	patches.go  the patches in it, taken out and put in
//	config.go   the configuration, of fragments
//	tools.go    the programs that must be there, and Debian's packages of them
//	make.go     the build, and its errors
//	build.go    all of it, and the manifest
//
// Source and objects stay in the folder, so that the next build compiles only what a patch changes.
// User, host, time and number of a build are fixed (KBUILD_BUILD_USER and its like,
// Documentation/kbuild/reproducible-builds.rst): the same input gives the same kernel.
package build
