// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// inside is an address whose five bytes lie in one aligned quadword; three bytes
// from across on do, and two more in the next one.
const (
	inside records.Addr = 0x1000
	across records.Addr = 0x1005
)

// fetchTable is small histories, the oldest text first, and every text that a CPU
// may fetch that synchronised before them all. Texts are bytes in hex; what begins
// with a breakpoint is cc, whatever follows.
var fetchTable = []struct {
	name, arch string
	at         records.Addr
	history    string
	want       map[Fetch]string
}{
	{"nothing was stored", "x86_64", inside, "0f00", map[Fetch]string{
		Weak: "0f00", Coherent: "0f00", Quadword: "0f00", Atomic: "0f00",
	}},
	{"two bytes, one store", "x86_64", inside, "0f00 e801", map[Fetch]string{
		Weak:     "0f00 0f01 e800 e801",
		Coherent: "0f00 0f01 e801", // a new tail behind the old head, never the other way round
		Quadword: "0f00 e801",
		Atomic:   "0f00 e801",
	}},
	{"two bytes, one store, across a border", "x86_64", inside + 7, "0f00 e801", map[Fetch]string{
		Weak:     "0f00 0f01 e800 e801",
		Coherent: "0f00 0f01 e800 e801", // the store has not got over the border yet
		Quadword: "0f00 0f01 e800 e801",
		Atomic:   "0f00 0f01 e800 e801",
	}},
	{"two bytes, two stores, across a border", "x86_64", inside + 7, "0f00 e801 cc02", map[Fetch]string{
		Weak:     "0f00 0f01 0f02 e800 e801 e802 cc",
		Coherent: "0f00 0f01 0f02 e800 e801 e802 cc",
		Quadword: "0f00 0f01 0f02 e800 e801 e802 cc",
		Atomic:   "0f00 0f01 e800 e801 e802 cc", // one store is in flight, never two
	}},
	{"two bytes, the tail stored first", "x86_64", inside, "0f00 0f01 e801", map[Fetch]string{
		Weak:     "0f00 0f01 e800 e801",
		Coherent: "0f00 0f01 e801",
		Quadword: "0f00 0f01 e801",
		Atomic:   "0f00 0f01 e801",
	}},
	{"the three stores of a breakpoint protocol", "x86_64", inside, "0f0000 cc0000 cc0102 e80102", map[Fetch]string{
		Weak:     "0f0000 0f0002 0f0100 0f0102 cc e80000 e80002 e80100 e80102",
		Coherent: "0f0000 0f0002 0f0102 cc e80102", // without rounds: the old head with the new tail
		Quadword: "0f0000 cc e80102",
		Atomic:   "0f0000 cc e80102",
	}},
	{"the same behind its first round", "x86_64", inside, "cc0000 cc0102 e80102", map[Fetch]string{
		Weak:     "cc e80000 e80002 e80100 e80102",
		Coherent: "cc e80102", // no second round is needed
		Quadword: "cc e80102",
		Atomic:   "cc e80102",
	}},
	{"the same, across a border", "x86_64", inside + 6, "cc0000 cc0102 e80102", map[Fetch]string{
		Weak:     "cc e80000 e80002 e80100 e80102",
		Coherent: "cc e80102",
		Quadword: "cc e80100 e80102", // head and first byte of the tail are one read
		Atomic:   "cc e80102",
	}},
	{"two stores, back to where it was", "x86_64", inside, "0f00 e801 0f00", map[Fetch]string{
		Weak:     "0f00 0f01 e800 e801",
		Coherent: "0f00 0f01 e800 e801", // the new head, and the tail that is newer still
		Quadword: "0f00 e801",
		Atomic:   "0f00 e801",
	}},
	{"one word", "arm64", inside, "01020304 05060708 01060304", map[Fetch]string{
		Weak: "01020304 01060304 05060708", Coherent: "01020304 01060304 05060708",
		Quadword: "01020304 01060304 05060708", Atomic: "01020304 01060304 05060708",
	}},
	{"a word of two parcels", "riscv64", inside + 6, "01020304 05060708", map[Fetch]string{
		Weak:     "01020304 01020708 05060304 05060708",
		Coherent: "01020304 01020708 05060304 05060708",
		Quadword: "01020304 01020708 05060304 05060708",
		Atomic:   "01020304 01020708 05060304 05060708",
	}},
}

// TestFetchTable: the texts of each history, exactly.
func TestFetchTable(t *testing.T) {
	for _, c := range fetchTable {
		history := textsOf(t, c.history)
		code, n := codeFor(t, c.arch), len(strings.Fields(c.history)[0])/2
		for _, f := range Fetches() {
			code.Fetch = f
			got, want := fetched(code, history, c.at, n), textsOf(t, c.want[f])
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %x, want %x", c.name, f, got, want)
			}
			if slow := slowly(code, history, c.at, n); !slices.Equal(slow, want) {
				t.Errorf("%s, %s: the slow way gives %x, want %x", c.name, f, slow, want)
			}
		}
	}
}

// TestFetchModels compares what the answers of a Chooser lead to with an
// enumeration of all ways to put grains together, of which each model's rule
// leaves some; and models with each other.
func TestFetchModels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		code := codeFor(t, rapid.SampledFrom(ArchNames()).Draw(rt, "arch"))
		n, at := code.Traits.FetchLen, inside+records.Addr(rapid.IntRange(0, 7).Draw(rt, "at"))
		if step := map[string]records.Addr{"arm64": 4, "riscv64": 2}[code.Traits.Name]; step > 0 {
			at = at / step * step
		}
		few := rapid.SampledFrom([]byte{0, 1, byte(code.Arch.Breakpoint())})
		history := make([]isa.Text, rapid.IntRange(1, 4).Draw(rt, "versions"))
		for i := range history {
			history[i] = isa.TextOf(rapid.SliceOfN(few, n, n).Draw(rt, "text")...)
		}
		all := map[Fetch][]isa.Text{}
		for _, f := range Fetches() {
			code.Fetch = f
			all[f] = fetched(code, history, at, n)
			if want := slowly(code, history, at, n); !slices.Equal(all[f], want) {
				rt.Fatalf("%s at %s of %x: %x, want %x", f, at, history, all[f], want)
			}
		}
		for f, texts := range all {
			within(rt, all[Atomic], texts, fmt.Sprintf("atomic in %s", f))
			within(rt, texts, all[Weak], fmt.Sprintf("%s in weak", f))
		}
		if at%8+records.Addr(n) <= 8 && !slices.Equal(all[Atomic], all[Quadword]) {
			rt.Fatalf("within a quadword: atomic %x, quadword %x", all[Atomic], all[Quadword])
		}
	})
}

// codeFor is the code of an instruction set, without sites.
func codeFor(t *testing.T, name string) *Code {
	t.Helper()
	arch, err := ParseArch(name)
	if err != nil {
		t.Fatal(err)
	}
	return &Code{Arch: arch, Traits: arch.Traits()}
}

func textsOf(t *testing.T, list string) (texts []isa.Text) {
	t.Helper()
	for word := range strings.FieldsSeq(list) {
		b, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, isa.TextOf(b...))
	}
	return texts
}

// TestRetiredFetch: the model that no manual states is refused, with its nearest neighbour.
func TestRetiredFetch(t *testing.T) {
	_, err := ParseFetch("ordered")
	if err == nil || !strings.Contains(err.Error(), `"ordered": retired`) || !strings.Contains(err.Error(), "nearest is coherent") {
		t.Errorf("ordered: %v", err)
	}
	if slices.Contains(FetchNames(), "ordered") || len(FetchNames()) != len(Fetches()) {
		t.Errorf("models %v", FetchNames())
	}
}

// fetched is every text that some answers of a Chooser lead to. In Weak and Coherent, which
// read grain by grain, different answers lead to different texts.
func fetched(code *Code, history []isa.Text, at records.Addr, n int) (texts []isa.Text) {
	var window []Version
	for i, t := range slices.Backward(history) {
		window = append(window, Version{Seq(i + 1), t})
	}
	ways := 0
	everyAnswer(func(ch Chooser) {
		ways++
		texts = append(texts, code.mix(window, at, 0, n, ch))
	})
	texts = whole(code, texts, n)
	if (code.Fetch == Weak || code.Fetch == Coherent) && ways != len(texts) {
		panic(fmt.Sprintf("%s: %d ways to %d texts", code.Fetch, ways, len(texts)))
	}
	return texts
}

// whole sorts texts, each once, with breakpoints as one instruction.
func whole(code *Code, texts []isa.Text, n int) []isa.Text {
	bp := code.Traits.BreakpointLen
	for i, t := range texts {
		if bp < n && t.Slice(0, bp) == code.Arch.Breakpoint() {
			texts[i] = code.Arch.Breakpoint()
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// slowly takes every byte from every version, and keeps what the model's rule says
// of the versions; from[i] counts from the oldest.
func slowly(code *Code, history []isa.Text, at records.Addr, n int) (texts []isa.Text) {
	from := make([]int, n)
	for {
		if possible(code, from, at) {
			var t isa.Text
			for i, v := range from {
				t = t.Splice(i, 1, history[v].Slice(i, 1))
			}
			texts = append(texts, t)
		}
		i := 0
		for ; i < n; i++ {
			if from[i]++; from[i] < len(history) {
				break
			}
			from[i] = 0
		}
		if i == n {
			return whole(code, texts, n)
		}
	}
}

// possible is what each model says of where the bytes of a fetch come from.
func possible(code *Code, from []int, at records.Addr) bool {
	grain := records.Addr(code.Arch.Grain(at))
	for i := 1; i < len(from); i++ {
		a := at + records.Addr(i)
		if a%grain != 0 && from[i] != from[i-1] {
			return false // in the middle of a grain
		}
		switch code.Fetch {
		case Coherent:
			if from[i] < from[i-1] && (a%8 != 0 || from[i] < from[i-1]-1) {
				return false
			}
		case Quadword, Atomic:
			if a%8 != 0 && from[i] != from[i-1] {
				return false
			}
		}
	}
	return code.Fetch != Atomic || slices.Max(from)-slices.Min(from) <= 1
}

func within(t *rapid.T, a, b []isa.Text, what string) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			t.Fatalf("%s: %x is not in %x", what, x, b)
		}
	}
}
