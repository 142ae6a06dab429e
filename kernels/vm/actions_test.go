// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// TestActions: what can be measured is what the guest knows, but for what goes on beside others.
func TestActions(t *testing.T) {
	text, err := guestSource.ReadFile("guest/action.go")
	if err != nil {
		t.Fatal(err)
	}
	_, kinds, _ := strings.Cut(string(text), "var kinds = ")
	kinds, _, _ = strings.Cut(kinds, "\n}\n")
	for _, a := range Actions() {
		if !strings.Contains(kinds, "\t\""+a.Name+"\":") {
			t.Errorf("the guest knows no action %s", a.Name)
		}
	}
	const others = 8 // what goes on beside, in together.go and recalled.go, which is not measured
	if n := strings.Count(kinds, "\n\t\""); n != len(Actions())+others {
		t.Errorf("the guest knows %d actions, %d can be measured", n, len(Actions()))
	}
}

// TestKeyFiles: the guest switches keys by files that tell, on a running machine, whether they are on.
func TestKeyFiles(t *testing.T) {
	text, err := guestSource.ReadFile("guest/action.go")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("../ledger/state.go")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`(?m)^\t"(\w+)": +\{"([^"]+)", +"1"\}`).FindAllStringSubmatch(string(text), -1)
	for _, k := range keys {
		if want := `{"` + k[1] + `", "proc/sys/` + k[2] + `"},`; !strings.Contains(string(here), want) {
			t.Errorf("no %s", want)
		}
	}
	if len(keys) != 6 {
		t.Errorf("%d keys", len(keys))
	}
}

// TestWhy: what lies within the range that was predicted is no error, and nothing else is none.
func TestWhy(t *testing.T) {
	for _, c := range []struct {
		action      string
		quietest    float64
		predicted   int
		fewer, more int // the ends of the range, from what is predicted
		want        string
	}{
		{"instance", 47, 47, 0, 5, ""}, {"instance", 49, 47, 0, 5, Bounds}, {"instance", 53, 47, 0, 5, Unknown},
		{"fentry", 17, 10, 0, 0, Unknown}, {"fentry", 12, 11, 1, 2, Bounds},
		{"fentry", 10, 11, 0, 2, Shared}, {"fentry", 10, 11, 1, 2, Bounds}, {"fentry", 9, 11, 1, 2, Unknown},
		{"module-load:dummy.ko", 9, 6, 0, 3, Bounds}, {"module-load:dummy.ko", 18, 6, 0, 3, Unknown},
	} {
		s := Summary{Action: c.action, Quietest: c.quietest, Least: int(c.quietest), Most: 60, Receivers: 3, Compared: true,
			Predicted: Prediction{c.predicted, ledger.Range{Least: c.predicted - c.fewer, Most: c.predicted + c.more}}}
		if got := s.Why(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	// 34 are predicted and 41 to 44 counted, on a busy machine: the least is 7 beyond.
	for idle, want := range map[float64]string{7: Background, 6: Unknown} {
		s := Summary{Quietest: 42, Least: 41, Most: 55, Receivers: 2, Predicted: exactly(34), Idle: idle, Compared: true}
		if got := s.Why(); got != want {
			t.Errorf("idle %g: %q, want %q", idle, got, want)
		}
	}
	if got := asMeasured("module-load:/lib/modules/x/dummy.ko.xz"); got != "module-load:dummy.ko" {
		t.Error(got)
	}
	if got := asMeasured("uprobe:/usr/bin/postgres@20"); got != "uprobe:postgres@20" {
		t.Error(got)
	}
	if got := asMeasured("kprobe:vfs_read"); got != "kprobe:vfs_read" {
		t.Error(got)
	}
}

// TestFilesOf: a program that is probed is taken along with the list of its sites.
func TestFilesOf(t *testing.T) {
	files, err := filesOf("uprobe:2xnop5@3")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	if got := files[1]; got.name != "probed-2xnop5.sites" || string(got.text) != "0x1020\n0x1030\n" {
		t.Errorf("%s: %q", got.name, got.text)
	}
	if got := files[0]; got.name != "probed-2xnop5" || got.mode != executable || !bytes.HasPrefix(got.text, []byte("\x7fELF")) {
		t.Errorf("%+v", got)
	}
	for action, want := range map[string]string{"uprobe:0xnop5": "want 1 to 1000", "uprobe:nop5@x": "processes",
		"module-load:/no/such": "no such file", "kprobe": ""} {
		if _, err := filesOf(action); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", action, err, want)
		}
	}
}

// TestCheckAction: what the guest cannot do is refused before anything is booted.
func TestCheckAction(t *testing.T) {
	for action, want := range map[string]string{
		"function-tracer": "", "function-tracer:vfs_*": "", "tracepoint:sched/sched_switch": "", "kprobe": "",
		"function_tracer": "function-tracer", "tracepoint": "tracepoint:[GROUP/]NAME",
		"idle:3": "alone", "kprobe:a\nb": "one line",
	} {
		if err := CheckAction(action); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", action, err, want)
		}
	}
}

// TestFirmwareRows: what firmware flushes is compared where a line says so, a row of /proc/interrupts where it is modelled.
func TestFirmwareRows(t *testing.T) {
	k, err := ledger.Open("riscv64-6.12")
	if err != nil {
		t.Fatal(err)
	}
	const flushes, crash = "FW_SFENCE_VMA_RECVD", "IPI3"
	var lines []ledger.Line
	for _, row := range []string{flushes, flushes, crash} {
		lines = append(lines, ledger.Line{Entry: ledger.Entry{Row: row, Pokes: 3, RoundsPerPoke: 1}})
	}
	modelledRows := map[string]Prediction{"FW_FENCE_I_RECVD": exactly(0), "IPI0": exactly(0), "IPI1": exactly(0)}
	if d := cmp.Diff(modelledRows, modelled(k, lines[:0])); d != "" {
		t.Error(d)
	}
	modelledRows[flushes] = exactly(6)
	if d := cmp.Diff(modelledRows, modelled(k, lines)); d != "" {
		t.Error(d)
	}
}

// TestGuestIsWhole: the guest is built where no module can be had, of the files that are embedded. So all of its files
// are, and they import the standard library only.
func TestGuestIsWhole(t *testing.T) {
	files, err := filepath.Glob("guest/*.go")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := guestSource.ReadFile(file)
		if err != nil {
			t.Errorf("%s is not embedded: %v", file, err)
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s, which the guest's build does not have", file, i.Path.Value)
			}
		}
	}
}
