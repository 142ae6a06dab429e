// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"sync"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// TestLockOrderIsOfAllPlans: taking two locks is a violation for whoever does it in the
// order that some plan has the other way round, and for nobody else.
func TestLockOrderIsOfAllPlans(t *testing.T) {
	lock := func(m Mutex) Step { return Step{Op: Lock, Mutex: m} }
	unlock := func(m Mutex) Step { return Step{Op: Unlock, Mutex: m} }
	r := NewRules(&cpus.Code{}, 0,
		[]Step{lock(TextMutex), lock(FtraceLock)},
		[]Step{lock(FtraceLock), unlock(FtraceLock), lock(TextMutex), lock(JumpLabelMutex)})
	for held := range Mutex(NumMutexes) {
		for mu := range Mutex(NumMutexes) {
			var c Commons
			if took, broken := r.lock(&c, held, 1, 7); !took || broken != nil {
				t.Fatalf("first lock: %v, %v", took, broken)
			}
			took, broken := r.lock(&c, mu, 1, 7)
			if took != (mu != held) {
				t.Errorf("%s while %s is held: %v", mu, held, took)
			}
			want := held == FtraceLock && mu == TextMutex || held == JumpLabelMutex && mu == TextMutex
			if got := broken != nil && broken.Property == cpus.LockOrder && broken.CPU == 7; got != want {
				t.Errorf("%s while %s is held: violation %v, want %v", mu, held, broken, want)
			}
		}
	}
	var c Commons
	r.lock(&c, TextMutex, 1, 0)
	if r.Share(&c, Access{Op: Unlock, Mutex: TextMutex}, 0, 0); c.Held[TextMutex] != 2 {
		t.Error("somebody else's lock was given back")
	}
}

// TestStoresGoToTheMappedPage: a store goes where the one slot leads, and anywhere else
// than it is for is a violation.
func TestStoresGoToTheMappedPage(t *testing.T) {
	r := NewRules(&cpus.Code{Sites: []records.Addr{0x10, 0x20}}, 2)
	var c Commons
	for mapped := -1; mapped < 2; mapped++ {
		if mapped >= 0 {
			r.Share(&c, Access{Op: Map, Site: int32(mapped)}, 0, 0)
		}
		for site := range 2 {
			want := site
			if mapped >= 0 {
				want = mapped
			}
			at, broken := r.Lands(c, 0, site, 1, isa.Text(0xcc))
			if at != want || (broken != nil) != (want != site) || broken != nil && broken.Addr != r.Code.Sites[at] {
				t.Errorf("site %d while %d is mapped: %d, %v", site, mapped, at, broken)
			}
		}
	}
	for n := 1; n <= 3; n++ {
		if broken := r.Overflows(0, make([]Patch, n)); (broken != nil) != (n > 2) {
			t.Errorf("%d patches in 2 slots: %v", n, broken)
		}
	}
}

// TestSharedLocksExclude: of patchers that exchange the commons at the same time, one
// has a lock.
func TestSharedLocksExclude(t *testing.T) {
	s := NewShared(NewRules(&cpus.Code{}, 0))
	var all sync.WaitGroup
	count, each := 0, 1000
	for id := range 4 {
		all.Go(func() {
			for n := 0; n < each; {
				took := false
				s.change(func(c *Commons) { took, _ = s.lock(c, TextMutex, id, 0) })
				if took {
					count++
					n++
					s.change(func(c *Commons) { s.Share(c, Access{Op: Unlock, Mutex: TextMutex}, id, 0) })
				}
			}
		})
	}
	all.Wait()
	if count != 4*each {
		t.Errorf("%d, want %d: two had the lock at once", count, 4*each)
	}
}

// TestShareSays: an access says whether a lock was given back by who had it, and whether
// somebody has raised the flag.
func TestShareSays(t *testing.T) {
	r := NewRules(&cpus.Code{}, 0)
	var c Commons
	for i, want := range []struct {
		a   Access
		who int
		yes bool
	}{
		{Access{Op: Expect}, 0, false},
		{Access{Op: Raise}, 1, false},
		{Access{Op: Expect}, 0, true},
		{Access{Op: Unlock, Mutex: TextMutex}, 0, false},
		{Access{Op: Lock, Mutex: TextMutex}, 0, true},
		{Access{Op: Unlock, Mutex: TextMutex}, 1, false},
		{Access{Op: Lock, Mutex: TextMutex}, 1, false},
		{Access{Op: Unlock, Mutex: TextMutex}, 0, true},
		{Access{Op: Walk}, 0, false},
		{Access{Op: Split}, 1, false},
		{Access{Op: Walk}, 0, true},
		{Access{Op: Walk, Below: true}, 0, false},
	} {
		if yes, broken := r.Share(&c, want.a, want.who, 0); yes != want.yes || broken != nil {
			t.Errorf("access %d, %+v of patcher %d: %v, %v", i+1, want.a, want.who, yes, broken)
		}
	}
}
