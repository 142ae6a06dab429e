// SPDX-License-Identifier: Apache-2.0

package cpus

import "testing"

// TestHoldHotplug: any number may keep CPUs from being brought up (cpus_read_lock), each for
// itself; one CPU at a time comes up, and until it has nobody keeps it from that.
func TestHoldHotplug(t *testing.T) {
	m := newFixture(t, "x86_64", 1, []Role{Busy, Offline, Offline}, noHandler{}, Weak).Machine
	for range 2 { // as often as one likes
		for held := range 3 {
			if held > 0 && m.BringUp(1) {
				t.Errorf("a CPU is brought up while %d keep it down", held)
			}
			if !m.HoldHotplug() {
				t.Errorf("of %d the last cannot keep CPUs down", held+1)
			}
		}
		for held := 3; held > 0; held-- {
			if m.BringUp(1) {
				t.Errorf("a CPU is brought up while %d keep it down", held)
			}
			m.LetHotplug()
		}
		if !m.BringUp(1) {
			t.Error("nobody keeps CPUs down, and none can be brought up")
		}
		if m.BringUp(2) || m.HoldHotplug() {
			t.Error("while a CPU comes up another does, or somebody keeps it from that")
		}
		m.EndHotplug(1)
	}
}
