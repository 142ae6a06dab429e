// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// arches are all instruction sets.
func arches(t testing.TB) (out []isa.Arch) {
	t.Helper()
	for _, name := range cpus.ArchNames() {
		a, err := cpus.ParseArch(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// onArches runs a test for each of them.
func onArches(t *testing.T, f func(t *testing.T, a isa.Arch)) {
	for _, a := range arches(t) {
		t.Run(a.Traits().Name, func(t *testing.T) { f(t, a) })
	}
}

const textBase = 0xffffffff81000004 // 4 modulo 8, as arm64 and riscv64 want records

// addrs are n records.
func addrs(n int) []records.Addr {
	out := make([]records.Addr, n)
	for i := range out {
		out[i] = textBase + records.Addr(i)*64
	}
	return out
}

func newCore(t testing.TB, a isa.Arch, n int) *Core {
	t.Helper()
	c, err := New(Config{Arch: a, Records: addrs(n)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var users [128]Func

// user is a client's function; numbers far apart may share one.
func user(n int) *Func { return &users[n%len(users)] }

// must fails the test on an error and returns the report.
func must(t testing.TB) func(Report, error) Report {
	return func(r Report, err error) Report {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// source is how an error says where its rule stands: a function or a series, and when.
var source = regexp.MustCompile(`^[a-zA-Z_0-9:. ]+,.*([0-9]+\.[0-9]|v[0-9]|aef4dfa790b2|20[0-9][0-9]).*$|^HAVE_.*7\.0`)

// errno is the number that an error carries, 0 for none. It panics where an error names its
// reason and its source the wrong way round.
func errno(err error) Errno {
	var e *Error
	if !errors.As(err, &e) {
		return 0
	}
	if !source.MatchString(e.Source) || source.MatchString(e.Why) || e.Why == "" {
		panic(fmt.Sprintf("why %q, source %q", e.Why, e.Source))
	}
	return e.Errno
}

// names is who was called, in order.
func names(t testing.TB, c *Core, rec int) (out []string) {
	t.Helper()
	called, err := c.Call(rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range called {
		if k.Direct != 0 {
			out = append(out, k.Direct.String())
		} else {
			out = append(out, k.Ops.Name)
		}
	}
	return out
}
