// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// encode writes ascending numbers down as runs: how far each begins behind the end
// of the one before, and how long it is (varints); then a CRC-32 (IEEE) of that.
// SQLite keeps no sums of its rows, and what clients want must not change unseen.
func encode(ns []int) []byte {
	var out []byte
	end := 0
	for i := 0; i < len(ns); {
		j := i + 1
		for j < len(ns) && ns[j] == ns[j-1]+1 {
			j++
		}
		out = binary.AppendUvarint(out, uint64(ns[i]-end))
		out = binary.AppendUvarint(out, uint64(j-i))
		end = ns[j-1] + 1
		i = j
	}
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

var (
	errSum  = errors.New("the sum does not match")
	errRuns = errors.New("not runs of ascending numbers of records")
)

// decode reads what encode wrote, of numbers below limit.
func decode(data []byte, limit int) (ns []int, err error) {
	n := len(data) - 4
	if n < 0 || crc32.ChecksumIEEE(data[:n]) != binary.BigEndian.Uint32(data[n:]) {
		return nil, errSum
	}
	end := 0
	for data = data[:n]; len(data) > 0; {
		gap, a := binary.Uvarint(data)
		if a <= 0 || gap > uint64(limit-end) {
			return nil, errRuns
		}
		end += int(gap)
		count, b := binary.Uvarint(data[a:])
		if b <= 0 || count == 0 || count > uint64(limit-end) {
			return nil, errRuns
		}
		data = data[a+b:]
		for range count {
			ns = append(ns, end)
			end++
		}
	}
	return ns, nil
}
