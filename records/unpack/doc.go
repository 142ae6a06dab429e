// SPDX-License-Identifier: Apache-2.0

// Package unpack takes off what files of kernels are packed with: gzip, xz, zstd, bzip2,
// lz4 and lzma (scripts/Makefile.lib of Linux: cmd_gzip and its neighbours). The first
// bytes of a file tell which. Memory is bounded: no dictionary is larger than [Window],
// and [Packing.Bytes] holds little more than what it gives back.
package unpack
