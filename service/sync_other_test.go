// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package service_test

import "os"

// syncData is the sync that the journal makes.
func syncData(f *os.File) error { return f.Sync() }
