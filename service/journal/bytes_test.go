// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// countedDisk counts the bytes that are written, and the pages that syncs bring to the disk.
type countedDisk struct {
	*directory
	bytes, pages int
}

type countedFile struct {
	Handle
	disk  *countedDisk
	dirty map[int64]bool
}

const pageSize = 4096

func (d *countedDisk) counted(f Handle, err error) (Handle, error) {
	return &countedFile{f, d, map[int64]bool{}}, err
}

func (d *countedDisk) Create(name string) (Handle, error) { return d.counted(d.directory.Create(name)) }
func (d *countedDisk) Open(name string) (Handle, error)   { return d.counted(d.directory.Open(name)) }

func (d *countedDisk) Same(name string, f Handle) error {
	return d.directory.Same(name, f.(*countedFile).Handle)
}

func (f *countedFile) WriteAt(b []byte, at int64) (int, error) {
	f.disk.bytes += len(b)
	for page := at / pageSize; page*pageSize < at+int64(len(b)); page++ {
		f.dirty[page] = true
	}
	return f.Handle.WriteAt(b, at)
}

func (f *countedFile) Sync() error {
	f.disk.pages += len(f.dirty)
	clear(f.dirty)
	return f.Handle.Sync()
}

// TestBytesWritten counts what an update costs the disk when so many clients share each transaction, new segments
// included: bytes that are written, and pages of 4 KiB that are synced. Neither is above 8 KB.
func TestBytesWritten(t *testing.T) {
	for _, clients := range []int{1, 8, 64, 512} {
		dir, err := makeDirectory(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		d := &countedDisk{directory: dir}
		s, err := open(t.Context(), d, someone, func() (older, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		go s.run()
		s.segment = 100_000 // a tenth, and a few of them
		d.bytes, d.pages = 0, 0
		rounds := max(1000/clients, 10)
		for n := range rounds {
			us := make([]Update, clients)
			var all sync.WaitGroup
			for c := range clients {
				all.Go(func() {
					o := order(fmt.Sprint("client", c), "", 4*c%97, 4*c%97+1, 4*c%97+2, 4*c%97+3)
					o.Unsynced, o.Enable = true, n%2 == 0
					u, err := s.Accept(o, func(Update) {})
					if err != nil {
						t.Error(err)
					}
					u.State, u.Batch, u.Began, u.Ended = Live, int64(n), time.Now().UTC(), time.Now().UTC()
					us[c] = u
				})
			}
			all.Wait()
			if err := s.Answer(us, nil); err != nil {
				t.Fatal(err)
			}
		}
		updates := rounds * clients
		segments, err := listSegments(d)
		t.Logf("%d clients: %d bytes and %d in pages for each update, %d segments", clients, d.bytes/updates,
			d.pages*pageSize/updates, len(segments))
		if d.bytes/updates >= 8000 || d.pages*pageSize/updates >= 8000 {
			t.Errorf("%d clients: want less than 8 kB", clients)
		}
		if err != nil || len(segments) < 3 {
			t.Errorf("%d segments, %v, want some", len(segments), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
