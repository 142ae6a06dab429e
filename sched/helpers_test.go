// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table opens a table that has to open.
func table(t testing.TB, src string) *records.Table {
	t.Helper()
	tab, err := records.Open(t.Context(), src, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// in is addresses as Cut asks for them.
func in(addrs []records.Addr) func(int) records.Addr {
	return func(i int) records.Addr { return addrs[i] }
}

// every is n addresses, each by so much higher than the one before.
func every(n, step int) []records.Addr {
	addrs := make([]records.Addr, n)
	for i := range addrs {
		addrs[i] = records.Addr(1<<40 + i*step)
	}
	return addrs
}
