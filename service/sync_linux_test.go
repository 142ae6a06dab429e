// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData is the sync that the journal makes.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
