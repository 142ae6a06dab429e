// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// runs is the runs of an earlier version, each behind its files.
func (o *oldDirectory) runs(each func(*entry) error) error {
	request, sum, fileSum := "request", "sum", "sum"
	if o.version == 1 {
		request, sum, fileSum = "'' AS request", "0 AS sum", "0 AS sum"
	}
	type oldRun struct {
		ID                       int64
		Name, Request, Error     string
		State                    State
		Began, Ended, Bytes, Sum int64
	}
	var all []*keptRun
	if err := rowsOf(context.Background(), o, "SELECT id, name, "+request+", state, error, began, ended, bytes, "+sum+
		" FROM runs ORDER BY id", func(r *oldRun) error {
		if o.version > 1 && r.Sum != sumOf(r.Name, r.Request, string(r.State), r.Error, r.Began, r.Ended, r.Bytes) {
			return &DamagedError{o.file, fmt.Sprintf("run %d is not as it was written", r.ID)}
		}
		all = append(all, &keptRun{Run: Run{ID: r.ID, Name: r.Name, Request: r.Request, State: r.State, Error: r.Error,
			Began: fromNanos(r.Began), Ended: fromNanos(r.Ended), Bytes: r.Bytes}})
		return nil
	}); err != nil {
		return err
	}
	for _, r := range all {
		if err := rowsOf(context.Background(), o, fmt.Sprintf("SELECT name, type, hex(data) AS data, %s FROM files WHERE run=%d ORDER BY name",
			fileSum, r.ID), func(f *struct {
			Name, Type string
			Data       blob
			Sum        int64
		}) error {
			if o.version > 1 && f.Sum != sumOf(r.ID, f.Name, f.Type, []byte(f.Data)) {
				return &DamagedError{o.file, fmt.Sprintf("file %.40q of run %d is not as it was written", f.Name, r.ID)}
			}
			one := stored{f.Name, f.Type, fmt.Sprintf("%s%d-%d", runPrefix, r.ID, len(r.Files)), sha(f.Data)}
			r.Files = append(r.Files, one)
			return each(&entry{File: &kept{one.Stored, f.Data}})
		}); err != nil {
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
