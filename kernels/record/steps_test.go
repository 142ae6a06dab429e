// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// tasks are stacks of two tasks.
const (
	oneTask     = 0xff20000000004000
	anotherTask = 0xff20000000008000
)

// TestStores: what a function that stores is about to store, by the meanings of its arguments; the text so far takes it
// over.
func TestStores(t *testing.T) {
	for name, c := range map[string]struct {
		means []string
		args  []uint64
		want  string
	}{
		"bytes":         {[]string{at, from, length}, []uint64{site, oneTask, 3}, "01 02 03 <- 0a 0b 0c"},
		"another order": {[]string{length, from, "", at}, []uint64{2, oneTask, 0, site}, "01 02 <- 0a 0b"},
		"a word":        {[]string{at, word}, []uint64{site, 0xffff_ffff_1122_3344}, "44 33 22 11 <- 0a 0b 0c 0d"},
		"a literal": {[]string{at, long}, []uint64{site, 0x1122_3344_5566_7788},
			"88 77 66 55 44 33 22 11 <- 0a 0b 0c 0d 0e 0f 10 11"},
		"a byte repeated": {[]string{at, fill, length}, []uint64{site, 0x1cc, 3}, "cc cc cc <- 0a 0b 0c"},
		"by another":      {[]string{copier, at, from, length}, []uint64{stores, site, oneTask, 2}, "01 02 <- 0a 0b"},
		"a word repeated": {[]string{copier, at, from, length}, []uint64{answers, site, oneTask, 8},
			"01 02 03 04 01 02 03 04 <- 0a 0b 0c 0d 0e 0f 10 11"},
		"nothing":          {[]string{at, from, length}, []uint64{site, oneTask, 0}, ""},
		"outside of text":  {[]string{at, from, length}, []uint64{anotherTask, oneTask, 2}, "01 02 <- 00 00"},
		"the first of all": {[]string{at, from, length}, []uint64{begins, oneTask, 2}, "01 02 <- 00 00"},
	} {
		x, m := recorderOf(t)
		x.kernel.Add("text_poke_memset", answers)
		x.Text.From, x.text = begins, make([]byte, site+8-begins)
		m.put(oneTask, 1, 2, 3, 4, 5, 6, 7, 8)
		m.put(site, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11)
		w := x.at[stores]
		w.args = c.means
		x.at[stores] = w
		x.stop(t, m, 1, stores, anotherTask, c.args...)
		if c.want == "" {
			if len(x.Steps) != 0 {
				t.Errorf("%s: %s", name, &x.Steps[0])
			}
			continue
		}
		if len(x.Steps) != 1 {
			t.Errorf("%s: %d steps", name, len(x.Steps))
			continue
		}
		s := &x.Steps[0]
		if got := fmt.Sprintf("% x <- % x", s.New, s.Old); got != c.want || s.CPU != 1 || s.Kind != Store || s.Name != "b" {
			t.Errorf("%s: %s, %s, want %s", name, got, s, c.want)
		}
		if i, ok := x.offset(s.At, len(s.New)); ok != (s.At != anotherTask) || ok && !bytes.Equal(x.text[i:][:len(s.New)],
			s.New) {
			t.Errorf("%s: the text so far", name)
		}
	}
}

// TestOffsets: what lies in the text with all of its bytes.
func TestOffsets(t *testing.T) {
	x := &recorder{Recording: &Recording{Text: Text{From: 0x1000}}, text: make([]byte, 16)}
	for at, want := range map[uint64]bool{0x1000: true, 0x100c: true, 0x100d: false, 0xfff: false, 0x2000: false} {
		if i, ok := x.offset(at, 4); ok != want || ok && i != int(at-0x1000) {
			t.Errorf("%#x: %d, %v", at, i, ok)
		}
	}
}

// TestReturns: a function ends when its CPU comes to where it returns, on the stack that it had; others that are to
// return there have not; and nothing is waited for there when all have.
func TestReturns(t *testing.T) {
	x, m := recorderOf(t)
	x.stop(t, m, 0, begins, oneTask+0x800)
	x.stop(t, m, 1, begins, anotherTask+0x800)
	x.stop(t, m, 0, back, oneTask+0x400) // another call of the same
	if n := len(x.Steps); n != 2 || len(x.returns[back]) != 2 {
		t.Fatalf("%q, %d wait", x.told(), len(x.returns[back]))
	}
	x.stop(t, m, 1, back, anotherTask+0x800)
	if len(x.returns[back]) != 1 {
		t.Errorf("%d wait", len(x.returns[back]))
	}
	x.stop(t, m, 0, back, oneTask+0x800)
	x.stop(t, m, 0, back, oneTask+0x800)
	if x.returns[back] != nil {
		t.Errorf("%d wait", len(x.returns[back]))
	}
	want := []string{"CPU 0: begin arch_ftrace_update_code", "CPU 1: begin arch_ftrace_update_code",
		"CPU 1: end arch_ftrace_update_code",
		"CPU 0: end arch_ftrace_update_code"}
	if d := cmp.Diff(want, x.told()); d != "" {
		t.Error(d)
	}
}

// TestKindsOfEntries: what a CPU does that enters a watched function, and what it does when that returns.
func TestKindsOfEntries(t *testing.T) {
	for kind, want := range map[Kind][]string{
		Begin: {"CPU 0: begin f", "CPU 0: end f"}, Grace: {"CPU 0: grace f", "CPU 0: elapsed f"}, Stand: {"CPU 0: stand",
			"CPU 0: go"},
		Stop: {"CPU 0: stop a", "CPU 0: resume a"}, Answer: {"CPU 0: answer f"},
		Round: {"CPU 0: round ipi_remote_fence_i", "CPU 0: done"},
	} {
		x, m := recorderOf(t)
		x.at[key] = Watch{Kind: kind, Function: "f", At: key}
		if kind == Answer {
			delete(x.at, answers)
		}
		x.stop(t, m, 0, key, oneTask, site)
		x.stop(t, m, 0, back, oneTask)
		if d := cmp.Diff(want, x.told()); d != "" {
			t.Errorf("%s: %s", kind, d)
		}
	}
}

// TestRoundsOfCallbacks: a round that calls a function which is watched is answered by it; one that calls another is
// none.
func TestRoundsOfCallbacks(t *testing.T) {
	for callback, want := range map[uint64][]string{answers: {"CPU 0: round ipi_remote_fence_i"}, site: nil} {
		x, m := recorderOf(t)
		x.at[key] = Watch{Kind: Round, Function: "on_each_cpu", At: key, args: []string{"", called}}
		x.stop(t, m, 0, key, oneTask, 1, callback)
		if d := cmp.Diff(want, x.told()); d != "" {
			t.Errorf("%#x: %s", callback, d)
		}
	}
	x, m := recorderOf(t)
	delete(x.at, answers)
	x.at[key] = Watch{Kind: Round, Function: "nothing", At: key}
	x.stop(t, m, 0, key, oneTask)
	if got := x.Steps[0].Name; got != Firmware {
		t.Errorf("where nobody answers: %s", got)
	}
}

// TestEndsWithWhatDiffers: text that is not what the stores made of it is told in pieces of at most 16 bytes.
func TestEndsWithWhatDiffers(t *testing.T) {
	x, m := recorderOf(t)
	x.Text.From, x.text = site, make([]byte, 64)
	m.put(site+2, 7)
	m.put(site+4, bytes.Repeat([]byte{8}, 20)...)
	m.put(site+63, 9)
	if err := x.finish(1); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range x.Steps {
		if s.Kind != Change || s.CPU != 1 || !bytes.Equal(s.Old, make([]byte, len(s.New))) {
			t.Errorf("%s", &s)
		}
		got = append(got, fmt.Sprintf("%d: %d of %d", s.At-site, len(s.New), s.New[0]))
	}
	if d := cmp.Diff([]string{"2: 1 of 7", "4: 16 of 8", "21: 3 of 8", "63: 1 of 9"}, got); d != "" {
		t.Error(d)
	}
}

// TestWritten: a recording as text, line by line; unknown values are left out.
func TestWritten(t *testing.T) {
	r := &Recording{Image: "hash", Release: "7.2", Arch: "x86_64", CPUs: 2, Protocol: "breakpoint", Actions: []string{"a",
		"b"},
		Watched: []string{"store f (f is there)"}, Fences: []string{"f calls g"}, Text: Text{0x1000, 0x2000}, Steps: []Step{
			{CPU: 0, Kind: Begin, Name: "f"}, {CPU: 0, Kind: Store, At: 0x10, Old: []byte{0x90, 0x91},
				New: []byte{0xcc, 0xcd}, Name: "f"},
			{CPU: 1, Kind: Trap, At: 0x10}, {CPU: 0, Kind: End, Name: "f"}, {CPU: 1, Kind: Move, Name: "0"}}}
	const want = "# textpoke recording 1\n# image: hash\n# release: 7.2\n# arch: x86_64\n# cpus: 2\n# protocol: breakpoint\n# text: 1000-2000\n" +
		"# action: a\n# action: b\n# fence: f calls g\n# watched: store f (f is there)\nstep,cpu,what,address,old,new,batch,name\n" +
		"1,0,begin,,,,,f\n2,0,store,10,9091,cccd,1,f\n3,1,trap,10,,,,\n4,0,end,,,,1,f\n5,1,move,,,,,0\n# steps: 5\n"
	var b bytes.Buffer
	if err := r.Write(&b); err != nil || b.String() != want {
		t.Errorf("%v, %s", err, cmp.Diff(want, b.String()))
	}
	file := filepath.Join(t.TempDir(), "a.recording")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Open(file)
	if err != nil || got.Name() != file || r.Name() != "7.2" {
		t.Fatal(got, err)
	}
	r.File = file
	if d := cmp.Diff(r, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if _, err := Open(file + "-none"); !os.IsNotExist(err) {
		t.Error(err)
	}
	r.Text = Text{}
	b.Reset()
	if err := r.Write(&b); err != nil || strings.Contains(b.String(), "# text:") {
		t.Error(err)
	}
	for i, want := range []string{"CPU 0: begin f", "CPU 0: store 0x10 cc cd <- 90 91 f", "CPU 1: trap 0x10",
		"CPU 0: end f", "CPU 1: move 0"} {
		if got := r.Steps[i].String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if from := r.Steps[i].From(); from != map[bool]int{true: 0, false: -1}[i == 4] {
			t.Errorf("%s comes from CPU %d", want, from)
		}
	}
	if (&Step{Kind: Move, Name: "x"}).From() != -1 {
		t.Error("a move from nowhere")
	}
	for kind, want := range map[Kind]bool{Store: true, Trap: true, Stop: false} {
		if got := r.Watches(kind); got != want {
			t.Errorf("%s is watched: %v", kind, got)
		}
	}
	if (&Recording{Watched: []string{"stopping x"}}).Watches(Stop) ||
		!(&Recording{Watched: []string{"stop x"}}).Watches(Stop) {
		t.Error("a kind is a word")
	}
}

// TestTextHas: bytes of which one lies in the text, from its first to before its end.
func TestTextHas(t *testing.T) {
	for at, want := range map[uint64]bool{0xffb: false, 0xffc: false, 0xffd: true, 0x1000: true, 0x1fff: true,
		0x2000: false} {
		if got := (Text{0x1000, 0x2000}).Has(at, 4); got != want {
			t.Errorf("%#x: %v", at, got)
		}
	}
}

// TestBatchesOfWords: of instruction sets whose sites are words, a literal belongs to the word behind it, whichever was
// stored first; one whose word stays is a site of its own; a stopped machine stores eight bytes of code.
func TestBatchesOfWords(t *testing.T) {
	lit, other := strings.Repeat("01", 8), strings.Repeat("02", 8)
	store := func(cpu int, at string, now string) string {
		return fmt.Sprintf("%d,store,%s,%s,%s,f", cpu, at, strings.Repeat("00", len(now)/2), now)
	}
	for name, c := range map[string]struct {
		arch  string
		steps []string
		want  []string
	}{
		"literal first": {"arm64", []string{store(0, "100", lit), store(0, "10c", "aaaaaaaa")},
			[]string{": 10c=aaaaaaaa literal 100=" + lit}},
		"literal behind": {"arm64", []string{store(0, "10c", "aaaaaaaa"), store(0, "100", lit)},
			[]string{": 10c=aaaaaaaa literal 100=" + lit}},
		"as near as it may be": {"arm64", []string{store(0, "100", lit), store(0, "110", "aaaaaaaa")},
			[]string{": 110=aaaaaaaa literal 100=" + lit}},
		"too far": {"arm64", []string{store(0, "100", lit), store(0, "114", "aaaaaaaa")},
			[]string{": 100= literal 100=" + lit + " 114=aaaaaaaa"}},
		"two of them": {"arm64", []string{store(0, "100", lit), store(0, "200", other), store(0, "20c",
			"bbbbbbbb")}, []string{": 100= literal 100=" + lit + " 20c=bbbbbbbb literal 200=" + other}},
		"a round between": {"arm64", []string{store(0, "100", lit), "0,round,,,,g", store(0, "10c", "aaaaaaaa")},
			[]string{": 10c=aaaaaaaa literal 100=" + lit}},
		"a round behind": {"arm64", []string{store(0, "10c", "aaaaaaaa"), "0,round,,,,g", store(0, "20c",
			"bbbbbbbb")}, []string{": 10c=aaaaaaaa", ": 20c=bbbbbbbb"}},
		"eight bytes stopped": {"riscv64", []string{"0,stop,,,,s", store(0, "100", lit), "0,resume,,,,s"},
			[]string{"s: 100=" + lit}},
		"by another CPU": {"riscv64", []string{"0,stop,,,,s", "1,stand,,,,", store(1, "100", "aaaaaaaa"),
			"1,go,,,,", store(1, "200", "bbbbbbbb"), "0,resume,,,,s"}, []string{"s: 100=aaaaaaaa", ": 200=bbbbbbbb"}},
		"it moves": {"arm64", []string{"0,begin,,,,f", store(0, "10c", "aaaaaaaa"), "1,move,,,,0",
			store(1, "20c", "bbbbbbbb"), "1,end,,,,f"}, []string{"f: 10c=aaaaaaaa 20c=bbbbbbbb"}},
		"onto a busy CPU": {"x86_64", []string{"1,begin,,,,g", "0,begin,,,,f", store(0, "10", "cc"), "1,move,,,,0",
			"1,end,,,,f",
			store(1, "20", "cc"), "1,end,,,,g"}, []string{"f: 10=cc", "g: 20=cc"}},
		"no longer a site": {"x86_64", []string{store(0, "100", strings.Repeat("aa", 16)), store(0, "110", "bbbb")},
			[]string{": 100=" + strings.Repeat("aa", 16) + " 110=bbbb"}},
		"in place of a literal": {"arm64", []string{store(0, "10c", "aaaaaaaa"), store(0, "10c", lit)},
			[]string{": 10c=aaaaaaaa 10c= literal 10c=" + lit}},
		"stopped, then a literal": {"arm64", []string{"0,stop,,,,s", store(0, "100", lit), store(0, "10c", "aaaaaaaa"),
			"0,resume,,,,s"},
			[]string{"s: 100=" + lit + " 10c=aaaaaaaa"}},
		"nothing is open": {"x86_64", []string{"0,round,,,,g", "1,end,,,,f", "0,resume,,,,s", "1,move,,,,0", "0,publish,,,,",
			store(0, "10", "cc")},
			[]string{": 10=cc"}},
		"behind a site": {"x86_64", []string{store(0, "100", "aaaa"), store(0, "102", "bbbb")}, []string{": 100=aaaabbbb"}},
		"one in another": {"x86_64", []string{"0,begin,,,,f", "0,begin,,,,g", store(0, "10", "cc"), "0,end,,,,g",
			store(0, "20", "cc"), "0,end,,,,f"}, []string{"g: 10=cc", "f: 20=cc"}},
		"behind a loose one": {"x86_64", []string{store(0, "10", "cc"), "0,begin,,,,g", store(0, "20", "cc"),
			"0,end,,,,g"}, []string{": 10=cc", "g: 20=cc"}},
		"near after a round": {"x86_64", []string{store(0, "10", "cc"), "0,round,,,,g", store(0, "1f", "90"),
			"0,round,,,,g", store(0, "30", "90")}, []string{": 10=cc 1f=90", ": 30=90"}},
		"around another": {"x86_64", []string{"0,begin,,,,f", store(0, "10", "cc"), "0,begin,,,,g", store(0, "20", "cc"),
			"0,end,,,,g",
			store(0, "30", "cc"), "0,end,,,,f"}, []string{"f: 10=cc 30=cc", "g: 20=cc"}},
		"a word over a literal": {"arm64", []string{store(0, "100", lit), store(0, "100", "aaaaaaaa")},
			[]string{": 100= literal 100=" + lit + " 100=aaaaaaaa"}},
		"parts of a site": {"x86_64", []string{store(0, "10", "01020304"), store(0, "12", "0a0b0c")},
			[]string{": 10=01020a0b0c"}},
	} {
		text := firstLine + "\n# arch: " + c.arch + "\n# cpus: 2\n" + strings.Join(columns, ",") + "\n"
		for i, s := range c.steps {
			at := strings.LastIndex(s, ",")
			text += fmt.Sprintf("%d,%s,%s\n", i+1, s[:at], s[at:])
		}
		r, err := Read("x", strings.NewReader(text+fmt.Sprintf("# steps: %d\n", len(c.steps))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, b := range r.Batches() {
			said := b.By + ":"
			for _, s := range b.Sites {
				said += fmt.Sprintf(" %x=%x", s.Addr, s.New)
				if s.Literal != nil {
					said += fmt.Sprintf(" literal %x=%x", s.Literal.Addr, s.Literal.New)
				}
			}
			got = append(got, said)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for arch, want := range map[string]bool{"arm64": true, "riscv64": false, "x86_64": false, "z80": false} {
		if got := (&Recording{Arch: arch}).Words(); got != want && arch != "riscv64" {
			t.Errorf("%s: %v", arch, got)
		}
	}
}

// TestFresh: code that is copied to its place, by its length or by who copies it.
func TestFresh(t *testing.T) {
	for want, all := range map[bool][]Step{true: {{New: make([]byte, 17)}, {Name: "text_poke_copy_locked"},
		{Name: "arch_prepare_optimized_kprobe"}},
		false: {{New: make([]byte, 16)}, {Name: "text_poke"}, {Name: "my_text_poke_copy"}}} {
		for _, s := range all {
			if s.Fresh() != want {
				t.Errorf("%+v: %v", s, s.Fresh())
			}
		}
	}
}
