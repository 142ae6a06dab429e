// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// soakFor is how long TestMemory soaks.
var soakFor = flag.Duration("soak", 0, "how long TestMemory keeps a service at work (default 1s, an hour with -long)")

// usage is what a process holds.
type usage struct {
	Heap       uint64 // bytes, after a collection
	Peak       uint64 // bytes of memory that it has had at most
	Files      int
	Goroutines int
	Updates    uint64 // carried out so far
	Journal    int64  // bytes of the file and its log
	Kept       int64  // updates in it
	Late       int64  // of these, those that had been too many for a minute
}

const (
	soakEnv  = "TEXTPOKE_TEST_SOAK"
	soakKeep = 2000 // updates
)

// TestSoakLife is not a test but what TestMemory starts in a process of its own:
// 512 clients, 50,000 records and 64 CPUs, for as long as the environment says. It
// says what it uses before it begins and after each fifth of the time. Whatever goes wrong
// with an update is a failure.
func TestSoakLife(t *testing.T) {
	d, err := time.ParseDuration(os.Getenv(soakEnv))
	if err != nil {
		t.Skip("TestMemory starts this in a process of its own")
	}
	say := func(u usage) {
		b, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("usage %s\n", b)
	}
	say(used(t))
	dir := t.TempDir()
	m := started(t, setup{dir: dir, records: "gen:n=50000", cpus: "busy=64", buffer: "256", keep: soakKeep,
		compact: 10 * time.Second})
	minute := watch(t, m, time.Minute)
	var updates uint64
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), d/5)
		n, err := soak(ctx, m)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		u := used(t)
		updates += n
		u.Updates, u.Journal = updates, m.store.Size()
		first, last, err := m.ends(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u.Kept, u.Late = last-first+1, max(minute()-soakKeep-first+1, 0)
		say(u)
	}
}

// ends is the IDs of the oldest and of the youngest update that are kept.
func (m *machine) ends(ctx context.Context) (first, last int64, err error) {
	us, err := m.Updates(ctx, service.Query{Limit: 1})
	if err != nil {
		return 0, 0, err
	}
	now, err := m.Status(ctx)
	if err != nil || len(us) == 0 {
		return 1, 0, err
	}
	return us[0].ID, now.Updates[0].ID, nil
}

// watch notes how many updates there have been, and tells how many there were so long ago.
func watch(t *testing.T, m *machine, ago time.Duration) (then func() int64) {
	t.Helper()
	type seen struct {
		at   time.Time
		last int64
	}
	var mu sync.Mutex
	var all []seen
	// The test's own context ends before its clean-up, in the middle of a look.
	ctx, done := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-tick.C:
				_, last, err := m.ends(ctx)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				all = append(all, seen{at, last})
				mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { done(); group.Wait() })
	return func() (last int64) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range all {
			if time.Since(s.at) >= ago {
				last = s.last
			}
		}
		return last
	}
}

// used is what this process holds.
func used(t *testing.T) usage {
	t.Helper()
	runtime.GC()
	runtime.GC() // what finalizers let go
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return usage{Heap: mem.HeapAlloc, Peak: peak(t), Files: len(files), Goroutines: runtime.NumGoroutine()}
}

// peak is VmHWM (proc_pid_status(5)), in bytes.
func peak(t *testing.T) uint64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "VmHWM:")
	kib, err := strconv.ParseUint(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// soakClients is how many clients a soak has.
const soakClients = 512

// soak lets the clients switch records on and off until ctx ends, each of them
// some of its own and some that others want as well.
func soak(ctx context.Context, m *machine) (uint64, error) {
	all, err := m.names()
	if err != nil {
		return 0, err
	}
	var updates atomic.Uint64
	var group errgroup.Group
	for i := range soakClients {
		group.Go(func() error {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for n := 0; ctx.Err() == nil; n++ {
				mine := all[rng.IntN(len(all)-64):][:1+rng.IntN(64)]
				u, err := m.Submit(context.WithoutCancel(ctx), request(fmt.Sprintf("client%d", i), mine, n%2 == 0))
				if refusedNow(err) {
					continue
				}
				if err != nil {
					return err
				}
				if u, err = m.Wait(context.WithoutCancel(ctx), u.ID); err == nil && u.State != journal.Live {
					err = fmt.Errorf("update %d is %s: %s", u.ID, u.State, u.Error)
				}
				if err != nil {
					return err
				}
				updates.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return updates.Load(), err
}

// The aims, in bytes. What a process may keep more at the end of a soak than after
// two fifths of it is what the last events take, which may have been few by then.
const (
	mostMemory = 256 << 20
	mostGrowth = 16 << 20
	mostLonger = 16 << 20 // of the journal, beside the log that is as long as it may be
)

// How many files and goroutines there are at one moment depends on how many clients
// read at that moment, so that what bounds them is not an early reading but what a
// service has at most when all of its readers are at work.
const (
	pollFiles = 2 // Go's network poller: epoll and eventfd (runtime/netpoll_epoll.go)
	// A CPU each; the patcher, the coordinator, the journal's writer, and for each of
	// the two pools its opener (database/sql), with as many waiting for a transaction
	// to end as there are connections.
	machineGoroutines = 64 + 5 + 5
)

// TestMemory holds a soak against the aims: memory, handles and the journal's size are
// flat, no update fails, and what is not to be kept has gone within a minute. With -long it
// takes an hour.
func TestMemory(t *testing.T) {
	if raced() {
		t.Skip("the race detector takes memory of its own")
	}
	d := cmp.Or(*soakFor, time.Second)
	if *long && *soakFor == 0 {
		d = time.Hour
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoakLife$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), soakEnv+"="+d.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var all []usage
	for text := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(text, "usage "); ok {
			var u usage
			if err := json.Unmarshal([]byte(text), &u); err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", u)
			all = append(all, u)
		}
	}
	if len(all) != 6 {
		t.Fatalf("%d readings: %s", len(all), out)
	}
	before, settled, last := all[0], all[2], all[5]
	if last.Peak > mostMemory {
		t.Errorf("it took %d MiB, the aim is %d", last.Peak>>20, mostMemory>>20)
	}
	if last.Heap > settled.Heap+mostGrowth {
		t.Errorf("the heap grew from %d to %d KiB", settled.Heap>>10, last.Heap>>10)
	}
	if settled.Updates > soakKeep && last.Journal > settled.Journal+mostLonger {
		t.Errorf("the journal grew from %d to %d KiB", settled.Journal>>10, last.Journal>>10)
	}
	if last.Late > 0 {
		t.Errorf("%d updates had been too many for a minute, of %d that are kept", last.Late, last.Kept)
	}
	if most := before.Files + journal.MostFiles + pollFiles; last.Files > most {
		t.Errorf("%d files, %d before it began: want at most %d", last.Files, before.Files, most)
	}
	if most := before.Goroutines + machineGoroutines; last.Goroutines > most {
		t.Errorf("%d goroutines, %d before it began: want at most %d", last.Goroutines, before.Goroutines, most)
	}
}
