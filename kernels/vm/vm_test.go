// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
)

var long = flag.Bool("long", false, "run slow tests")

// said is a line of the guest.
func said(l line) string {
	text, _ := json.Marshal(l)
	return summed(string(text))
}

func summed(text string) string {
	return fmt.Sprintf("\n@vm %08x %s\r\n", crc32.ChecksumIEEE([]byte(text)), text)
}

// TestListen: what the guest says is read between what the kernel prints.
func TestListen(t *testing.T) {
	want := &Told{Release: `6.1.0 "x"`, Online: "0-2", Done: true, Skips: []Skip{{"fentry", "no BTF"}},
		Watched: []Watched{{"at_s\n1", 1}}, Callers: []Caller{{"a", Enable, "f < g"}, {"a", Enable, "f < g"}}, Readings: []Reading{{
			Action: "kprobe:vfs read", Direction: Enable, Repetition: 1, Took: 2500 * time.Microsecond,
			Rows: []Row{{"CAL", "Function call interrupts", []int{0, 19, 20}}, {"4", "", []int{1, 0, 0}}},
		}}}
	console := "[    0.1] Booting\r\n" + said(line{Told: Told{Release: want.Release, Online: want.Online}}) +
		"[    3.2] something" + said(line{Told: Told{Readings: want.Readings}}) + "[ 4.0] noise\n" +
		said(line{Told: Told{Skips: want.Skips}}) + said(line{Told: Told{Watched: want.Watched}}) +
		said(line{Told: Told{Callers: want.Callers[:1]}}) + said(line{Told: Told{Callers: want.Callers[1:]}}) +
		said(line{Told: Told{Done: true}})
	heard := 0
	told, err := listen(strings.NewReader(console), 3, func(*Told) { heard++ })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
	if heard != 7 {
		t.Errorf("heard %d times, want of release, reading, skip, watched, callers and end", heard)
	}
	got := (&Measurement{Told: *told}).Stacks()
	if len(got) != 1 || got[0].Times != 2 || got[0].Stack != "f < g" {
		t.Errorf("%+v", got)
	}
	if _, err := CallerColumns.Fill("callers", got); err != nil {
		t.Error(err)
	}
}

// TestListenRefuses: a line of the guest that is damaged is never skipped.
func TestListenRefuses(t *testing.T) {
	reading := func(r Reading) string { return said(line{Told: Told{Readings: []Reading{r}}}) }
	rows := func(rows ...Row) string { return reading(Reading{Action: "a", Direction: Enable, Rows: rows}) }
	done := said(line{Told: Told{Done: true}})
	for name, c := range map[string]struct{ console, want string }{
		"checksum":  {strings.Replace(done, "Done", "Dome", 1), "damaged"},
		"short sum": {"@vm 12 done\n", "no checksum"},
		"kind":      {summed(`{"Hello":1}`), "unknown field"},
		"cut":       {summed(`{"Skips":[{"Action":"b"`), "unexpected EOF"},
		"list":      {summed("[]"), "array"},
		"code":      {summed(`{"Watched":[{"Code":"x"}]}`), "Code"},
		"direction": {reading(Reading{Action: "a", Direction: "up"}), "direction"},
		"negative":  {reading(Reading{Action: "a", Direction: Enable, Repetition: -1}), "repetition"},
		"count":     {rows(Row{"CAL", "x", []int{1, -2}}), "row CAL: a count below 0"},
		"few":       {rows(Row{"CAL", "x", nil}), "0 counts"},
		"uneven":    {rows(Row{"CAL", "x", []int{1, 2}}) + rows(Row{"RES", "x", []int{1}}), "1 counts"},
		"CPUs":      {said(line{Told: Told{Release: "6.1", Online: "0"}}), "6.1 brought up 1 of 4 CPUs: 0"},
		"fail":      {said(line{Fail: "mount /sys: no"}), "the guest: mount /sys: no"},
	} {
		told, err := listen(strings.NewReader(c.console), 4, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if strings.HasPrefix(err.Error(), "console, line ") == (name == "fail" || name == "CPUs") {
			t.Errorf("%s: %v", name, err)
		}
		if told == nil || told.Done {
			t.Errorf("%s: %+v", name, told)
		}
	}
}

// FuzzListen: whatever a console says, what is read of it is in order.
func FuzzListen(f *testing.F) {
	f.Add(`{"Release":"6.1","Online":"0-3"}`+"\n"+`{"Readings":[{"Action":"a","Direction":"enable","Took":5,"Rows":[{"Name":"CAL","Interrupts":[1,2]}]}]}`, true)
	f.Add(`{"Skips":[{"Action":"a","Why":"b"}]}`+"\n"+`{"Fail":"x"}`, true)
	f.Add(`{"Readings":[{"":"","":"","":5}]}`, true)
	f.Add("@vm 00000000 done", false)
	f.Fuzz(func(t *testing.T, text string, sums bool) {
		console := text
		if sums {
			console = ""
			for line := range strings.SplitSeq(text, "\n") {
				console += summed(line)
			}
		}
		told, err := listen(strings.NewReader(console), 4, nil)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
		for _, r := range told.Readings {
			if !slices.Contains(directions, r.Direction) || r.Repetition < 0 || r.Took < 0 {
				t.Errorf("%+v", r)
			}
			for _, row := range r.Rows {
				if len(row.Interrupts) == 0 || slices.Min(row.Interrupts) < 0 {
					t.Errorf("%+v", row)
				}
			}
		}
	})
}

// TestCPIO: what cpio itself unpacks is what was packed; and by hand, the format's first file.
func TestCPIO(t *testing.T) {
	entries := []entry{{"dir", folder, nil}, {"dir/init", executable, []byte("text")},
		{"odd", plain, []byte("12345")}, {"none", plain, nil}}
	var b bytes.Buffer
	if err := writeCPIO(&b, entries); err != nil {
		t.Fatal(err)
	}
	want := "070701" + "00000001" + "000041ED" + strings.Repeat("0", 16) + "00000001" + strings.Repeat("0", 48) +
		"00000004" + "00000000" + "dir\x00"
	if got := b.String()[:len(want)]; got != want || b.Len()%4 != 0 {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("skipped: cpio is not installed: nothing else unpacks the archive")
	}
	list := exec.Command("cpio", "--quiet", "-itv")
	list.Stdin = &b
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		got = append(got, f[0]+" "+f[4]+" "+f[len(f)-1])
	}
	unpacked := []string{"drwxr-xr-x 0 dir", "-rwxr-xr-x 4 dir/init", "-rw-r--r-- 5 odd", "-rw-r--r-- 0 none"}
	if d := cmp.Diff(unpacked, got); d != "" {
		t.Error(d)
	}
}

// head is the first bytes of a raw image, with its magic number in place.
func head(magic string) []byte {
	b := make([]byte, 256)
	copy(b, "MZ")
	copy(b[0x38:], magic)
	return b
}

// setup is the head of a bzImage.
func setup() []byte {
	b := make([]byte, 4096)
	copy(b[0x202:], "HdrS")
	return b
}

// TestRecognise: an image says which machine it is for, or one line says why it cannot be booted.
// No stub for EFI is needed.
func TestRecognise(t *testing.T) {
	for _, c := range []struct {
		head       []byte
		arch, want string
	}{
		{setup(), "x86_64", ""},
		{head("ARM\x64"), "arm64", ""},
		{head("RSC\x05"), "riscv64", ""},
		{append([]byte("\x7fELF\x02\x01\x01"), 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0), "x86_64", ""},
		{head("NONE"), "", "does not begin"},
		{[]byte("\x7fELF and more"), "", "does not begin"},
		{nil, "", "does not begin"},
		{make([]byte, 4096), "", "does not begin"},
	} {
		e, why := recognise(c.head)
		if (e == nil) != (c.arch == "") || e != nil && e.Arch != c.arch ||
			!strings.Contains(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%q: %+v, %q, want %s %q", c.head[:min(len(c.head), 8)], e, why, c.arch, c.want)
		}
	}
	_, err := Measure(t.Context(), Config{Image: filepath.Join(t.TempDir(), "none")})
	if err == nil {
		t.Error("no file is no error")
	}
}

// zboot wraps an image as drivers/firmware/efi/libstub/zboot-header.S does: where its payload is, and how long.
func zboot(payload []byte) []byte {
	b := make([]byte, 128)
	copy(b, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(payload)))
	return append(b, payload...)
}

// TestBootable: what is inside of a packed image is booted, byte by byte.
func TestBootable(t *testing.T) {
	raw := head("ARM\x64")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		image []byte
		want  string // of the error
	}{
		"raw":          {raw, ""},
		"gzip":         {z.Bytes(), ""},
		"zboot":        {zboot(z.Bytes()), ""},
		"cut":          {zboot(z.Bytes())[:140], "cut off"},
		"broken":       {zboot(append([]byte("\x1f\x8b\x08"), make([]byte, 100)...)), "gzip data"},
		"empty inside": {zboot(make([]byte, 100)), "does not begin as one"},
	} {
		file := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(file, c.image, 0o600); err != nil {
			t.Fatal(err)
		}
		inside, e, err := bootable(file, t.TempDir())
		if c.want != "" {
			if !errors.Is(err, ErrNotBootable) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := os.ReadFile(inside); err != nil || !bytes.Equal(got, raw) || e.Arch != "arm64" {
			t.Errorf("%s: %v, %s, %d bytes", name, err, e.Arch, len(got))
		}
	}
}

// TestCommandLine: isolated CPUs are isolated in every way that the kernel has.
func TestCommandLine(t *testing.T) {
	roles, err := ParseCPUs("idle=2,isolated=2")
	if err != nil {
		t.Fatal(err)
	}
	e := emulators[0]
	line := commandLine(&e, roles)
	wanted := []string{"isolcpus=managed_irq,domain,2,3", "nohz_full=2,3", "rcu_nocbs=2,3", "console=", "panic=-1"}
	for _, want := range wanted {
		if !slices.ContainsFunc(strings.Fields(line), func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%q lacks %s", line, want)
		}
	}
	if line := commandLine(&e, roles[:2]); strings.Contains(line, "isolcpus") {
		t.Errorf("%q isolates", line)
	}
	for spec, want := range map[string]string{
		"1": "2 to 64", "65": "2 to 64", "isolated=1,idle=2": "CPU 0", "idle=2,irqsoff=1": "irqsoff", "x": "ROLE=NUMBER",
	} {
		if _, err := ParseCPUs(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// exactly is a prediction without a range.
func exactly(n int) Prediction { return Prediction{n, ledger.Range{Least: n, Most: n}} }

// TestWithRole: CPUs are numbered from the one that switches, which is never one of them.
func TestWithRole(t *testing.T) {
	roles := []cpus.Role{cpus.Busy, cpus.Idle, cpus.Busy, cpus.Isolated}
	if busy, isolated := withRole(roles, cpus.Busy), withRole(roles, cpus.Isolated); !slices.Equal(busy, []string{"2"}) ||
		!slices.Equal(isolated, []string{"3"}) {
		t.Errorf("busy %v, isolated %v", busy, isolated)
	}
}

// TestSummaries: the quietest receiver is that of the smallest median, the patcher is
// none, and rows without anything in them are left out.
func TestSummaries(t *testing.T) {
	m := Measurement{Arch: "a", CPUs: []cpus.Role{cpus.Idle, cpus.Idle, cpus.Busy, cpus.Isolated},
		Told: Told{Release: "r"}}
	read := func(direction string, repetition int, rows ...Row) {
		m.Readings = append(m.Readings, Reading{Action: "x", Direction: direction, Repetition: repetition, Rows: rows})
	}
	for i, cal := range [][]int{{0, 20, 19, 25}, {1, 19, 30, 19}, {2, 21, 31, 19}} {
		read(Enable, i, Row{"CAL", "calls", cal})
		read(Control, i, Row{"CAL", "calls", []int{0, 1, 2, 3}})
	}
	read(Disable, 0, Row{"LOC", "timer", []int{7, 0, 0, 0}})
	got := m.Summaries()
	want := []Summary{{Arch: "a", Release: "r", Action: "x", Direction: Enable, Row: "CAL", About: "calls", Receivers: 3,
		Repetitions: 3, Quietest: 19, Isolated: 19, Least: 19, Most: 31, Patcher: 1, Idle: 1, CPU: 3}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	p := Predictions{
		{"x", Enable}:  {"CAL": exactly(18), "RES": {}, "TLB": exactly(4)},
		{"x", Disable}: {"CAL": {}},
		{"y", Enable}:  {"CAL": exactly(7)},
	}
	compared := m.Compare(p)
	var lines []string
	for i := range compared {
		s := &compared[i]
		lines = append(lines, fmt.Sprint(s.Direction, " ", s.Row, " ", s.Compared, " ", s.Difference(), " ", s.Why()))
	}
	// Not more than in the control: 1; nothing at all in a row that was predicted; and nothing, as predicted.
	told := []string{"enable CAL true 1 background", "enable TLB true -4 not explained", "disable CAL true 0 "}
	if d := cmp.Diff(told, lines); d != "" {
		t.Error(d)
	}
	exact, explained, wrong := Verdict(compared)
	if exact != 1 || explained != 1 || len(wrong) != 1 {
		t.Errorf("%d exact, %d explained, %q", exact, explained, wrong)
	}
	with := 0
	for _, c := range WithPredictions(m.Counts(), compared) {
		if c.Of != nil {
			with++
			if c.Row != "CAL" || (Switched{c.Action, c.Direction}) != (Switched{"x", Enable}) && c.CPU != 1 {
				t.Errorf("%+v", c.Count)
			}
		}
	}
	if with != 4 { // repetitions, and the one of disable
		t.Errorf("%d counts have a prediction", with)
	}
	// Seven readings, two rows, four CPUs: zeros too.
	if n := len(m.Counts()); n != 7*2*4 {
		t.Errorf("%d counts", n)
	}
}
