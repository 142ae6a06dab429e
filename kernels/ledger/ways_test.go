// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

// TestWaysThatAreNot: a way to attach that a kernel does not have is refused by what shows that, and
// one that is not understood by the first mechanism that is missing.
func TestWaysThatAreNot(t *testing.T) {
	for _, name := range WayNames() {
		way, err := ParseWay(name)
		if err != nil {
			t.Fatal(err)
		}
		k := with(with(mustKernel(t, "x86_64-7.2"), way.one, 1), way.needs, 0)
		if err := way.In(k); err == nil || err.Error() != k.Name()+": a test" {
			t.Errorf("%s: %v, want the evidence", name, err)
		}
		if err := way.In(with(k, way.needs, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		delete(k.Facts.Mechanisms, way.one)
		if err := way.In(k); way.one != way.needs && (err == nil ||
			err.Error() != "mechanism "+way.one+": the kernel's facts do not name it") {
			t.Errorf("%s: %v, want that %s is missing", name, err, way.one)
		}
		delete(k.Facts.Mechanisms, way.needs)
		if err := way.In(k); err == nil || err.Error() != "mechanism "+way.needs+": the kernel's facts do not name it" {
			t.Errorf("%s: %v, want that %s is missing", name, err, way.needs)
		}
	}
}
