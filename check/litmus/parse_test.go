// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good is a test with one of everything; parts of it are replaced below.
const good = `test T # comment
about new, then old
source nowhere
site a 00 unaligned
site b 0
data flag
data x 7
thread w
  store a 11
  store a[1] 2
  dsb
  dc a
  ic a
  ipi
  wait
  write flag 1 release
thread c
  r1 = read flag acquire
  ctrl r1
  isb
  r2 = exec a addr r1
  r3 = exec a[0]
  write x 8 addr r1 data r2
outcome c:r1=1 c:r2=02 x=8 b=0
expect allowed arm(0,0) arm(0,1)
expect none arm(1,1)
differs arm(0,0): one: reason
weaker arm(0,1) arm(1,1): another   reason
`

func TestParse(t *testing.T) {
	const want = `test T
about new, then old
source nowhere
site a 00 unaligned
site b 0
data flag 0
data x 7
thread w
  store a 11
  store a[1] 2
  dsb
  dc a
  ic a
  ipi
  wait
  write flag 1 release
thread c
  r1 = read flag acquire
  ctrl r1
  isb
  r2 = exec a addr r1
  r3 = exec a[0]
  write x 8 addr r1 data r2
outcome c:r1=1 c:r2=02 x=8 b=0
expect allowed arm(0,0)
differs arm(0,0): one: reason
expect allowed arm(0,1)
weaker arm(0,1): another reason
expect none arm(1,1)
weaker arm(1,1): another reason
`
	if diff := cmp.Diff(want, parse(t, good).String()); diff != "" {
		t.Error(diff)
	}
}

// broken is good with something wrong, and how its error begins.
var broken = []struct{ src, want string }{
	{"", `f:0: no test directive`},
	{"test T\n", `f:1: no thread`},
	{replace("test T", "test T U"), `f:1: "T U": want one word`},
	{replace("about new", "test again #"), `f:2: "test": told before, as "T"`},
	{replace("source nowhere", "source"), `f:3: "source": nothing behind it`},
	{replace("00 unaligned", "00"), `f:4: "00": a site of several parts`},
	{replace("site b 0", "site b 0 aligned"), `f:5: "0": a site of several parts`},
	{replace("00 unaligned", "00 askew"), `f:4: "askew": want aligned or unaligned`},
	{replace("site b 0", "site b 12345"), `f:5: "12345": want 1 to 4`},
	{replace("site b 0", "site b é"), `f:5: "é": want letters`},
	{replace("site b 0", "site b-c 0"), `f:5: "b-c": want a name`},
	{replace("site b 0", "site a 0"), `f:5: "a": two places`},
	{replace("data flag", "data a"), `f:6: "a": two places`},
	{replace("thread c", "thread w"), `f:17: "w": two threads`},
	{replace("  dsb", "  membar"), `f:11: "membar": want a directive or an instruction`},
	{replace("  dsb", "  dsb sy"), `f:11: "sy": nothing to say of dsb`},
	{replace("  dsb", "  r = dsb"), `f:11: "r = dsb": exec and read, and no other`},
	{replace("  dsb", "  exec a"), `f:11: "exec a": exec and read, and no other`},
	{replace("  dsb", "  write a 1"), `f:11: "a": a site: want data`},
	{replace("  dsb", "  store flag 1"), `f:11: "flag": data: want a site`},
	{replace("  dsb", "  store a"), `f:11: "store a": store wants 2 operands`},
	{replace("  dsb", "  store a 1"), `f:11: "1": does not fit: site a has 2 parts`},
	{replace("  dsb", "  store a[1] 11"), `f:11: "11": does not fit`},
	{replace("  dsb", "  store a[2] 1"), `f:11: "a[2]": site a has 2 parts`},
	{replace("  dsb", "  store a[+1] 1"), `f:11: "a[+1]": want PLACE[PART]`},
	{replace("  dsb", "  dc a[0]"), `f:11: "a[0]": only store and exec are about parts`},
	{replace("  dsb", "  dc nowhere"), `f:11: "nowhere": want a site or data`},
	{replace("  dsb", "  ctrl r1"), `f:11: "r1": no register of this thread`},
	{replace("  dsb", "  dsb addr r1"), `f:11: "r1": no register of this thread`},
	{replace("ctrl r1", "ctrl r1 addr r1"), `f:19: "addr": ctrl has none`},
	{replace("exec a[0]", "exec a[0] data r1"), `f:22: "data": exec has none`},
	{replace("r3 = exec", "r2 = exec"), `f:22: "r2": assigned twice`},
	{replace("acquire", "alias"), `f:18: "alias": nothing to say of read`},
	{replace("thread w", "isb\nthread w"), `f:8: "isb": an instruction before the first thread`},
	{replace("c:r1=1", "c:r9=1"), `f:24: "r9": thread c has no such register`},
	{replace("c:r1=1", "d:r1=1"), `f:24: "d": no thread of this name`},
	{replace("c:r1=1", "y=1"), `f:24: "y": want a site or data`},
	{replace("c:r1=1", "c:r1"), `f:24: "c:r1": want THREAD:REGISTER=VALUE`},
	{replace("c:r2=02", "c:r2=2"), `f:24: "2": c:r2 holds 2 parts`},
	{replace("b=0", "b=00"), `f:24: "00": b holds 1 parts`},
	{replace("expect none", "expect maybe"), `f:26: "maybe": no kind; there are none allowed forbidden`},
	{replace("arm(1,1)", "arm(1,0)"), `f:26: "arm(1,0)": no machine class; there are arm(0,0)`},
	{replace("arm(1,1)", "arm(0,0)"), `f:26: "arm(0,0)": told before`},
	{good + "expect none intel\n", `f:29: "dsb": class intel has no such instruction`},
	{replace("differs arm(0,0)", "differs intel"), `f:27: "intel": nothing is expected of this class`},
	{good + "differs arm(0,0): no\n", `f:29: "differs": arm(0,0) has a reason already`},
	{replace(" arm(1,1): another   reason", " arm(1,1):"),
		`f:28: "weaker arm(0,1) arm(1,1):": want classes, a colon and a reason`},
	{good + "stronger arm(0,1): no\n", `f:29: "stronger": arm(0,1) has a reason already`},
	{good + "outcome x=1\n", `f:29: "outcome": told before`},
	{replace("  dsb\n", strings.Repeat("  dsb\n", maxInsns)), `f:33: "dsb": more than 24 instructions in a thread`},
	{replace("  dsb\n", strings.Repeat("  store b 1\n", maxVersions)), `f:16: "1": more than 6 versions of site b`},
	{replace("  dsb\n", strings.Repeat("  ic a\n", maxICs)), `f:18: "ic a": more than 6 invalidations`},
}

// replace spoils a part of good.
func replace(old, new string) string {
	if !strings.Contains(good, old) {
		panic(old + " is not in the test")
	}
	return strings.Replace(good, old, new, 1)
}

// TestParseErrors: every error is one line and names file, line and value.
func TestParseErrors(t *testing.T) {
	for _, c := range broken {
		_, err := Parse("f", strings.NewReader(c.src))
		switch {
		case err == nil:
			t.Errorf("accepted, want %s", c.want)
		case !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s, want %s", err, c.want)
		}
	}
}

// everything lets cmp look into all types; classes are compared as pointers to the
// same few.
func everything(reflect.Type) bool { return true }

// FuzzParse: no input makes Parse panic, and what it prints it reads again as the
// same test.
func FuzzParse(f *testing.F) {
	f.Add(good)
	for _, name := range ShippedNames() {
		src, err := files.ReadFile("tests/" + name + ".litmus")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		test, err := Parse("fuzz", strings.NewReader(src))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: an error of several lines: %q", src, err)
			}
			return
		}
		printed := test.String()
		again, err := Parse("printed", strings.NewReader(printed))
		if err != nil {
			t.Fatalf("%v in\n%s", err, printed)
		}
		if diff := cmp.Diff(test, again, cmp.Exporter(everything)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(printed, again.String()); diff != "" {
			t.Error(diff)
		}
		for _, e := range test.expect { // the model, too, takes whatever is parsed
			m := newMachine(test, e.class)
			s := m.start()
			for range 200 {
				moves := m.moves(&s, nil)
				if len(moves) == 0 {
					break
				}
				m.words(&s, moves[0])
				s = m.apply(s, moves[0])
			}
			if !m.ended(&s) && len(m.moves(&s, nil)) == 0 {
				t.Errorf("%s: nobody can move in\n%s", e.class.name, printed)
			}
		}
	})
}

// TestTooLarge: a test with too many states has no verdict.
func TestTooLarge(t *testing.T) {
	src := "test big\ndata x\ndata y\n"
	for _, th := range []string{"p", "q", "r", "s"} {
		src += "thread " + th + strings.Repeat("\nwrite x 1\nwrite y 2", 6) + "\n"
	}
	test := parse(t, src+"outcome x=3\nexpect none arm(0,0)\n")
	rows, err := test.Run(context.Background())
	if !errors.Is(err, ErrTooLarge) || rows != nil {
		t.Errorf("%d rows, %v; want ErrTooLarge", len(rows), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := test.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context ended", err)
	}
}
