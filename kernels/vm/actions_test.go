// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// TestActions: what can be measured can be predicted, by the same names and arguments, but for doing nothing.
func TestActions(t *testing.T) {
	for _, a := range actions {
		i := slices.IndexFunc(ledger.Actions(), func(l ledger.Action) bool { return l.Name == a.Name })
		if i < 0 {
			if a.Name != "idle" {
				t.Errorf("action %s cannot be predicted", a.Name)
			}
			continue
		}
		if l := ledger.Actions()[i]; l.Argument != a.Argument || l.Must != a.Must {
			t.Errorf("action %s: argument %q, and that of the prediction is %q", a.Name, a.Argument, l.Argument)
		}
	}
}

// TestWhy: what was predicted as the least may be more, and nothing else may.
func TestWhy(t *testing.T) {
	for _, c := range []struct {
		action           string
		quietest         float64
		predicted, flush int
		want             string
	}{
		{"instance", 47, 47, 5, ""}, {"instance", 49, 47, 5, Pages}, {"instance", 53, 47, 5, Unknown},
		{"fentry", 17, 10, 0, Unknown}, {"fentry", 12, 11, 2, Pages},
		{"fentry", 10, 11, 2, Shared}, {"fentry", 9, 11, 2, Unknown},
		{"module-load:dummy.ko", 18, 6, 3, Pages}, {"module-load:dummy.ko", 24, 6, 3, Unknown},
		{"module-load:dummy.ko", 18, 6, 0, Unknown},
	} {
		s := Summary{Action: c.action, Quietest: c.quietest, Most: 60, Receivers: 3, Predicted: c.predicted, Flushes: c.flush,
			Compared: true}
		if got := s.Why(); got != c.want {
			t.Errorf("%+v: %q", c, got)
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
