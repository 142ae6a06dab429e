// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"slices"
	"testing"
)

// TestPin: a thread is on the CPU that was asked for and on no other, until that is undone.
func TestPin(t *testing.T) {
	all, err := Allowed()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, cpu := range append([]int{-1}, all...) {
		unpin, err := Pin(cpu)
		if err != nil {
			t.Fatal(err)
		}
		want := []int{cpu}
		if cpu < 0 {
			want = all
		}
		if got, err := Allowed(); err != nil || !slices.Equal(got, want) {
			t.Errorf("CPU %d: the thread may use %v, %v", cpu, got, err)
		}
		unpin()
	}
	if got, err := Allowed(); err != nil || !slices.Equal(got, all) {
		t.Errorf("the thread may use %v of %v, %v", got, all, err)
	}
	if _, err := Pin(1000); err == nil {
		t.Error("there is a CPU 1000")
	}
}

// TestSync: a process that has announced it may have all its CPUs synchronise.
func TestSync(t *testing.T) {
	if err := Register(); err != nil {
		t.Skip(err)
	}
	if err := Sync(); err != nil {
		t.Error(err)
	}
}
