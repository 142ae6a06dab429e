// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package journal

// Sync is the system's own: fdatasync(2) is Linux's.
func (f osFile) Sync() error { return f.File.Sync() }
