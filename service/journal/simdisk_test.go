// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// sector is what a disk writes wholly or not at all.
const sector = 512

// simDisk is a disk that does everything that a disk may do. What is written is in the cache at
// once and on the platter after a sync; when the power is cut any sectors of what was not synced
// are there, and any of the changes of names up to one of them; files are removed in order.
type simDisk struct {
	rng     *rand.Rand
	names   map[string]*simFile // as the process sees them
	durable map[string]*simFile // as they are after a cut of the power
	renames []rename            // changes of names that are not durable yet, in order
	lock    bool
	until   int  // operations until it ends the process; below 0: never
	flaky   bool // syncs fail and there is no room, now and then
}

// simFile is a file: what is read, what is on the platter, and what was written in between.
type simFile struct {
	cache, platter []byte
	dirty          []write
}

// rename is a change of a name.
type rename struct {
	do      func()
	removes bool
}

type write struct {
	at   int64
	data []byte // nil for a new length, at
}

// stopped is what a simulated process ends with.
type stopped struct{}

func newSimDisk(rng *rand.Rand) *simDisk {
	return &simDisk{rng: rng, names: map[string]*simFile{}, durable: map[string]*simFile{}, until: -1}
}

// step is one operation: the process may end before it.
func (d *simDisk) step() {
	if d.until == 0 {
		panic(stopped{})
	}
	d.until--
}

// fails tells whether an operation fails this time.
func (d *simDisk) fails() bool { return d.flaky && d.rng.IntN(25) == 0 }

func (w *write) onto(b []byte) []byte {
	if w.data == nil {
		if int(w.at) <= len(b) {
			return b[:w.at]
		}
		return append(b, make([]byte, int(w.at)-len(b))...)
	}
	if end := int(w.at) + len(w.data); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[w.at:], w.data)
	return b
}

// lose is what becomes of what was not synced: sector by sector it is there or not.
func (f *simFile) lose(rng *rand.Rand) {
	all := rng.IntN(3) // none, all or some
	for _, w := range f.dirty {
		if w.data == nil {
			if all == 1 || all == 2 && rng.IntN(2) == 0 {
				f.platter = w.onto(f.platter)
			}
			continue
		}
		for at := w.at; at < w.at+int64(len(w.data)); {
			end := min((at/sector+1)*sector, w.at+int64(len(w.data)))
			if all == 1 || all == 2 && rng.IntN(2) == 0 {
				one := write{at, w.data[at-w.at : end-w.at]}
				f.platter = one.onto(f.platter)
			}
			at = end
		}
	}
	f.dirty = nil
}

// cut cuts the power: what is on the platter is all that is left.
func (d *simDisk) cut() {
	all := d.rng.IntN(2) == 0
	for _, c := range d.renames[:d.rng.IntN(len(d.renames)+1)] {
		if all || c.removes || d.rng.IntN(2) == 0 {
			c.do()
		}
	}
	d.renames = nil
	files := map[*simFile]bool{}
	for _, name := range slices.Sorted(maps.Keys(d.durable)) {
		if f := d.durable[name]; !files[f] {
			files[f] = true
			f.lose(d.rng)
			f.cache = bytes.Clone(f.platter)
		}
	}
	d.names = maps.Clone(d.durable)
	d.kill()
}

// kill ends the process.
func (d *simDisk) kill() { d.lock, d.until = false, -1 }

// content is all that there is, but for the head: that a head is made harms nothing.
func (d *simDisk) content() (text string) {
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if name != headName {
			text += fmt.Sprintf("%s: %q\n", name, d.names[name].cache)
		}
	}
	return text
}

// change notes a change of names.
func (d *simDisk) change(removes bool, do func(names map[string]*simFile)) {
	do(d.names)
	d.renames = append(d.renames, rename{func() { do(d.durable) }, removes})
}

func (d *simDisk) Create(name string) (Handle, error) {
	d.step()
	f := &simFile{}
	d.change(false, func(names map[string]*simFile) { names[name] = f })
	return &simHandle{d, f}, nil
}

func (d *simDisk) Open(name string) (Handle, error) {
	if f := d.names[name]; f != nil {
		return &simHandle{d, f}, nil
	}
	return nil, fs.ErrNotExist
}

func (d *simDisk) Rename(from, to string) error {
	d.step()
	f := d.names[from]
	d.change(false, func(names map[string]*simFile) {
		names[to] = f
		delete(names, from)
	})
	return nil
}

func (d *simDisk) Remove(name string) error {
	d.step()
	d.change(true, func(names map[string]*simFile) { delete(names, name) })
	return nil
}

func (d *simDisk) List() ([]string, error) { return slices.Sorted(maps.Keys(d.names)), nil }

func (d *simDisk) Sync() error {
	d.step()
	for _, c := range d.renames {
		c.do()
	}
	d.renames = nil
	return nil
}

func (d *simDisk) Lock() error {
	if d.lock {
		return &LockedError{"the simulated disk"}
	}
	d.lock = true
	return nil
}

func (d *simDisk) Unlock() error {
	d.lock = false
	return nil
}

func (d *simDisk) Same(name string, h Handle) error {
	if d.names[name] != h.(*simHandle).f {
		return ErrBroken
	}
	if d.fails() {
		return syscall.EACCES
	}
	return nil
}

type simHandle struct {
	d *simDisk
	f *simFile
}

func (h *simHandle) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(h.f.cache)) {
		return 0, io.EOF
	}
	n := copy(b, h.f.cache[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *simHandle) WriteAt(b []byte, at int64) (int, error) {
	h.d.step()
	n := len(b)
	var err error
	if h.d.fails() {
		n, err = h.d.rng.IntN(len(b)+1), syscall.ENOSPC
	}
	w := write{at, bytes.Clone(b[:n])}
	if n > 0 {
		h.f.cache = w.onto(h.f.cache)
		h.f.dirty = append(h.f.dirty, w)
	}
	return n, err
}

func (h *simHandle) Truncate(size int64) error {
	h.d.step()
	w := write{at: size}
	h.f.cache = w.onto(h.f.cache)
	h.f.dirty = append(h.f.dirty, w)
	return nil
}

func (h *simHandle) Size() (int64, error) { return int64(len(h.f.cache)), nil }

// Sync may fail: then some of it is on the platter, the rest is not and will not be, and all of
// it can be read until the power is cut (https://wiki.postgresql.org/wiki/Fsync_Errors).
func (h *simHandle) Sync() error {
	h.d.step()
	if h.d.fails() {
		h.f.lose(h.d.rng)
		return syscall.EIO
	}
	for _, w := range h.f.dirty {
		h.f.platter = w.onto(h.f.platter)
	}
	h.f.dirty = nil
	return nil
}

func (h *simHandle) Close() error { return nil }

// exchange changes a digit in some frame of a log, and makes its sum good again. With behind the frame is of another time,
// and so has another link, and the one before it is damaged, as on a page that was put back.
func exchange(rng *rand.Rand, b []byte, behind bool) bool {
	var all [][]byte
	for at := 0; ; {
		f, ok := parseFrame(b[at:])
		if !ok {
			break
		}
		all = append(all, b[at:at+f.size])
		at += f.size
	}
	if len(all) == 0 {
		return false
	}
	at := rng.IntN(len(all))
	if behind && rng.IntN(2) == 0 {
		at = len(all) - 1
	}
	one := all[at]
	digit := bytes.LastIndexByte(one, '9')
	if digit < frameHeader || behind && at == 0 {
		return false
	}
	one[digit] = '8'
	if behind {
		one[24] ^= 1 // of its link
		all[at-1][frameHeader] ^= 1
	}
	binary.BigEndian.PutUint32(one[4:], crc32.Checksum(one[8:], castagnoli))
	return true
}

// lie harms one file as no honest disk does: a bit changes; a page is as it was once, or is
// somebody else's; a frame is another one with a good sum. It returns what it did, "" for nothing.
func (d *simDisk) lie(before map[string][]byte) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(d.names)), func(n string) bool { return len(d.names[n].cache) == 0 })
	if len(names) == 0 {
		return ""
	}
	name := names[d.rng.IntN(len(names))]
	f := d.names[name]
	was := bytes.Clone(f.cache)
	at := d.rng.IntN(len(f.cache))
	page := f.cache[at/sector*sector : min((at/sector+1)*sector, len(f.cache))]
	what := ""
	switch kind := d.rng.IntN(5); kind {
	case 3, 4: // of another time, with a good sum
		if what = "another frame"; !exchange(d.rng, f.cache, kind == 4) {
			return ""
		}
	case 0:
		f.cache[at] ^= 1 << d.rng.IntN(8)
		what = "a bit"
	case 1:
		old := make([]byte, len(f.cache))
		copy(old, before[name])
		copy(page, old[at/sector*sector:])
		what = "an older page"
	default:
		other := d.names[names[d.rng.IntN(len(names))]].cache
		copy(page, other[d.rng.IntN(len(other)):])
		what = "another's page"
	}
	if f.platter = bytes.Clone(f.cache); bytes.Equal(was, f.cache) {
		return ""
	}
	return fmt.Sprintf("%s at %d of %s", what, at, name)
}
