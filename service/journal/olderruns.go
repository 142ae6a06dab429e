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
	runs, err := rowsOf[struct {
		ID                       int64
		Name, Request, Error     string
		State                    State
		Began, Ended, Bytes, Sum int64
	}](context.Background(), o, "SELECT id, name, state, error, began, ended, bytes"+o.since2(", request, sum")+
		" FROM runs ORDER BY id")
	for i := 0; err == nil && i < len(runs); i++ {
		r := &runs[i]
		if o.version > 1 && r.Sum != sumOf(r.Name, r.Request, string(r.State), r.Error, r.Began, r.Ended, r.Bytes) {
			return &DamagedError{o.file, fmt.Sprintf("run %d is not as it was written", r.ID)}
		}
		k := &keptRun{Run: Run{ID: r.ID, Name: r.Name, Request: r.Request, State: r.State, Error: r.Error,
			Began: fromNanos(r.Began), Ended: fromNanos(r.Ended), Bytes: r.Bytes}}
		if k.Files, err = o.files(r.ID, each); err == nil {
			err = each(&entry{Run: k})
		}
	}
	return err
}

// files sends the files of a run, and returns where they will be.
func (o *oldDirectory) files(run int64, each func(*entry) error) (all []stored, err error) {
	rows, err := rowsOf[struct {
		Name, Type string
		Data       blob
		Sum        int64
	}](context.Background(), o, fmt.Sprintf("SELECT name, type, hex(data) AS data%s FROM files WHERE run=%d ORDER BY name",
		o.since2(", sum"), run))
	for i := 0; err == nil && i < len(rows); i++ {
		f := &rows[i]
		if o.version > 1 && f.Sum != sumOf(run, f.Name, f.Type, []byte(f.Data)) {
			return nil, &DamagedError{o.file, fmt.Sprintf("file %.40q of run %d is not as it was written", f.Name, run)}
		}
		one := stored{f.Name, f.Type, fmt.Sprintf("%s%d-%d", runPrefix, run, i), sha(f.Data)}
		all, err = append(all, one), each(&entry{File: &kept{one.Stored, f.Data}})
	}
	return all, err
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
