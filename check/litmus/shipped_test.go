// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"bytes"
	"context"
	"testing"
)

// shipped parses a shipped test.
func shipped(t testing.TB, name string) *Test {
	t.Helper()
	src, err := files.ReadFile("tests/" + name + ".litmus")
	if err != nil {
		t.Fatal(err)
	}
	test, err := Parse(name+".litmus", bytes.NewReader(src))
	if err != nil {
		t.Fatal(err)
	}
	return test
}

// TestShipped runs every file: each row must be as its file says.
func TestShipped(t *testing.T) {
	most, rows := 0, 0
	for _, name := range ShippedNames() {
		test := shipped(t, name)
		if test.Name != name {
			t.Errorf("%s.litmus: the test is called %s", name, test.Name)
		}
		if test.About == "" || test.Source == "" {
			t.Errorf("%s: says not what it is about or where its kinds are from", name)
		}
		got, err := test.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			if err := r.Check(); err != nil {
				t.Error(err)
			}
			if r.Differs != "" && name != "ifetch-SM+RW" { // which TestCatalogue counts
				t.Errorf("%s on %s: the model differs from its sources: %s", name, r.Class, r.Differs)
			}
			if (r.Verdict == Allowed) != (len(r.Witness) > 0) {
				t.Errorf("%s on %s: %s with a witness of %d steps", name, r.Class, r.Verdict, len(r.Witness))
			}
			most, rows = max(most, r.States), rows+1
		}
	}
	t.Logf("%d tests, %d rows, at most %d states", len(ShippedNames()), rows, most)
}
