// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

// comesUp gives an architecture's path a program for CPUs that come online.
func comesUp(t *testing.T, c *Code, steps ...PathStep) {
	t.Helper()
	c.Complete()
	path, err := c.Path.Replace(OnUp, steps...)
	if err != nil {
		t.Fatal(err)
	}
	c.Path = path
}

// TestHistoryOfOfflineCPUs: nothing old is kept for a CPU that is offline. From the moment
// at which one begins to come up it keeps what it may fetch, before it is online too.
func TestHistoryOfOfflineCPUs(t *testing.T) {
	for _, up := range []bool{false, true} {
		f := newFixture(t, "x86_64", 1, []Role{Busy, Offline}, noHandler{}, Weak)
		if up {
			comesUp(t, f.code, DoCallEarly, DoComeOnline)
			var err error
			f.Machine, err = NewMachine(Config{
				Code: f.code, Roles: []Role{Busy, Offline}, Handler: noHandler{}, NopOps: testNop, Seed: 1,
				Initial: func(i int) isa.Text { return f.off[i] },
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		l := f.Lockstep()
		store := func() {
			f.Store(0, 0, f.code.Len, f.on[0])
			f.Lease(0).Sync()
			f.Store(0, 0, f.code.Len, f.off[0])
			f.Lease(0).Sync()
		}
		store()
		if up {
			l.Tick(1) // a CPU that is down makes steps, which fetch nothing
		}
		store()
		if n := f.versions(0); n > 2 {
			t.Errorf("comes up %v: %d versions are kept while CPU 1 is offline, want 2 at most", up, n)
		}
		if up {
			synced := f.Seq()
			if !f.BringUp(1) {
				t.Fatal("nobody holds the lock of hotplug, and CPU 1 cannot be brought up")
			}
			store()
			if window, _ := f.Window(0, synced, nil); len(window) != 3 {
				t.Errorf("CPU 1 begins to come up, and of the text from then and 2 stores there are %v", window)
			}
			f.EndHotplug(1)
			l.Step(1, enters{ChooseEnter})
			store()
			store()
			c := l.CPU(1)
			if window, _ := f.Window(0, c.Synced, nil); len(window) != 5 {
				t.Errorf("CPU 1 comes up and may fetch %v, want the text before it did and 4 stores", window)
			}
		}
	}
}

// TestHistoryOfUnpluggedCPUs: likewise for one that was unplugged.
func TestHistoryOfUnpluggedCPUs(t *testing.T) {
	f := newFixture(t, "arm64", 1, []Role{Busy, Busy}, noHandler{}, Weak)
	f.Start()
	defer f.Stop()
	for range 2 {
		if err := f.Unplug(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		l, err := f.Occupy(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			f.Store(0, 0, f.code.Len, f.on[0])
			l.Sync()
		}
		l.Release()
		if n := f.versions(0); n > 2 {
			t.Errorf("%d versions are kept while CPU 1 is unplugged, want 2 at most", n)
		}
		if err := f.Plug(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		l, err = f.Occupy(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Seq(l.r.synced.Load()), l.r.cpu.Synced; got > want {
			t.Errorf("plugged in again the CPU synchronised at %d, versions are kept from %d on", want, got)
		}
		l.Release()
	}
}
