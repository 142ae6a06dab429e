// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"flag"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/records"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is where the tests' functions lie.
var text = Text{0xffffffff81000000, 0xffffffff81000000 + 1<<25}

// addrs are functions at uneven distances, 16 to 240 bytes: at even ones
// Fibonacci hashing finds a cell for each.
var addrs = func() []records.Addr {
	rng := rand.New(rand.NewPCG(3, 0))
	a := make([]records.Addr, 1<<17)
	next := text.Start
	for i := range a {
		next += records.Addr(16 * (1 + rng.IntN(15)))
		a[i] = next
	}
	return a
}()

// at is the address of function i.
func at(i int) records.Addr { return addrs[i] }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// each runs a test for every kind of table.
func each(t *testing.T, f func(*testing.T, Table)) {
	for k, name := range KindNames() {
		t.Run(name, func(t *testing.T) { f(t, must(New(TableKind(k), text))) })
	}
}

// filled has records of functions 0 to n-1, put in in random order.
func filled(t testing.TB, k TableKind, n int) Table {
	tab := must(New(k, text))
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for _, i := range rng.Perm(n) {
		if err := tab.Set(&Record{Func: at(i), Args: uint8(i % MaxArgs)}); err != nil {
			t.Fatal(err)
		}
	}
	if r, ok := tab.(*Resizable); ok {
		r.Settle()
	}
	return tab
}
