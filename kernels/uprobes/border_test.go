// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// TestCrosses: an instruction whose last byte is the page's last does not cross.
func TestCrosses(t *testing.T) {
	for _, c := range []struct {
		at   uint64
		n    int
		want bool
	}{{0, 10, false}, {4086, 10, false}, {4087, 10, true}, {4095, 1, false}, {4095, 2, true}, {8191, 0, false}} {
		if crosses(c.at, c.n) != c.want {
			t.Errorf("%d bytes at %d: %v", c.n, c.at, !c.want)
		}
	}
}

// TestTargets: a program and its processes, from 1 to as many as Linux can have.
func TestTargets(t *testing.T) {
	for spec, want := range map[string]int{"nop5": 1, "nop5@1": 1, "2xnop5@3": 3, "nop5@4194304": 4194304} {
		p, n, err := OpenTarget(spec)
		if err != nil || n != want || p.File != strings.Split(spec, "@")[0] || len(p.Sites) == 0 {
			t.Errorf("%s: %d processes, want %d, %v", spec, n, want, err)
		}
	}
	for _, spec := range []string{"nop5@0", "nop5@", "nop5@-1", "nop5@4194305", "nop5@x"} {
		if _, _, err := OpenTarget(spec); err == nil || !strings.Contains(err.Error(), "want 1 to 4194304") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if _, err := Open("0xnop5"); err == nil || err.Error() != "program 0xnop5: 0 sites: want 1 to 1000" {
		t.Error(err)
	}
}

// TestCosts: idle CPUs are woken from 6.16 to 6.19 as was counted: 3 in
// all for 2 probes, 8 for 5.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		release   string
		two, five int
	}{{"6.15.9", 2, 5}, {"6.16", 3, 8}, {"6.17.13", 3, 8}, {"6.18", 3, 8}, {"6.19.7", 3, 8}, {"7.0", 0, 0}, {"7.2", 0, 0}} {
		for probes, want := range map[int]int{2: c.two, 5: c.five} {
			b, err := Of(c.release, Other)
			if got := b.Cost(probes, 1).Disable + b.Woken(probes); err != nil || got != want {
				t.Errorf("%s, %d probes: %d, want %d, %v", c.release, probes, got, want, err)
			}
		}
	}
}

// TestBorders: the first and the last byte of a text that is loaded, a note of the shortest
// length, and sections that are no notes.
func TestBorders(t *testing.T) {
	code := bytes.Repeat([]byte{0x90}, 64)
	sites, err := readSites(bytes.NewReader(program(code, textAt, 0, probe{"first", textAt}, probe{"last", textAt + 63})))
	if err != nil || len(sites) != 2 || sites[0].Offset != fileAt || sites[1].Offset != fileAt+63 || sites[1].Insn != Nop1 {
		t.Errorf("%+v, %v", sites, err)
	}
	for _, at := range []uint64{textAt - 1, textAt + 64} {
		_, err := readSites(bytes.NewReader(program(code, textAt, 0, probe{"outside", at})))
		if err == nil || !strings.Contains(err.Error(), "lies in no text") {
			t.Errorf("%#x: %v", at, err)
		}
	}
	good := program(code, textAt, 0, probe{"first", textAt})
	notes := bytes.Index(good, []byte("stapsdt\x00")) - 12
	for desc, want := range map[uint32]string{23: "note 1: is cut off", 24: "note 1: is cut off"} { // 24: three numbers, no names
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[notes+4:], desc)
		if _, err := readSites(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a note of %d bytes: %v, want %s", desc, err, want)
		}
	}
	segment := bytes.Clone(good)
	binary.LittleEndian.PutUint32(segment[64+4:], 4) // text that may not be executed
	if _, err := readSites(bytes.NewReader(segment)); err == nil || !strings.Contains(err.Error(), "lies in no text") {
		t.Error(err)
	}
	binary.LittleEndian.PutUint32(segment[64:], 4) // and is not loaded
	binary.LittleEndian.PutUint32(segment[64+4:], 5)
	if _, err := readSites(bytes.NewReader(segment)); err == nil || !strings.Contains(err.Error(), "lies in no text") {
		t.Error(err)
	}
	section := bytes.Clone(good)
	at := binary.LittleEndian.Uint64(section[40:]) + 2*64 + 4 // the type of the notes' section
	binary.LittleEndian.PutUint32(section[at:], 1)
	_, err = readSites(bytes.NewReader(section))
	if err == nil || !strings.Contains(err.Error(), "section .note.stapsdt: SHT_PROGBITS of ") ||
		!strings.Contains(err.Error(), "want notes of at most") {
		t.Error(err)
	}
	binary.LittleEndian.PutUint32(section[at:], 7)
	binary.LittleEndian.PutUint64(section[at+4+16:], 1<<30) // behind the file's end
	if _, err := readSites(bytes.NewReader(section)); err == nil || !strings.Contains(err.Error(), "section .note.stapsdt: ") {
		t.Error(err)
	}
}

// TestNames: a probe that is asked for and missing is named.
func TestNames(t *testing.T) {
	if got := Nop10.String() + " " + insns.String(); got != "nop10 Insn(4)" {
		t.Error(got)
	}
	if _, err := Of("7.2", insns); err == nil || err.Error() != "instruction Insn(4): want one of other, nop1, nop5, nop10" {
		t.Error(err)
	}
	for _, release := range []string{"seven", "7.1073741824"} {
		_, err := OfImage(release, 5, Nop5)
		if err == nil || err.Error() != `release "`+release+`": want two or three numbers, such as 6.18 or 7.1.9` {
			t.Error(err)
		}
	}
	for b, want := range map[string]error{"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b": errShort, string(make([]byte, 12)): nil} {
		if _, rest, err := nextNote([]byte(b)); !errors.Is(err, want) || len(rest) > 0 {
			t.Errorf("%d bytes: %v, %d left", len(b), err, len(rest))
		}
	}
}
