// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// runs is the runs of an earlier version, each behind its files.
func (o *oldDirectory) runs(each func(*entry) error) error {
	request, sum, fileSum := "request", "sum", "sum"
	if o.version == 1 {
		request, sum, fileSum = "''", "0", "0"
	}
	var all []*keptRun
	if err := o.rows("SELECT id, name, "+request+", state, error, began, ended, bytes, "+sum+" FROM runs ORDER BY id",
		func(scan func(...any) error) error {
			r := &keptRun{}
			var began, ended, sum int64
			if err := scan(&r.ID, &r.Name, &r.Request, &r.State, &r.Error, &began, &ended, &r.Bytes, &sum); err != nil {
				return &DamagedError{o.file, err.Error()}
			}
			if o.version > 1 && sum != sumOf(r.Name, r.Request, string(r.State), r.Error, began, ended, r.Bytes) {
				return &DamagedError{o.file, fmt.Sprintf("run %d is not as it was written", r.ID)}
			}
			r.Began, r.Ended = fromNanos(began), fromNanos(ended)
			all = append(all, r)
			return nil
		}); err != nil {
		return err
	}
	for _, r := range all {
		if err := o.rows("SELECT name, type, data, "+fileSum+" FROM files WHERE run=? ORDER BY name", func(scan func(...any) error) error {
			var f File
			var sum int64
			if err := scan(&f.Name, &f.Type, &f.Data, &sum); err != nil {
				return &DamagedError{o.file, err.Error()}
			}
			if o.version > 1 && sum != sumOf(r.ID, f.Name, f.Type, f.Data) {
				return &DamagedError{o.file, fmt.Sprintf("file %.40q of run %d is not as it was written", f.Name, r.ID)}
			}
			one := stored{f.Name, f.Type, fmt.Sprintf("%s%d-%d", runPrefix, r.ID, len(r.Files)), sha(f.Data)}
			r.Files = append(r.Files, one)
			return each(&entry{File: &kept{one.Stored, f.Data}})
		}, r.ID); err != nil {
			return err
		}
		if err := each(&entry{Run: r}); err != nil {
			return err
		}
	}
	return nil
}

// sumOf is the sum of a row of version 2 or 3: a CRC-32C over its cells, each with its kind and
// length.
func sumOf(cells ...any) int64 {
	var text []byte
	for _, c := range cells {
		switch c := c.(type) {
		case string:
			text = append(binary.AppendUvarint(append(text, 't'), uint64(len(c))), c...)
		case []byte:
			text = append(binary.AppendUvarint(append(text, 'b'), uint64(len(c))), c...)
		case int:
			text = binary.AppendVarint(append(text, 'i'), int64(c))
		case int64:
			text = binary.AppendVarint(append(text, 'i'), c)
		case bool:
			n := int64(0)
			if c {
				n = 1
			}
			text = binary.AppendVarint(append(text, 'i'), n)
		default:
			panic(fmt.Sprintf("no sum of a %T", c)) // the rows are ours
		}
	}
	return int64(crc32.Checksum(text, castagnoli))
}

var errRuns = errors.New("not runs of ascending numbers of records")

// decodeRuns reads ascending numbers below limit, as earlier versions have them: how far each
// run begins behind the end of the one before, and how long it is (varints); then a CRC-32
// (IEEE) of that.
func decodeRuns(data []byte, limit int) (ns []int, err error) {
	n := len(data) - 4
	if n < 0 || crc32.ChecksumIEEE(data[:n]) != binary.BigEndian.Uint32(data[n:]) {
		return nil, errRuns
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
