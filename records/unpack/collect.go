// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"fmt"
	"io"
	"slices"
)

// chunk is how many bytes are unpacked at a time behind the likely size.
const chunk = 8 << 20

// All reads r to its end, at most limit bytes. It expects about likely bytes. A buffer that doubles
// would hold up to three times the data while it grows; chunks hold it once, and are put together
// at the end if the first one, of the likely size, did not take it all.
func All(r io.Reader, likely, limit int) ([]byte, error) {
	var done [][]byte
	now, n := make([]byte, 0, max(likely, 512)+1), 0
	for {
		if len(now) == cap(now) {
			done, now = append(done, now), make([]byte, 0, chunk)
		}
		k, err := r.Read(now[len(now):cap(now)])
		now, n = now[:len(now)+k], n+k
		switch {
		case n > limit:
			return nil, tooMuch(limit)
		case err == nil:
			continue
		case len(done) > 0:
			now = slices.Concat(append(done, now)...)
		}
		if err == io.EOF {
			err = nil
		}
		return now, err
	}
}

// tooMuch is a limit in bytes that what is unpacked exceeds.
type tooMuch int

func (t tooMuch) Error() string { return fmt.Sprintf("unpacks to more than %d MiB", int(t)>>20) }
