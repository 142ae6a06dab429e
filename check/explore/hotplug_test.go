// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestTakeDown: a CPU goes offline when nothing is asked of it and no other is on its way; preempted tasks beside it
// are refused.
func TestTakeDown(t *testing.T) {
	arch, err := cpus.ParseArch("arm64")
	if err != nil {
		t.Fatal(err)
	}
	p, err := poke.ParseProtocol("down.plan", []byte("name: down\nbatching: whole\nevery batch:\n    Write word\n    Sync 1\n"+
		"online:\n    come online\n    sync\noffline:\n    go offline\n    call a site\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Arch: arch, Protocol: p, Sites: 1, Roles: make([]cpus.Role, 3)}
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(m)
	if !w.TakeDown(1) {
		t.Error("nothing is asked of CPU 1, and it cannot go")
	}
	if n := w.send(cpus.Sync, false); n != 2 || w.TakeDown(1) {
		t.Errorf("%d CPUs are asked, and one that is goes offline: %v", n, w.TakeDown(1))
	}
	for _, onItsWay := range []bool{false, true} {
		for _, held := range []int8{0, 1} {
			w := newWorld(m)
			if onItsWay {
				w.cpu[2].PowerOff()
				w.perform(action{kind: stepCPU, who: 2}, cpus.Repeat([]uint8{1}))
			}
			w.Held[poke.HotplugLock] = held
			if want := !onItsWay && held == 0; w.BringUp(1) != want || w.TakeDown(1) != want {
				t.Errorf("patcher %d has the lock, another CPU is on its way %v: %v, %v", held-1, onItsWay, w.BringUp(1), w.TakeDown(1))
			}
		}
	}
	s.Preempt = true
	if _, err := s.Model(); err == nil || !strings.Contains(err.Error(), "preempted tasks beside CPUs that go offline") {
		t.Errorf("%v", err)
	}
}

// TestComesUp: a CPU comes online where the path says how, and one is offline at first or goes there.
func TestComesUp(t *testing.T) {
	const word = "name: x\nbatching: whole\nevery batch:\n    Write word\n"
	const up, down = "online:\n    come online\n    sync\n", "offline:\n    go offline\n"
	for _, tt := range []struct {
		file  string
		role  cpus.Role
		comes bool
	}{
		{word, cpus.Busy, false}, {word + up, cpus.Busy, false}, {word + up, cpus.Offline, true},
		{word + up + down, cpus.Busy, true},
	} {
		s := setup(t, "arm64", "word", "", 3, 1)
		var err error
		if s.Protocol, err = poke.ParseProtocol("x.plan", []byte(tt.file)); err != nil {
			t.Fatal(err)
		}
		s.Roles[2] = tt.role
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		dead := 0
		m.eachPlace(func(ph cpus.Phase, _ string) {
			if ph == cpus.Down {
				dead++
			}
		})
		if m.comesUp() != tt.comes || (dead > 0) != tt.comes {
			t.Errorf("%q with a CPU that is %s: %v, %d places", tt.file, tt.role, m.comesUp(), dead)
		}
	}
}
