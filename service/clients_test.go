// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/records"
)

// TestClientsAreBounded: names are not let in without end; those that are there go on,
// and one that wants nothing any more makes room.
func TestClientsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Clients = 3
	s, kill := w.start(t)
	for _, client := range []string{"a", "b", "c"} {
		do(t, s, enable(client, "fn1"))
	}
	for range 2 { // after a restart too
		if _, err := s.Submit(t.Context(), enable("d", "fn1")); !errors.Is(err, ErrTooManyClients) {
			t.Errorf("%v, want ErrTooManyClients", err)
		}
		do(t, s, enable("c", "fn2"))
		do(t, s, disable("d", "fn1"))
		kill()
		s, kill = w.start(t)
	}
	do(t, s, disable("c", "fn1", "fn2"))
	do(t, s, enable("d", "fn1"))
}

// TestOneClientTooMany: of clients that come at the same time, no more are let in than may be, and
// each that is refused is told so.
func TestOneClientTooMany(t *testing.T) {
	for range 5 {
		w := newWorld(t)
		w.Clients = 3
		s, kill := w.start(t)
		for i, client := range []string{"a", "b", "c", "d"} { // none has got further yet
			r := enable(client, "fn1")
			if err := s.admit(&r); i < 3 && err != nil || i == 3 && !errors.Is(err, ErrTooManyClients) {
				t.Errorf("%s: %v", client, err)
			}
		}
		for _, client := range []string{"a", "b", "c"} {
			s.dismiss(client)
		}
		var group errgroup.Group
		begin := make(chan struct{})
		for c := range 16 {
			group.Go(func() error {
				<-begin
				_, err := s.Submit(t.Context(), enable(fmt.Sprint("c", c), "fn1"))
				if errors.Is(err, ErrTooManyClients) {
					err = nil
				}
				return err
			})
		}
		close(begin)
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		do(t, s, disable("last", "fn1")) // behind all of them
		if n := s.coord.Clients(); n < 1 || n > 3 {
			t.Errorf("%d clients want something, want at most 3", n)
		}
		kill()
	}
}

// TestAnotherTable: after a restart with another table, what clients want is where the names
// are now; what is lost is told, by an event, a count and an update of the client's.
func TestAnotherTable(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	do(t, s, enable("a", "fn3", "fn98", "fn99"))
	do(t, s, enable("b", "fn98"))
	kill()
	fewer := filepath.Join(t.TempDir(), "fewer.csv")
	text := "address,symbol,module,group\n"
	for i := 98; i > 0; i-- { // every number is another, and two are gone
		text += fmt.Sprintf("%#x,fn%d,,0\n", 0xffffffff81000000+uint64(99-i)*0x1000, i)
	}
	if err := os.WriteFile(fewer, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := records.Open(t.Context(), fewer, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Sim.Table = table
	s, _ = w.start(t)
	all, err := s.Records(t.Context(), RecordQuery{After: -1, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if want := map[string]int{"fn3": 1, "fn98": 2}[r.Symbol]; r.Users != want {
			t.Errorf("%s has %d users, want %d", r.Symbol, r.Users, want)
		}
	}
	if v := s.CheckText(); len(v) > 0 {
		t.Errorf("%v", v)
	}
	told, _ := past(s, 0)
	if len(told) == 0 || told[len(told)-1].Update == nil || told[len(told)-1].Update.ID != 3 {
		t.Errorf("%+v: want the update that says so", told)
	}
	u, err := s.Update(t.Context(), 3)
	if err != nil || u.Client != "a" || u.Enable || u.Records != 1 || !strings.HasSuffix(u.Error, "do not have fn99") {
		t.Errorf("%+v, %v", u, err)
	}
	if lost := s.Stats().Lost; lost != 1 {
		t.Errorf("%d lost, want 1", lost)
	}
}

// TestFewFiltersAtATime: while as many filters as may be are held against the records, the
// next one waits, and goes when its client does.
func TestFewFiltersAtATime(t *testing.T) {
	s, _ := newWorld(t).start(t)
	for range cap(s.matching) {
		s.matching <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if all, err := s.Records(gone, RecordQuery{After: -1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%d records, %v: want it to wait until its client has gone", len(all), err)
	}
	done := make(chan error, 1)
	go func() {
		all, err := s.Records(t.Context(), RecordQuery{After: -1})
		if err == nil && len(all) != 100 {
			err = fmt.Errorf("%d records", len(all))
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond): // it would have been done in a thousandth of it
	}
	<-s.matching
	if err := <-done; err != nil {
		t.Error(err)
	}
}
