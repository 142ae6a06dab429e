// SPDX-License-Identifier: Apache-2.0

// Package packed stores tables of records small enough to live in the binary:
// about five bytes a record.
//
// A packed table is a magic number and a deflate stream of five parts, each in
// front with its length in bytes, numbers as in encoding/binary's Uvarint:
//
//	runs      count, then per run of ascending records of one module:
//	          records, first address, length and bytes of the module's name
//	low, high the distance of each record from the one before it in its run, in
//	          units of 4 bytes: low bytes, then what is above them as Uvarint
//	shared    how many bytes each symbol shares with the front of the one before
//	rest      the bytes that follow, each symbol ended by a newline
//
// Parts of one kind compress better apart. Deflate was chosen over xz by
// measurement: what the Go implementations make of the tables is of one size,
// and deflate unpacks it in a fifth of the time.
package packed

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	magic    = "textpoke records 1\n"
	unit     = 4 // addresses inside a run are so many bytes apart, or a multiple
	maxBytes = 64 << 20
)

// ErrFormat is what every damaged packed table fails with.
var ErrFormat = errors.New("packed: damaged table")

// Table is the records to pack. It must not hold symbols with a newline.
type Table interface {
	Len() int
	Record(i int) (addr uint64, symbol, module string)
}

// Encode packs a table. It fails where records of a run are not multiples of
// four bytes apart, and where writing fails.
func Encode(w io.Writer, t Table) error {
	var parts [5][]byte
	runs, err := appendRuns(nil, t, func(delta uint64) {
		parts[1] = append(parts[1], byte(delta))
		parts[2] = binary.AppendUvarint(parts[2], delta>>8)
	})
	if err != nil {
		return err
	}
	parts[0] = runs
	before := ""
	for i := range t.Len() {
		_, symbol, _ := t.Record(i)
		n := 0
		for n < min(len(symbol), len(before), 255) && symbol[n] == before[n] {
			n++
		}
		parts[3] = append(parts[3], byte(n))
		parts[4] = append(append(parts[4], symbol[n:]...), '\n')
		before = symbol
	}
	if _, err := io.WriteString(w, magic); err != nil {
		return err
	}
	z, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := z.Write(append(binary.AppendUvarint(nil, uint64(len(p))), p...)); err != nil {
			return err
		}
	}
	return z.Close()
}

// appendRuns writes the runs, and hands out the distances inside them.
func appendRuns(out []byte, t Table, distance func(uint64)) ([]byte, error) {
	n, count := t.Len(), uint64(0)
	var runs []byte
	for first := 0; first < n; {
		addr, _, module := t.Record(first)
		last := addr
		end := first + 1
		for ; end < n; end++ {
			a, _, m := t.Record(end)
			if a <= last || m != module {
				break
			}
			if (a-last)%unit != 0 {
				return nil, fmt.Errorf("packed: record %d is %d bytes behind the one before it, not a multiple of %d", end, a-last,
					unit)
			}
			distance((a - last) / unit)
			last = a
		}
		runs = binary.AppendUvarint(runs, uint64(end-first))
		runs = binary.AppendUvarint(runs, addr)
		runs = binary.AppendUvarint(runs, uint64(len(module)))
		runs = append(runs, module...)
		first = end
		count++
	}
	return append(binary.AppendUvarint(out, count), runs...), nil
}

// Decode unpacks a table, record by record. The names are valid during the call
// only. It fails with ErrFormat, or with add's error.
func Decode(data []byte, add func(addr uint64, symbol, module []byte) error) error {
	body, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return fmt.Errorf("%w: no magic number", ErrFormat)
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(body)), maxBytes))
	if err != nil {
		return fmt.Errorf("%w: %v", ErrFormat, err)
	}
	in := reader{rest: raw}
	runs := reader{rest: in.bytes(in.number())}
	low := reader{rest: in.bytes(in.number())}
	high := reader{rest: in.bytes(in.number())}
	symbols := symbolReader{
		shared: reader{rest: in.bytes(in.number())},
		rest:   reader{rest: in.bytes(in.number())},
	}
	for range runs.number() {
		n, addr := runs.number(), runs.number()
		module := runs.bytes(runs.number())
		if runs.bad || n == 0 {
			return ErrFormat
		}
		for i := range n {
			if i > 0 {
				d := low.bytes(1)
				if low.bad {
					return ErrFormat
				}
				addr += unit * (uint64(d[0]) | high.number()<<8)
			}
			symbol := symbols.next()
			if high.bad || symbols.shared.bad || symbols.rest.bad {
				return ErrFormat
			}
			if err := add(addr, symbol, module); err != nil {
				return err
			}
		}
	}
	if in.bad || runs.bad {
		return ErrFormat
	}
	return nil
}

// symbolReader puts the symbols together again.
type symbolReader struct {
	shared, rest reader
	symbol       []byte
}

func (s *symbolReader) next() []byte {
	n := s.shared.bytes(1)
	end := bytes.IndexByte(s.rest.rest, '\n')
	if s.shared.bad || end < 0 || int(n[0]) > len(s.symbol) {
		s.rest.bad = true
		return nil
	}
	s.symbol = append(s.symbol[:n[0]], s.rest.bytes(uint64(end))...)
	s.rest.bytes(1)
	return s.symbol
}

// reader takes bytes off the front, and remembers if there were too few.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	x, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return x
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
