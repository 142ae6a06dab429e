// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var _ = flag.Bool("long", false, "run slow tests")

// sameQuantity compares quantities by name: they hold functions.
var sameQuantity = cmpopts.IgnoreFields(Entry{}, "Quantity")

// valid is a file with every quantity, one a line, and its lines by their first
// cell, counted from 1.
func valid() (text string, lines map[string]int) {
	rows := []string{strings.Join(columns, ","), "# a comment", "name,mine", `machine,"a, b"`, "arch,arm64", "cpus,8"}
	for _, q := range Quantities {
		unit := q.Unit.units()[0]
		rows = append(rows, q.Name+",2,"+unit+",1,3,assumed,nobody knows")
	}
	lines = map[string]int{}
	for i, r := range rows {
		lines[strings.Split(r, ",")[0]] = i + 1
	}
	return strings.Join(rows, "\n") + "\n", lines
}

func TestRead(t *testing.T) {
	text, _ := valid()
	text = strings.Replace(text, "send,2,ns,1,3", "send, 2.5 ,us,2,3", 1)
	c, err := Read("mine.csv", strings.NewReader("\ufeff"+text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "mine" || c.Machine != "a, b" || c.Arch != "arm64" || c.CPUs != 8 {
		t.Errorf("%+v", c)
	}
	if len(c.Entries) != len(Quantities) {
		t.Fatalf("%d entries", len(c.Entries))
	}
	for i, e := range c.Entries {
		want := Entry{&Quantities[i], 2, 1, 3, Assumed, "nobody knows"}
		if e.Quantity.Name == "send" {
			want.Value, want.Low, want.High = 2500, 2000, 3000
		}
		if e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
		if got := *e.Quantity.Of(&c.Costs); got != want.Value {
			t.Errorf("cost of %s: %g", e.Quantity.Name, got)
		}
	}
}

// TestHashIsOfWhatIsMeant: other units, another order and the sign of a zero make
// no other calibration; another value does.
func TestHashIsOfWhatIsMeant(t *testing.T) {
	text, _ := valid()
	hash := func(replace ...string) string {
		c, err := Read("x", strings.NewReader(strings.NewReplacer(replace...).Replace(text)))
		if err != nil {
			t.Fatal(err)
		}
		return c.Hash()
	}
	zero := hash("\nsend,2,ns,1,", "\nsend,0,ns,0,")
	if got := hash("\nsend,2,ns,1,", "\nsend,-0,ns,0,"); got != zero {
		t.Error("the sign of a zero matters")
	}
	if got := hash("\nsend,2,ns,1,3", "\nsend,0.002,us,0.001,0.003", "cpus,8\n", "", "# a comment\n",
		"cpus,8\n"); got != hash() {
		t.Error("units or order matter")
	}
	if zero == hash() {
		t.Error("values do not matter")
	}
}

// TestEveryCostHasAQuantity: each field of Costs is that of one quantity.
func TestEveryCostHasAQuantity(t *testing.T) {
	var c Costs
	for i := range Quantities {
		*Quantities[i].Of(&c) += float64(i + 1)
	}
	seen := map[float64]bool{}
	for _, v := range fields(c) {
		if v == 0 || seen[v] {
			t.Errorf("%+v: a cost without a quantity, or two quantities of one cost", c)
		}
		seen[v] = true
	}
	if len(seen) != len(Quantities) {
		t.Errorf("%d costs, %d quantities", len(seen), len(Quantities))
	}
}

// wrong replaces what begins with old, at a line's begin or else anywhere, by new;
// the error is at the line that begins with at, and says want.
var wrong = map[string]struct{ old, new, at, want string }{
	"unknown":      {"send,", "snd,", "send", `"snd": no such quantity; did you mean send?`},
	"unknown fact": {"arch,", "arche,", "arch", `"arche": no such quantity; did you mean arch?`},
	"no unit":      {"send,2,ns", "send,2,", "send", "send: no unit: want ns, us, ms, s"},
	"wrong unit":   {"send,2,ns", "send,2,per_s", "send", `send: unit "per_s": not one of ns, us, ms, s`},
	"no such unit": {"calls,2,per_s", "calls,2,per_m", "calls",
		`calls: unit "per_m": not one of per_s; did you mean per_s?`},
	"negative":      {"send,2,", "send,-2,", "send", `send: value "-2": negative`},
	"negative low":  {"send,2,ns,1", "send,2,ns,-1", "send", `send: low "-1": negative`},
	"NaN":           {"send,2,", "send,NaN,", "send", `send: value "NaN": not a number`},
	"infinite":      {"send,2,", "send,inf,", "send", `send: value "inf": not a number`},
	"infinite high": {"send,2,ns,1,3", "send,2,ns,1,+Inf", "send", `send: high "+Inf": not a number`},
	"too large":     {"send,2,", "send,1e400,", "send", `send: value "1e400": not a number`},
	"a day":         {"send,2,ns", "send,86401,s", "send", `send: value "86401": more than 8.64e+13 ns`},
	"no number":     {"send,2,", "send,two,", "send", `send: value "two": not a number`},
	"empty":         {"send,2,", "send,,", "send", `send: value "": not a number`},
	"never":         {"tick_interval,2,", "tick_interval,0,", "tick_interval", `tick_interval: value "0": must not be 0`},
	"twice":         {"delivery,2", "send,2", "delivery", "send: stands there twice"},
	"fact twice":    {"arch,arm64", "name,arm64", "arch", "name: stands there twice"},
	"low":           {"send,2,ns,1", "send,2,ns,2.5", "send", `send: low "2.5": more than the value, 2`},
	"high":          {"send,2,ns,1,3", "send,2,ns,1,1.5", "send", `send: high "1.5": less than the value, 2`},
	"half interval": {"send,2,ns,1,3", "send,2,ns,1,", "send", `send: low "1" and high "": want both or none`},
	"basis": {"send,2,ns,1,3,assumed", "send,2,ns,1,3,assume", "send",
		`send: basis "assume": not one of published, derived, measured, assumed; did you mean assumed?`},
	"source": {"send,2,ns,1,3,assumed,nobody knows", "send,2,ns,1,3,assumed,", "send",
		"send: no source: say where the value is from, or why it is assumed"},
	"short": {"send,2,ns,1,3,assumed,nobody knows", "send,2,ns", "send",
		"send: 3 cells, want 7: quantity,value,unit,low,high,basis,source"},
	"long fact": {`"a, b"`, "a, b", "machine",
		"machine: 3 cells, want 2: machine and its value (in quotes if there is a comma in it)"},
	"no machine": {`"a, b"`, "", "machine", "machine: empty"},
	"arch": {"arch,arm64", "arch,arm46", "arch",
		`arch "arm46": not one of x86_64, arm64, riscv64; did you mean arm64?`},
	"no CPU":     {"cpus,8", "cpus,0", "cpus", `cpus "0": want a whole number from 1 to 8192`},
	"half a CPU": {"cpus,8", "cpus,1.5", "cpus", `cpus "1.5": want a whole number from 1 to 8192`},
	"CPUs":       {"cpus,8", "cpus,8193", "cpus", `cpus "8193": want a whole number from 1 to 8192`},
	"name": {"name,mine", "name,../mine", "name",
		`name "../mine": want up to 64 letters, digits, dots, hyphens, and a letter or digit first`},
	"header": {"quantity,value", "quantities,value", "quantity",
		`"quantities,value,unit,low,high,basis,source": want the first line to be quantity,value,unit,low,high,basis,source`},
	"line break":   {`"a, b"`, "\"a\nb\"", "machine", `"a\nb": a line break or another control character in a cell`},
	"quotes":       {"name,mine", `name,"mi"ne`, "name", `extraneous or missing " in quoted-field`},
	"missing":      {"send,2,ns,1,3,assumed,nobody knows\n", "", "", "missing: send"},
	"missing fact": {"cpus,8\n", "", "", "missing: cpus"},
}

func TestReadRefuses(t *testing.T) {
	text, lines := valid()
	for name, c := range wrong {
		broken := strings.Replace("\n"+text, "\n"+c.old, "\n"+c.new, 1)
		if broken == "\n"+text {
			broken = strings.Replace("\n"+text, c.old, c.new, 1)
		}
		if broken == "\n"+text {
			t.Fatalf("%s: %q does not stand in the file", name, c.old)
		}
		want := "mine.csv: " + c.want
		if c.at != "" {
			want = "mine.csv:" + itoa(lines[c.at]) + ": " + c.want
		}
		_, err := Read("mine.csv", strings.NewReader(broken[1:]))
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n %v, want\n %s", name, err, want)
		}
	}
}

func TestReadRefusesWhatIsNoCalibration(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "x: missing: name, machine, arch, cpus, round_setup, ",
		"address,symbol,module,group\n":      `x:1: "address,symbol,module,group": want the first line to be`,
		strings.Repeat("#", MaxBytes+1):      "x: longer than 1048576 bytes: no calibration",
		"\x00\xff\n":                         `x:1: "\x00\xff": a line break or another control character`,
		strings.Join(columns, ",") + "\n\"a": "x:2: ",
	} {
		if _, err := Read("x", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, _ := valid()
	if c, err := Open(write("a.csv", text)); err != nil || c.Name != "mine" {
		t.Errorf("%v, %v", c, err)
	}
	if c, err := Open("sg2042"); err != nil || c.Name != "sg2042" {
		t.Errorf("%v, %v", c, err)
	}
	_, err := Open("sg2024")
	if err == nil || !strings.HasPrefix(err.Error(), `calibration "sg2024": no such file, and not one of `) ||
		!strings.HasSuffix(err.Error(), "did you mean sg2042?") {
		t.Error(err)
	}
	var same bytes.Buffer
	if err := builtin("sg2042").Write(&same); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(write("same.csv", same.String())); err != nil {
		t.Errorf("a copy of a built-in one: %v", err)
	}
	path := write("pretends.csv", strings.Replace(text, "name,mine", "name,sg2042", 1))
	if _, err := Open(path); err == nil ||
		err.Error() != path+`: name "sg2042" is that of a built-in calibration, which holds something else: call it otherwise` {
		t.Error(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// TestWriteReadsBack: a calibration that was written is read as it was.
func TestWriteReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Calibration{
			Name:    rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`).Draw(t, "name"),
			Machine: rapid.StringMatching(`[!-~]([ -~é]{0,20}[!-~])?`).Draw(t, "machine"),
			Arch:    rapid.SampledFrom([]string{"x86_64", "arm64", "riscv64"}).Draw(t, "arch"),
			CPUs:    rapid.IntRange(1, 8192).Draw(t, "cpus"),
		}
		for i := range Quantities {
			q := &Quantities[i]
			least := 0.0
			if q.never0 {
				least = 1e-9
			}
			e := Entry{Quantity: q, Basis: Basis(rapid.SampledFrom(bases).Draw(t, "basis")),
				Source: rapid.StringMatching(`[!-~]([ -~]{0,20}[!-~])?`).Draw(t, "source"),
				Value:  rapid.Float64Range(least, q.Unit.most()).Draw(t, "value")}
			if rapid.Bool().Draw(t, "bounded") {
				e.Low = rapid.Float64Range(0, e.Value).Draw(t, "low")
				e.High = rapid.Float64Range(e.Value, q.Unit.most()).Draw(t, "high")
			}
			c.Set(e)
		}
		var text bytes.Buffer
		if err := c.Write(&text); err != nil {
			t.Fatal(err)
		}
		back, err := Read("back", bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		if d := cmp.Diff(c, back, sameQuantity); d != "" {
			t.Fatal(d)
		}
		if back.Hash() != c.Hash() {
			t.Fatal("the same calibration has two hashes")
		}
	})
}

func FuzzRead(f *testing.F) {
	text, _ := valid()
	f.Add(text)
	f.Add("")
	f.Add("quantity,value,unit,low,high,basis,source\nname,x\nname,x\n")
	f.Add("quantity,value,unit,low,high,basis,source\n\"send\",-0,s,0x1p-3,1_0,assumed,\"a\nb\"\n")
	for _, name := range Names() {
		var b bytes.Buffer
		if err := builtin(name).Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read("fuzz", strings.NewReader(text))
		if err != nil {
			if c != nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, %q", c, err)
			}
			return
		}
		checkComplete(t, c)
		var b bytes.Buffer
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
		back, err := Read("back", &b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c, back, sameQuantity); d != "" {
			t.Fatal(d)
		}
	})
}

// TestReadLongest: a file may have MaxBytes, comments included.
func TestReadLongest(t *testing.T) {
	var b strings.Builder
	if err := Builtins()[0].Write(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString(strings.Repeat("#", MaxBytes-b.Len()))
	if c, err := Read("x", strings.NewReader(b.String())); err != nil || c.Hash() != Builtins()[0].Hash() {
		t.Error(err)
	}
}
