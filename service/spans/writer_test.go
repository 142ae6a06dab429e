// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"bufio"
	"errors"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/service"
)

// TestLine: the whole line, with the identifiers numbered in the order in which they come.
func TestLine(t *testing.T) {
	failed := live(2)
	failed.State, failed.Error, failed.Waits, failed.Batch, failed.Enable = "failed", "why", true, 0, false
	var out memory
	w := New(&out)
	w.Tell(live(1))
	w.Tell(failed)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	golden.Check(t, filepath.Join("testdata", "lines.json"),
		regexp.MustCompile(`"[0-9a-f]{16}"`).ReplaceAllFunc(out.Bytes(), func(id []byte) []byte {
			if seen[string(id)] == "" {
				seen[string(id)] = `"` + string(rune('A'+len(seen))) + `"`
			}
			return []byte(seen[string(id)])
		}))
}

// disk counts what is written to it, and takes no more than its room.
type disk struct{ writes, room int }

func (d *disk) Write(b []byte) (int, error) {
	if d.writes++; d.writes > d.room {
		return 0, errFull
	}
	return len(b), nil
}

// TestTogether: updates that wait are written together, and what is not on the disk when it fills up is left out.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		waiting, comes, room int
		writes, left         int
	}{
		{waiting: 3, room: 9, writes: 1},
		{waiting: 3, room: 0, writes: 1, left: 3},
		{comes: 3, room: 9, writes: 3},
		{comes: 4, room: 2, writes: 3, left: 2},
		{room: 0},
	} {
		d, w := &disk{room: c.room}, &Writer{queue: make(chan service.Course, c.waiting), ended: make(chan error, 1)}
		for range c.waiting {
			w.Tell(live(1))
		}
		if c.comes > 0 {
			go func() {
				for range c.comes {
					w.queue <- live(1)
				}
				close(w.queue)
			}()
		} else {
			close(w.queue)
		}
		err := w.run(bufio.NewWriterSize(d, 1<<16))
		if d.writes != c.writes || w.left.Load() != int64(c.left) || errors.Is(err, errFull) != (c.left > 0) {
			t.Errorf("%+v: %d writes, %d left, %v", c, d.writes, w.left.Load(), err)
		}
	}
}

// TestQueueIsFull: what finds no place is left out, and counted.
func TestQueueIsFull(t *testing.T) {
	w := &Writer{queue: make(chan service.Course, 2), ended: make(chan error, 1)}
	unsampled := live(9)
	unsampled.Parent.Unsampled = true
	for range 3 {
		w.Tell(live(1))
		w.Tell(unsampled)
	}
	w.ended <- nil
	if err := w.Close(t.Context()); len(w.queue) != 2 || err == nil || err.Error() != "the spans of 1 updates were left out" {
		t.Errorf("%d, %v", len(w.queue), err)
	}
}
