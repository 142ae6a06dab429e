// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// log is the segments of a directory. The last one is written to; those before it are as
// they will be until they are removed.
type log struct {
	disk     Disk
	segments []uint64 // numbers of their first frames, ascending
	sizes    []int64  // bytes of those before the last one
	out      Handle   // the last one
	head     *head
	end      int64  // bytes of it
	next     uint64 // number of the frame that comes
	synced   uint64 // all frames before this number are on the disk
	link     link   // of the last frame
	fresh    int64  // bytes that the last segment began with
}

const segmentPrefix, segmentSuffix, unfinished = "textpoke-", ".log", ".new"

func segmentName(first uint64) string {
	return fmt.Sprintf("%s%016x%s", segmentPrefix, first, segmentSuffix)
}

// segmentOf is the number in a segment's name.
func segmentOf(name string) (first uint64, ok bool) {
	hex, ok := strings.CutSuffix(strings.TrimPrefix(name, segmentPrefix), segmentSuffix)
	first, err := strconv.ParseUint(hex, 16, 64)
	return first, ok && err == nil && name == segmentName(first)
}

// listSegments lists a directory's segments.
func listSegments(d Disk) (list []uint64, err error) {
	names, err := d.List()
	for _, name := range names {
		if first, ok := segmentOf(name); ok {
			list = append(list, first)
		}
	}
	slices.Sort(list)
	return list, err
}

// harm is a part of a log that is not as it was written.
type harm struct {
	file string
	at   int64
	why  string
}

func (h *harm) String() string { return fmt.Sprintf("byte %d of %s: %s", h.at, h.file, h.why) }

// reading is a walk over all frames of a log.
type reading struct {
	*log
	apply func(e *entry, at place) error
	harms []harm // in all segments but the last, which hold only what has ended
}

// readSegment reads a segment up to its end, or the last one to the first frame that is not whole.
// The next one begins with the frame of number before.
func (r *reading) readSegment(first, before uint64) (b []byte, at int64, err error) {
	name, last := segmentName(first), before == math.MaxUint64
	f, err := r.disk.Open(name)
	if err != nil {
		return nil, 0, err
	}
	b, err = readAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, 0, err
	}
	if !last {
		r.sizes = append(r.sizes, int64(len(b)))
	}
	if r.next != 0 && r.next < first { // the last one lost its end
		r.hurt(name, 0, fmt.Sprintf("frames %d to %d, which come before it, are missing", r.next, first-1))
	}
	for known := r.next == first; int(at) < len(b); {
		f, ok := parseFrame(b[at:])
		if ok && at == 0 {
			ok = f.number == first
			if e, err := decodeEntry(f.payload); err != nil || e.Begin == nil || known && e.Begin.Link != r.link {
				ok = false
			} else {
				r.link = e.Begin.Link
			}
			r.next = first
		}
		if !ok || f.number != r.next || f.link != r.link.after(f.number, f.payload) {
			if last {
				return b, at, nil
			}
			step := r.chained(b[at:], max(r.next, first), before)
			if step < 0 {
				r.hurt(name, at, "the rest of it is damaged")
				r.next, r.link = 0, link{}
				return b, at, nil
			}
			r.hurt(name, at, "a frame is damaged")
			at += int64(step)
			f, _ = parseFrame(b[at:])
			r.next, r.link = f.number, f.link
		}
		if err := r.take(f, place{first, at}); err != nil {
			return nil, 0, err
		}
		r.next, r.link, at = f.number+1, f.link, at+int64(f.size)
	}
	return b, at, nil
}

// chained finds the first frame behind a damaged one from which on all are chained up to the segment that begins with
// frame before; -1 for none. Whole frames that are not may be of another time, on a page that was put back.
func (r *reading) chained(b []byte, damaged, before uint64) int {
	next, err := r.read(place{segment: before})
	if err != nil || next.Begin == nil {
		return -1
	}
	for from := 0; ; {
		step := nextFrame(b[from:], damaged, before)
		if step < 0 {
			return -1
		}
		from += step
		last, _ := parseFrame(b[from:])
		end := from + last.size
		for end < len(b) {
			f, ok := parseFrame(b[end:])
			if !ok || f.number != last.number+1 || f.link != last.link.after(f.number, f.payload) {
				break
			}
			last, end = f, end+f.size
		}
		if end == len(b) && last.link == next.Begin.Link {
			return from
		}
		from, damaged = end, last.number
	}
}

func (r *reading) hurt(file string, at int64, why string) {
	r.harms = append(r.harms, harm{file, at, why})
}

func (r *reading) take(f frame, at place) error {
	e, err := decodeEntry(f.payload)
	if err == nil {
		err = r.apply(&e, at)
	}
	if err != nil {
		return fmt.Errorf("frame %d in %s: %w", f.number, segmentName(at.segment), err)
	}
	return nil
}

// readLog reads all of a log. If the end of the last segment is missing, readLog refuses the log
// where the missing frames were acknowledged, and cuts it off where a power cut may have left it
// unfinished.
func readLog(d Disk, apply func(e *entry, at place) error) (r *reading, err error) {
	r = &reading{log: &log{disk: d}, apply: apply}
	if r.segments, err = listSegments(d); err != nil {
		return nil, err
	}
	for i, first := range r.segments {
		before := uint64(math.MaxUint64)
		if i < len(r.segments)-1 {
			before = r.segments[i+1]
		}
		b, at, err := r.readSegment(first, before)
		if err != nil {
			return nil, err
		}
		if before != math.MaxUint64 {
			continue
		}
		name := segmentName(first)
		if at == 0 {
			return nil, &DamagedError{name, "its beginning is not as it was written"}
		}
		if err := lacks(name, b[at:], at, r.next); err != nil {
			return nil, err
		}
		r.end = at
	}
	return r, nil
}

// lacks looks at the bytes that follow the last whole frame of a log, and refuses them unless a
// power cut can leave them: of the frames that were being written, any may be there. Each frame
// says which frames were on the disk before it was written.
func lacks(name string, rest []byte, at int64, next uint64) error {
	for damaged := next - 1; ; {
		step := nextFrame(rest, damaged, damaged+1<<32)
		if step < 0 {
			return nil
		}
		f, _ := parseFrame(rest[step:])
		if f.synced > next {
			return &DamagedError{name, fmt.Sprintf("byte %d: frame %d is damaged or missing, and frame %d behind it was written "+
				"when that was on the disk", at, next, f.number)}
		}
		rest, damaged = rest[step:], f.number
	}
}

// resume makes a log that was read the one that is written to: what lies behind its end is
// cut off, and the last segment is written again. Of its last frames a sync may have failed:
// then they can be read and are not on the disk
// (https://wiki.postgresql.org/wiki/Fsync_Errors). A log that is refused is left as it is.
func (l *log) resume() (err error) {
	if err := l.openHead(); err != nil {
		return err
	}
	if l.out, err = l.disk.Open(segmentName(l.last())); err != nil {
		return err
	}
	b, err := readAll(l.out)
	if err != nil {
		return err
	}
	if err := l.out.Truncate(l.end); err != nil {
		return err
	}
	if _, err := l.out.WriteAt(b[:l.end], 0); err != nil {
		return err
	}
	if err := l.out.Sync(); err != nil {
		return err
	}
	if err := l.disk.Sync(); err != nil { // its name, too, may not be there yet
		return err
	}
	return l.acknowledge()
}

// last is the segment that is written to.
func (l *log) last() uint64 { return l.segments[len(l.segments)-1] }

// openHead opens the head and holds it against the log.
func (l *log) openHead() error {
	head, number, known, err := openHead(l.disk)
	if l.head = head; err != nil {
		return err
	}
	return l.follows(number, known)
}

// follows refuses a log that lacks a frame which was acknowledged.
func (l *log) follows(number uint64, known link) error {
	switch {
	case number >= l.next && number > 0:
		return &DamagedError{headName, fmt.Sprintf("frame %d was on the disk, and the log ends with %d", number, l.next-1)}
	case number > 0 && number == l.next-1 && known != l.link:
		return &DamagedError{headName, "the log is of another history"}
	}
	return nil
}
