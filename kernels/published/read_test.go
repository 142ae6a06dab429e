// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/inputs"
)

// TestEmbedded: the tables are there, and what they say agrees with the mails.
func TestEmbedded(t *testing.T) {
	counts, err := Interrupts.Read("")
	if err != nil {
		t.Fatal(err)
	}
	readings, err := Readings(counts)
	if err != nil || len(readings) != 4 {
		t.Fatalf("%d readings, %v", len(readings), err)
	}
	sums := map[string]int64{}
	for _, r := range readings {
		for _, d := range r.Deltas() {
			sums[r.Name()] += d
		}
	}
	// Seven receivers took each round: 120, 115, 657 and 661 of them.
	for name, rounds := range map[string]int64{"ftrace-own-breakpoints, enable": 120,
		"ftrace-own-breakpoints, disable": 115, "text-poke-batched, enable": 657, "text-poke-batched, disable": 661} {
		if sums[name] != 7*rounds {
			t.Errorf("%s: %d interrupts, want %d", name, sums[name], 7*rounds)
		}
	}
	if _, err := Readings(append(counts, counts[0])); err == nil ||
		err.Error() != "ftrace-own-breakpoints, enable: cpu 0 stands behind cpu 7: CPUs must ascend" {
		t.Errorf("a CPU twice: %v", err)
	}
	keys, err := JumpLabels.Read("")
	if err != nil || len(keys) != 3 || keys[0].UpdateMS.Known || keys[1].UpdateMS.Value != 57 ||
		keys[1].Rounds != 3*keys[1].Entries || keys[2].Rounds != 3 {
		t.Errorf("jump labels: %+v, %v", keys, err)
	}
	refs, err := Refcounts.Read("")
	if err != nil || len(refs) != 4 || refs[0].UpdateUS.Value != 2655300 || refs[3].ProgramNS.Known {
		t.Errorf("refcounts: %+v, %v", refs, err)
	}
	iso, err := Isolation.Read("")
	if err != nil || len(iso) != 14 || iso[0].Value != 5400 {
		t.Errorf("isolation: %+v, %v", iso, err)
	}
}

// TestWrong: what is wrong is named with file, line and value.
func TestWrong(t *testing.T) {
	const head = "measurement,value,unit,source\n"
	for text, want := range map[string]string{
		"":                          "f.csv:1: the file is empty",
		head:                        "f.csv:1: there are no rows",
		"a,b\n":                     `f.csv:1: "a,b": want the columns measurement,value,unit,source`,
		head + "x,1,ns,s\nx,1,ms,s": `f.csv:3: unit "ms": want one of count, ns`,
		head + "x,-1,ns,s":          `f.csv:2: value "-1": want a number, 0 or more`,
		head + "x,NaN,ns,s":         `f.csv:2: value "NaN": want a number, 0 or more`,
		head + "x,,ns,s":            `f.csv:2: value "": want a number, 0 or more`,
		head + "x,1,ns, ":           `f.csv:2: source " ": is missing`,
		head + "x,1,ns":             "f.csv:2: wrong number of fields",
		head + "x,\"1,ns,s":         `f.csv:2: extraneous or missing " in quoted-field`,
		head + "x," + strings.Repeat("9", 400) + ",ns,s": `f.csv:2: value "` + strings.Repeat("9", 60) +
			`...": want a number, 0 or more`,
	} {
		_, err := Isolation.read("f.csv", strings.NewReader(text))
		var p *inputs.ParseError
		if !errors.As(err, &p) || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Isolation.Read(t.TempDir() + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	bad := "patching,action,cpu,before,after,delta,source\ntext-poke-batched,enable,0,5,7,3,s\n"
	if _, err := Interrupts.read("f.csv", strings.NewReader(bad)); err == nil ||
		err.Error() != `f.csv:2: delta "3": is not after less before` {
		t.Errorf("delta: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"function-call-interrupts-2019", "jump-label-2019", "refcount-2025", "isolation-2025"} {
		b, err := data.ReadFile("data/" + name + ".csv")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Interrupts.read("f", strings.NewReader(text))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
		for _, err := range []error{second(JumpLabels.read("f", strings.NewReader(text))),
			second(Refcounts.read("f", strings.NewReader(text))), second(Isolation.read("f", strings.NewReader(text)))} {
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
