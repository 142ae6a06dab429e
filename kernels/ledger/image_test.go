// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// TestFromImage: a kernel has what was written into its image, and a file of its facts has all of it.
func TestFromImage(t *testing.T) {
	data := fakekernel.Make("offsets-last").Data
	linked, err := vmlinux.Read("f", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	img := image.Of(linked)
	k, err := FromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	again := written(t, k)
	for what, k := range map[string]*Kernel{"image": k, "file": again} {
		f := k.Facts
		if k.Name() != "riscv64-9.9.9-synthetic" || f.Hash != img.Hash || f.Records != 2 || f.Unnamed || len(f.Recorder) != 0 {
			t.Errorf("%s: %s, %+v", what, k.Name(), f)
		}
		if !maps.Equal(f.Keys, map[string]int{"__tracepoint_a_point+0x8": 2}) {
			t.Errorf("%s: keys %v", what, f.Keys)
		}
		if !maps.Equal(f.Calls, map[string]image.Call{"tp_func_a_point": {Name: "tp_func_a_point", Trampoline: true, Sites: 1}}) {
			t.Errorf("%s: static calls %v", what, f.Calls)
		}
		if tp := f.Tracepoints["a_point"]; len(f.Tracepoints) != 1 || tp.Branches != 2 || len(tp.Switches) != 0 {
			t.Errorf("%s: tracepoints %v", what, f.Tracepoints)
		}
		if !slices.Equal(f.Events, []image.Event{{Group: "a_group", Name: "a_point", Tracepoint: "a_point"}}) {
			t.Errorf("%s: events %v", what, f.Events)
		}
		if _, known := f.Mechanisms[image.UpdateRounds]; known || !strings.HasPrefix(f.Unknown[image.UpdateRounds], "no rule holds: ") {
			t.Errorf("%s: %q of a kernel without code", what, f.Unknown[image.UpdateRounds])
		}
		if t2 := k.Own; t2 == nil || t2.Len() != 2 || t2.Symbol(0) != "_stext" || t2.Symbol(1) != "function_00002" ||
			t2.Addr(1) != fakekernel.Base+fakekernel.Text+68 {
			t.Errorf("%s: records %v", what, t2)
		}
	}
}

// written is a kernel as a file of its facts has it.
func written(t *testing.T, k *Kernel) *Kernel {
	t.Helper()
	var b strings.Builder
	if err := WriteFacts(&b, k); err != nil {
		t.Fatal(err)
	}
	again, err := ReadFacts("f", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// unsized is a kernel of which nobody can tell how many patches a batch takes.
func unsized(t *testing.T) *Kernel {
	t.Helper()
	k, err := FromImage(image.Of(fakekernel.Compile(t, "testdata/unsized.c")))
	if err != nil {
		t.Fatal(err)
	}
	if why := k.Facts.Unknown[image.BatchSlots]; !strings.Contains(why, "the size of the vector is not known") {
		t.Fatalf("slots: %q, %+v", why, k.Facts.Mechanisms[image.BatchSlots])
	}
	return k
}

// TestUnsized: a key with one branch is one batch of three rounds whatever the size of the vector, one with three
// branches up to three batches. What needs the size says that it is not known.
func TestUnsized(t *testing.T) {
	k := unsized(t)
	for key, want := range map[string]Range{"one_key": {Least: 3, Most: 3}, "three_key": {Least: 3, Most: 9}} {
		sent, lines := both(t, k, "static-key:"+key)
		var got Range
		for i := range lines[0] {
			got.Add(&lines[0][i].Entry)
		}
		if sent != [2]int{3, 3} || got != want {
			t.Errorf("%s: %v, %v, want %v", key, sent, got, want)
		}
	}
	r, err := k.NewReplay(k.Own)
	if err != nil {
		t.Fatal(err)
	}
	const reason = "mechanism batch-slots: no rule holds: the size of the vector is not known"
	if r.batches(3, k.Own.Addr); r.err == nil || !strings.Contains(r.err.Error(), reason) {
		t.Errorf("three records: %v", r.err)
	}
	r.err = nil
	if n := r.batches(1, k.Own.Addr); n != 1 || r.err != nil {
		t.Errorf("one record: %d batches, %v", n, r.err)
	}
}

// TestWrittenAnswers: a file of facts with its records answers what the image does.
func TestWrittenAnswers(t *testing.T) {
	k := mustKernel(t, "x86_64-6.12")
	var raw []records.Raw
	for i := range k.Facts.Records { // further apart than the kernel's groups are large
		raw = append(raw, records.Raw{Addr: records.Addr(0xffffffff81000000 + 0x1000*uint64(i)), Symbol: fmt.Sprintf("f_%05d", i)})
	}
	own := *k
	var err error
	if own.Own, err = records.New("own", k.Arch, raw); err != nil {
		t.Fatal(err)
	}
	again := written(t, &own)
	for action, patched := range map[string]int{"function-tracer:f_000*": 100, "instance:f_0000?": 10, "filter-change:f_0000?>f_000*": 90,
		"function-graph:f_00001": 1, "kprobe:f_00007": 1} {
		for i, k := range []*Kernel{&own, again} {
			r, err := k.NewReplay(k.Own)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := r.Switch(action, true)
			n := 0
			for _, l := range lines {
				n += l.Records
			}
			if err != nil || n != patched {
				t.Errorf("%s, %d: %d records, %v, want %d", action, i, n, err, patched)
			}
		}
	}
	const good = factsHeader + "\narch,arm64,0,,\nrelease,9.9,0,,\nrecords,all,1,,\nrecord,vfs_read,0,0x1000,\n"
	for text, want := range map[string]string{
		strings.Replace(good, "0x1000", "there", 1):         `f:5: detail "there": want a number`,
		strings.Replace(good, "all,1", "all,2", 1):          "f: 1 records are named: want 2",
		strings.Replace(good, "0x1000", "0", 1):             "f: ",
		strings.Replace(good, "vfs_read", "a b", 1):         "f: ",
		strings.Replace(good, "vfs_read", `"a`+"\n"+`"`, 1): "f: ",
	} {
		if k, err := ReadFacts("f", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, %v, want %s", k, err, want)
		}
	}
	if _, err := ReadFacts("f", strings.NewReader(good)); err != nil {
		t.Error(err)
	}
}

// TestNotOn: a program that is not there is not taken away, and a breakpoint that stops every CPU does so once.
func TestNotOn(t *testing.T) {
	r := mustReplay(t, "x86_64-6.12")
	if _, err := r.Switch("fentry:vfs_write", false); err == nil || !strings.HasSuffix(err.Error(), ": no program is on vfs_write") {
		t.Error(err)
	}
	stops := with(with(with(mustKernel(t, "riscv64-7.2"), image.SkipStops, 2), image.DirectCuts, 1), image.EntryCalls, 2)
	stops = with(stops, image.EntryRounds, 5)
	r, err := stops.NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.skip()
	r.entries("f")
	lines, err := r.Take()
	if err != nil || len(lines) != 2 || lines[0].Pokes != 1 || lines[0].RoundsPerPoke != 2 || lines[1].Pokes != 2 ||
		lines[1].RoundsPerPoke != 5 {
		t.Errorf("%+v, %v", lines, err)
	}
	k := *mustKernel(t, "x86_64-6.12")
	facts := *k.Facts
	facts.Unnamed, k.Facts = true, &facts
	var b strings.Builder
	if err := WriteFacts(&b, &k); err != nil || !strings.Contains(b.String(), "\nunnamed,keys,0,,the image names no data\n") {
		t.Error("keys without names are not told", err)
	}
	if _, err := ReadFacts("f", strings.NewReader(fmt.Sprintf("%s\narch,arm64,0,,\nrelease,9,0,,\nrecords,all,%d,,\n", factsHeader,
		maxRecords))); err != nil {
		t.Error(err)
	}
}
