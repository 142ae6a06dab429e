// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestManyNames: names that want one record each take little memory, while they come and
// after a restart, whatever the table's size.
func TestManyNames(t *testing.T) {
	names, most := 4_000, uint64(9<<20) // most of it the last events, each with an update
	if *long {
		names, most = 80_000, 48<<20
	}
	dir := t.TempDir()
	kind := setup{dir: dir, records: "gen:n=40000", cpus: "busy=2", buffer: "dynamic", keep: 1000}
	before := used(t).Heap
	m, err := start(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	empty := used(t).Heap
	var group errgroup.Group
	group.SetLimit(1000)
	for i := range names {
		group.Go(func() error {
			u, err := m.Submit(t.Context(), request(fmt.Sprint("client", i), []string{fmt.Sprint("fn", i%40_000)}, true))
			if err != nil {
				return err
			}
			_, err = m.Wait(t.Context(), u.ID)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		took := int64(used(t).Heap) - int64(empty)
		t.Logf("%s: %d KiB for %d names, beside %d KiB for none", when, took>>10, names, (empty-before)>>10)
		if took > int64(most) {
			t.Errorf("%s: %d names take %d KiB, want %d at most", when, names, took>>10, most>>10)
		}
	}
	look("as they come")
	if err := m.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m = started(t, kind)
	look("after a restart")
}
