// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/records/fakekernel"
)

// unpacked is a recording of the testdata as text.
func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".recording.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReadBack: what is read is written as it was, byte for byte, and is read packed as well.
func TestReadBack(t *testing.T) {
	for _, name := range []string{"x86_64-6.1-vfs", "riscv64-7.2-vfs"} {
		text := unpacked(t, name)
		r, err := Read(name, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Count(text, []byte("\n")) - bytes.Count(text, []byte("#")) - 1; len(r.Steps) != want {
			t.Errorf("%s: %d steps, want %d", name, len(r.Steps), want)
		}
		var b, z bytes.Buffer
		if err := r.Write(&b); err != nil || !bytes.Equal(b.Bytes(), text) {
			t.Errorf("%s: %v, %s", name, err, cmp.Diff(string(text), b.String()))
		}
		packer := gzip.NewWriter(&z)
		_, _ = packer.Write(text)
		packer.Close()
		again, err := Read(name, &z)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, again); d != "" {
			t.Error(d)
		}
	}
}

const small = firstLine + "\n# arch: x86_64\n# cpus: 2\nstep,cpu,what,address,old,new,batch,name\n1,0,store,10,00,cc,1,f\n2,1,trap,10,,,,\n# steps: 2\n"

// TestReadRefuses: what is damaged is refused with its line.
func TestReadRefuses(t *testing.T) {
	if r, err := Read("x", strings.NewReader(small)); err != nil || len(r.Steps) != 2 {
		t.Fatalf("%v, %v", r, err)
	}
	if r, err := Read("x", strings.NewReader(strings.Replace(small, "# cpus: 2", "# cpus: 64", 1))); err != nil ||
		r.CPUs != 64 {
		t.Errorf("as many CPUs as there may be: %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{firstLine, "# textpoke recording 2", "x: no recording"},
		{firstLine, "\x1f\x8b", "x: no recording"},
		{"# steps: 2\n", "", "x:7: it ends without its last line"},
		{"# steps: 2", "# steps: 3", `x:7: it says that it has "3" steps, and has 2`},
		{"# steps: 2\n", "# steps: 2\n3,0,done,,,,,\n", "x:7: something stands behind"},
		{"# cpus: 2", "# cpus: 1", `x:3: cpus "1": want 2 to 64`},
		{"# cpus: 2", "# cpus: 65", "want 2 to 64"},
		{"# cpus: 2", "# cpus: 2\n# text: 20-10", `x:4: text "20-10": want two addresses`},
		{"# cpus: 2\n", "", `want lines "# arch:" and "# cpus:"`},
		{"# arch:", "# bird:", `x:2: "bird": no such key`},
		{"# arch:", "arch:", `want "# KEY: VALUE"`},
		{"2,1,trap", "2,2,trap", `CPU "2": want 0 to 1`},
		{"2,1,trap", "2,-1,trap", `CPU "-1"`},
		{"2,1,trap", "3,1,trap", `step "3": want 2`},
		{"1,trap", "1,tarp", `what "tarp"`},
		{"trap,10", "trap,1g", `address "1g"`},
		{"trap,10", "trap,", "without an address"},
		{"0,store,10,00,cc,1,f", "0,begin,,,,,", "without a name"},
		{"00,cc", "00,", "as many bytes before as after"},
		{"00,cc", "0,cc", "as many bytes before as after"},
		{"00,cc", ",", `a step "store" with 0 bytes`},
		{"10,,,,", "10,00,00,,", `a step "trap" with 1 bytes`},
		{"store,10", "store,ffffffffffffffff", "beyond the last address"},
		{"0,store,10,00,cc,1,f", "0,store", "want 8 fields"},
		{"0,store,10,00,cc,1,f", "0,move,,,,,0", `a step "move" from CPU "0": want another one`},
		{"0,store,10,00,cc,1,f", "0,move,,,,,2", `from CPU "2"`},
		{"0,store,10,00,cc,1,f", "0,move,,,,,", `from CPU ""`},
	} {
		text := strings.Replace(small, c.old, c.new, 1)
		_, err := Read("x", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q: %v, want %q", c.new, c.old, err, c.want)
		}
		if foreign := c.old == firstLine; errors.Is(err, ErrNoRecording) != foreign {
			t.Errorf("%q: %v", c.new, err)
		}
	}
}

// FuzzRead: a recording that is read is written and read again as the same; all else is an error of one line.
func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add(unpacked(f, "riscv64-7.2-vfs"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read("x", bytes.NewReader(b))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		for _, batch := range r.Batches() {
			if len(batch.Sites) == 0 || len(batch.Steps) == 0 {
				t.Errorf("an empty batch: %+v", batch)
			}
		}
		var again bytes.Buffer
		if err := r.Write(&again); err != nil {
			t.Fatal(err)
		}
		got, err := Read("x", &again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, got); d != "" {
			t.Error(d)
		}
	})
}

// TestBatches: what a kernel did is cut into batches as the functions that did it say, and by what belongs together
// where none says.
func TestBatches(t *testing.T) {
	read := func(steps ...string) []string { // of each the CPU, what, address, old, new and name
		var rows strings.Builder
		for i, s := range steps {
			at := strings.LastIndex(s, ",")
			fmt.Fprintf(&rows, "%d,%s,%s\n", i+1, s[:at], s[at:])
		}
		text := strings.Replace(small, "1,0,store,10,00,cc,1,f\n2,1,trap,10,,,,\n# steps: 2",
			fmt.Sprintf("%s# steps: %d", &rows, len(steps)), 1)
		r, err := Read("x", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, b := range r.Batches() {
			text := b.By + ":"
			for _, s := range b.Sites {
				text += fmt.Sprintf(" %x=%x", s.Addr, s.New)
			}
			out = append(out, text)
		}
		return out
	}
	for name, c := range map[string]struct{ steps, want []string }{
		"phases": {[]string{"0,begin,,,,f", "0,store,10,00,cc,f", "0,store,20,00,cc,f", "0,round,,,,g",
			"0,store,11,00000000,01020304,f",
			"0,store,21,00,05,f", "0,round,,,,g", "0,store,10,cc,e8,f", "0,store,20,cc,eb,f", "0,end,,,,f"},
			[]string{"f: 10=e801020304 20=eb05"}},
		"loose": {[]string{"0,store,10,e8,cc,f", "0,round,,,,g", "0,store,50,90,cc,f", "0,round,,,,g"}, []string{": 10=cc",
			": 50=cc"}},
		"beside": {[]string{"0,store,10,50,cc,f", "0,store,11,51,cc,f", "0,round,,,,g"}, []string{": 10=cc 11=cc"}},
		"stopped": {[]string{"0,stop,,,,cb", "1,store,10,00,01,f", "0,resume,,,,cb", "1,store,10,01,02,f"},
			[]string{"cb: 10=01", ": 10=02"}},
		"fresh": {[]string{"0,store,10," + strings.Repeat("00", 17) + "," + strings.Repeat("01", 17) + ",f"}, nil},
		"empty": {[]string{"0,begin,,,,f", "0,end,,,,f"}, nil},
	} {
		if d := cmp.Diff(c.want, read(c.steps...)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestTimeline: every step is an event on its CPU's track, and what begins ends.
func TestTimeline(t *testing.T) {
	r, err := Read("x", bytes.NewReader(unpacked(t, "x86_64-6.1-vfs")))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Timeline(&b); err != nil {
		t.Fatal(err)
	}
	trace, err := readtrace.Read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i, track := range trace.Tracks {
		cpu, want := i-1, 0
		for _, s := range r.Steps {
			if s.CPU == cpu && !ends[s.Kind] {
				want++
			}
		}
		if len(track.Slices) != want || i > 0 && track.Name != fmt.Sprintf("CPU %d", cpu) {
			t.Errorf("%s: %d slices, want %d", track.Name, len(track.Slices), want)
		}
	}
	if len(trace.Tracks) != 1+r.CPUs { // the first one says what was left out
		t.Errorf("%d tracks", len(trace.Tracks))
	}
}

// TestRecordRefuses: a file that is no kernel, or one in which no function is found that stores to text, is refused
// before it is booted.
func TestRecordRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "Image")
	var c Config
	c.Image = file
	if r, err := Record(t.Context(), c); r != nil || !os.IsNotExist(err) {
		t.Errorf("%v, %v", r, err)
	}
	if err := os.WriteFile(file, fakekernel.Make("offsets-last").Data, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Record(t.Context(), c); r != nil || !errors.Is(err, ErrNoRule) || !strings.HasPrefix(err.Error(),
		file+": ") {
		t.Errorf("%v, %v", r, err)
	}
}
