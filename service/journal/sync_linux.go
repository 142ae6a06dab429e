// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync(2): the length is on the disk with it, and times do not matter.
func (f osFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
