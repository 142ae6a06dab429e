// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Where the test's program lies.
const (
	textAt = 0x400ff0
	fileAt = textFile + textAt%pageSize
)

// text is a nop10 that crosses a page, then one of each kind.
func text() ([]byte, []probe) {
	t := make([]byte, 200)
	for i := range t {
		t[i] = 0x55 // push %rbp
	}
	copy(t[8:], bytesOf[Nop10]) // at 0x400ff8, two bytes behind the page's end
	copy(t[32:], bytesOf[Nop10])
	copy(t[64:], bytesOf[Nop5])
	copy(t[96:], bytesOf[Nop1])
	copy(t[195:], bytesOf[Nop10][:5]) // cut off by the end of the text
	return t, []probe{{"crossing", textAt + 8}, {"ten", textAt + 32}, {"five", textAt + 64}, {"one", textAt + 96},
		{"push", textAt + 128}, {"cut", textAt + 195}}
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestReadProgram: every kind of site is found and told apart, also in a program that
// was moved after it was linked.
func TestReadProgram(t *testing.T) {
	code, probes := text()
	for _, by := range []uint64{0, 0x10000} {
		p, err := ReadProgram(write(t, program(code, textAt, by, probes...)))
		if err != nil {
			t.Fatal(err)
		}
		want := []Site{
			{"app", "crossing", textAt + 8, fileAt + 8, Nop10, true}, {"app", "ten", textAt + 32, fileAt + 32, Nop10, false},
			{"app", "five", textAt + 64, fileAt + 64, Nop5, false}, {"app", "one", textAt + 96, fileAt + 96, Nop1, false},
			{"app", "push", textAt + 128, fileAt + 128, Other, false},
			{"app", "cut", textAt + 195, fileAt + 195, Other, false},
		}
		if !slices.Equal(p.Sites, want) {
			t.Errorf("%+v, want %+v", p.Sites, want)
		}
		if n := p.Count(); n != [insns]int{3, 1, 1, 1} {
			t.Errorf("%v sites", n)
		}
	}
}

// TestBadPrograms: each gets a line that says what is wrong.
func TestBadPrograms(t *testing.T) {
	code, probes := text()
	good := program(code, textAt, 0, probes...)
	notes := bytes.Index(good, []byte("stapsdt\x00")) - 12
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	for want, data := range map[string][]byte{
		"not an ELF file":              []byte("#!/bin/sh\n"),
		"is for EM_AARCH64 ELFCLASS64": change(func(b []byte) { b[18] = 183 }),
		"has no USDT " +
			"probes": change(func(b []byte) { copy(b[bytes.Index(b, []byte(".note.stapsdt")):], ".bote") }),
		"note 1: is cut off":                 change(func(b []byte) { b[notes+7] = 0x7f }),
		"note 1: app:crossing at 0x55400ff8": change(func(b []byte) { b[notes+12+8+3] = 0x55 }),
	} {
		file := write(t, data)
		if _, err := ReadProgram(file); err == nil || !strings.HasPrefix(err.Error(), "program "+file+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := ReadProgram(t.TempDir()); err == nil {
		t.Error("a directory is a program")
	}
}

// FuzzProgram: whatever a file holds, reading it ends, and what it says holds together.
func FuzzProgram(f *testing.F) {
	code, probes := text()
	f.Add(program(code, textAt, 0, probes...))
	f.Fuzz(func(t *testing.T, data []byte) {
		sites, err := readSites(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, s := range sites {
			if s.Offset >= uint64(len(data)) || s.Insn >= insns || s.Crosses && s.Insn < Nop5 {
				t.Errorf("%+v in a file of %d bytes", s, len(data))
			}
		}
	})
}
