// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seedTexts is what people feed, and what they should not.
func seedTexts(f *testing.F) {
	mail := testdata(f, "mail-2019.txt")
	f.Add(mail)
	f.Add(cutRows(mail))
	f.Add(testdata(f, "x86-8cpus-1offline.txt"))
	f.Add(testdata(f, "arm64-4cpus.txt"))
	for _, s := range []string{
		"", "CAL: 1\n", "CAL: 1 2\r\n3 4 x\r\n", "< CAL: 1 2\n> CAL: 2 3\n", "CPU0\nCPU1\nERR: 0\n9: 1 2 -  x\n",
		"-CAL: 1 2\n+CAL: 99999999999999999999 1\n", "CAL: -1\n", "> > < 1: 1\n>>> 1: 2\n", "\x00", "CAL: 1 2\nCAL: 1",
	} {
		f.Add(s)
	}
}

// fuzzErr checks that an error is one short line of the right type.
func fuzzErr(t *testing.T, err error) {
	var p *ParseError
	if !errors.As(err, &p) {
		t.Fatalf("not a ParseError: %v", err)
	}
	if s := err.Error(); strings.ContainsAny(s, "\n\r\x00") || len(s) > 400 {
		t.Fatalf("not one short line: %q", s)
	}
}

// fuzzSnapshot checks that a snapshot is valid and survives Write and Parse.
func fuzzSnapshot(t *testing.T, s Snapshot) {
	var b bytes.Buffer
	if err := errors.Join(valid(s), Write(&b, s)); err != nil {
		t.Fatal(err)
	}
	back, err := Parse("again", &b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back, sameCounts); diff != "" {
		t.Fatalf("written and read (-first +again):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("fuzz", strings.NewReader(text))
		if err != nil {
			fuzzErr(t, err)
			return
		}
		fuzzSnapshot(t, s)
	})
}

func FuzzParseDiff(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := ParseDiff("fuzz", strings.NewReader(text))
		if err != nil {
			fuzzErr(t, err)
			return
		}
		for _, p := range pairs {
			fuzzSnapshot(t, p.Before)
			fuzzSnapshot(t, p.After)
			deltas, err := Diff(p.Before, p.After)
			if err != nil {
				fuzzErr(t, err)
				return
			}
			for _, d := range deltas {
				if e := d.Explain(); e.Known && !e.Consistent || !e.Consistent && e.Reason == "" {
					t.Fatalf("%v explained as %+v", d, e)
				}
			}
		}
		for _, p := range pairs {
			if _, err := Compare(p, Options{All: true, Slots: 1, PerBatch: 3}); err != nil {
				fuzzErr(t, err)
			}
		}
	})
}
