// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records/fakekernel"
)

// TestAsMeasured: actions go by the names of files, wherever these lie, as the guest has them.
func TestAsMeasured(t *testing.T) {
	for action, want := range map[string]string{
		"kprobe:vfs_read": "kprobe:vfs_read", "idle": "idle", "module-load:/lib/a.ko.xz": "module-load:a.ko",
		"module-load:a.ko":                           "module-load:a.ko",
		"uprobe:/usr/bin/true@2":                     "uprobe:true@2",
		"together:5:idle&reload:/lib/a.ko.gz&&churn": "together:5:idle&reload:a.ko&&churn",
		"together:5:idle&churn":                      "together:5:idle&churn",
		"together:5:reload:/x/b.ko&reload:/y/c.ko":   "together:5:reload:b.ko&reload:c.ko",
	} {
		if got := asMeasured(action); got != want {
			t.Errorf("%s: %s, want %s", action, got, want)
		}
	}
}

// TestModuleEntries: a module goes into the machine unpacked, under the name of its file; a file that is none is
// refused by its name.
func TestModuleEntries(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("\x7fELF packed"))
	z.Close()
	for name, text := range map[string]string{"a.ko": "\x7fELF plain", "b.ko.gz": packed.String(), "c.ko": "nothing",
		"d.ko.gz": packed.String()[:12]} {
		write(t, file(name), text)
	}
	for name, want := range map[string]entry{"a.ko": {"a.ko", plain, []byte("\x7fELF plain")}, "b.ko.gz": {"b.ko",
		plain, []byte("\x7fELF packed")}} {
		got, err := moduleEntry(file(name))
		if err != nil || got.name != want.name || got.mode != want.mode || !bytes.Equal(got.text, want.text) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"none.ko": "module: ",
		"c.ko":    "module " + file("c.ko") + ": no ELF file, nor a packed one",
		"d.ko.gz": "module " + file("d.ko.gz") + ": "} {
		if e, err := moduleEntry(file(name)); e.name != "" || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", name, e, err, want)
		}
	}
	names := func(action string) (names []string, err error) {
		all, err := filesOf(action)
		for _, e := range all {
			names = append(names, e.name)
		}
		return names, err
	}
	for action, want := range map[string][]string{"idle": nil, "module-load:" + file("a.ko"): {"a.ko"},
		"together:5:idle&churn": nil,
		"together:5:reload:" + file("a.ko") + "&idle&reload:" + file("b.ko.gz"): {"a.ko", "b.ko"}} {
		if got, err := names(action); !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: %q, %v", action, got, err)
		}
	}
	for _, action := range []string{"module-load:" + file("c.ko"), "together:5:idle&reload:" + file("c.ko"),
		"uprobe:" + file("none")} {
		if got, err := names(action); err == nil {
			t.Errorf("%s: %q", action, got)
		}
	}
}

// TestEntryNotes: an ELF file is booted where one of its notes says where; other notes stand beside it.
func TestEntryNotes(t *testing.T) {
	note := func(name string, kind uint32, desc string) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
		b = append(binary.LittleEndian.AppendUint32(b, kind), name...)
		b = append(b, make([]byte, -len(b)&3)...)
		b = append(b, desc...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	entry, other := note("Xen\x00", entryNote, "12345678"), note("GNU\x00", 3, "abcdef")
	const none = "it is an ELF file without an entry for PVH (CONFIG_PVH); boot the vmlinuz or Image that was made of it"
	for name, c := range map[string]struct {
		notes []byte
		kind  elf.ProgType
		want  string
	}{
		"alone": {entry, elf.PT_NOTE, ""}, "behind another": {slices.Concat(other, entry), elf.PT_NOTE, ""},
		"no note":         {entry, elf.PT_LOAD, none},
		"of another kind": {note("Xen\x00", 17, "1234"), elf.PT_NOTE, none}, "of somebody else": {note("Yen\x00",
			entryNote, "1234"), elf.PT_NOTE, none},
		"nothing": {nil, elf.PT_NOTE, none}, "others": {slices.Concat(other, other), elf.PT_NOTE, none},
		"cut":      {other[:11], elf.PT_NOTE, none},
		"too long": {slices.Concat(note("GNU\x00", 3, "abcd")[:4], []byte{255, 255, 255, 127}, entry), elf.PT_NOTE, none},
	} {
		header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64,
			Ehsize: 64, Phentsize: 56, Phnum: 1}
		copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
		var b bytes.Buffer
		for _, part := range []any{&header, &elf.Prog64{Type: uint32(c.kind), Off: 120, Filesz: uint64(len(c.notes))}} {
			if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(t.TempDir(), "vmlinux")
		write(t, file, b.String()+string(c.notes))
		if got := noEntry(file); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "junk")
	write(t, file, "\x7fELF")
	nextFile(t, file)
	was := nextFile(t, file)
	if _, err := headOf(file); err != nil {
		t.Error(err)
	}
	if got := noEntry(os.Args[0]); got != none || nextFile(t, file) != was {
		t.Errorf("this program: %q, or it stays open", got)
	}
	if got := noEntry(file); got == "" || got == none {
		t.Errorf("junk: %q", got)
	}
}

// nextFile is the number of the next file that is opened.
func nextFile(t *testing.T, name string) uintptr {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Fd()
}

// TestWhyAMachineFailed: the first reason that counts: who asked for an end, the guest, the emulator's own words,
// its exit, or a kernel that went off by itself, before the guest said anything or behind.
func TestWhyAMachineFailed(t *testing.T) {
	guest, exit := errors.New("the guest: no"), errors.New("exit status 1")
	over, stop := context.WithCancel(t.Context())
	stop()
	up := &Told{Release: "7.2"}
	for _, c := range []struct {
		ctx          context.Context
		told         *Told
		heard, ended error
		complaint    string
		want         string
	}{
		{t.Context(), &Told{Done: true}, nil, exit, "killed", ""}, {t.Context(), &Told{Done: true}, guest, nil, "",
			"the guest: no"},
		{over, up, guest, exit, "said", "context canceled"}, {t.Context(), up, guest, exit, "said", "the guest: no"},
		{t.Context(), up, nil, exit, "qemu: no such machine\nmore", "qemu: no such machine"}, {t.Context(), up, nil,
			exit, "", "the emulator: exit status 1"},
		{t.Context(), up, nil, nil, "a warning", "the kernel panicked before the guest was done"},
		{t.Context(), &Told{}, nil, nil, "",
			"the kernel panicked before the guest said anything: does it take an initial RAM disk and a serial console?"},
	} {
		err := (&Config{}).failed(c.ctx, c.told, c.heard, c.ended, c.complaint)
		if (err != nil) != (c.want != "") || err != nil && err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c, err, c.want)
		}
		if panicked := strings.HasPrefix(c.want, ErrDied.Error()); errors.Is(err, ErrDied) != panicked {
			t.Errorf("%v: a panic %v", err, panicked)
		}
	}
	err := &BootError{"vmlinuz", "log", guest}
	if err.Error() != "boot vmlinuz: the guest: no (its console: log)" || !errors.Is(err, guest) {
		t.Error(err)
	}
}

// unpackCPIO reads an archive in the newc form: names and contents, and the kinds that are no plain files.
func unpackCPIO(t *testing.T, b []byte) (files, kinds map[string]string) {
	t.Helper()
	files, kinds = map[string]string{}, map[string]string{}
	for len(b) >= 110 {
		field := func(i int) int {
			n, err := strconv.ParseUint(string(b[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, length := field(1), field(6), field(11)
		name := string(b[110 : 110+length-1])
		at := (110 + length + 3) &^ 3
		if name != "TRAILER!!!" {
			files[name], kinds[name] = string(b[at:at+size]), fmt.Sprintf("%o", mode)
		}
		b = b[(at+size+3)&^3:]
	}
	return files, kinds
}

// standIns puts programs in front of all others.
func standIns(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n"+text)
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// TestDisk: the machine's disk has the guest, which is built once for its source, the job with actions as the guest
// calls them, and all their files.
func TestDisk(t *testing.T) {
	built := filepath.Join(t.TempDir(), "built")
	t.Setenv("BUILT", built)
	standIns(t, map[string]string{"go": `echo "$GOARCH $GOOS $CGO_ENABLED $*" >> "$BUILT"; ls > init`})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.ko"), "\x7fELF a")
	write(t, filepath.Join(dir, "b.ko"), "\x7fELF b")
	var told []string
	c := &Config{CPUs: []cpus.Role{cpus.Busy, cpus.Idle, cpus.Busy}, Repetitions: 4, Modules: []string{filepath.Join(dir,
		"a.ko")},
		Actions:  []string{"idle", "module-load:" + filepath.Join(dir, "b.ko")},
		Progress: func(line string) { told = append(told, line) }}
	e := &emulator{Arch: "arm64", GOARCH: "arm64"}
	for i, want := range []struct {
		actions []string
		builds  int
	}{{[]string{"idle", "module-load:b.ko"}, 1}, {[]string{"callers:idle", "callers:module-load:b.ko"}, 1},
		{[]string{"idle", "module-load:b.ko"}, 2}} {
		if c.Callers = i == 1; i == 2 { // of another source
			c.more.source = map[string][]byte{"more.go": []byte("package main\n")}
		}
		disk := filepath.Join(dir, "disk")
		if err := c.initramfs(t.Context(), e, disk); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(disk)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		files, kinds := unpackCPIO(t, b)
		wantKinds := map[string]string{"proc": "40755", "sys": "40755", "dev": "40755", "init": "100755",
			"a.ko": "100644", "b.ko": "100644", "job": "100644"}
		if d := cmp.Diff(wantKinds, kinds); d != "" || files["a.ko"] != "\x7fELF a" || files["b.ko"] != "\x7fELF b" {
			t.Errorf("%d: %s", i, d)
		}
		if !strings.Contains(files["init"], "go.mod\n") || !strings.Contains(files["init"], "main.go\n") ||
			strings.Contains(files["init"], "more.go") != (i == 2) {
			t.Errorf("%d: the guest is built of %q", i, files["init"])
		}
		var job map[string]any
		if err := json.Unmarshal([]byte(files["job"]), &job); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(job), fmt.Sprint(map[string]any{"Repetitions": 4, "Wait": false,
			"Modules": []string{"a.ko"}, "Actions": want.actions,
			"Busy": []string{"2"}}); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
		text, err := os.ReadFile(built)
		if n := strings.Count(string(text),
			"arm64 linux 0 build -trimpath -buildvcs=false -ldflags -s -w -o init .\n"); err != nil ||
			n != want.builds {
			t.Errorf("%d: built %d times: %q", i, n, text)
		}
		kept, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "textpoke", "guest-arm64-*"))
		if told[len(told)-1] != "guest for arm64" || len(kept) != want.builds {
			t.Errorf("told %q, kept %q", told, kept)
		}
	}
	for _, change := range []func(c *Config){func(c *Config) { c.Modules = []string{"none.ko"} },
		func(c *Config) { c.Actions = []string{"module-load:none.ko"} }} {
		other := *c
		if change(&other); other.initramfs(t.Context(), e, filepath.Join(dir, "disk")) == nil {
			t.Error("a file that is not there")
		}
	}
	if err := c.initramfs(t.Context(), e, filepath.Join(dir, "none", "disk")); err == nil ||
		!strings.HasPrefix(err.Error(), "initramfs: ") {
		t.Error(err)
	}
	standIns(t, map[string]string{"go": "echo main.go:1: wrong; exit 2"})
	if err := c.initramfs(t.Context(), e, filepath.Join(dir, "disk")); err == nil ||
		err.Error() != "build the guest for arm64: go build: exit status 2: main.go:1: wrong" {
		t.Error(err)
	}
	t.Setenv("PATH", dir)
	if err := c.initramfs(t.Context(), e, filepath.Join(dir, "disk")); err == nil ||
		err.Error() != "build the guest for arm64: the go tool is not installed, and the guest is built from source" {
		t.Error(err)
	}
}

// TestNothingIsPredicted: a file that is no kernel, or one that does not say how it patches, has no forecast; the
// reason is told.
func TestNothingIsPredicted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "Image")
	for _, text := range []string{"", string(fakekernel.Make("offsets-last").Data)} {
		if text != "" {
			write(t, file, text)
		}
		p, notes, err := Predict(Config{Image: file, Actions: []string{"idle"}})
		if err == nil && len(notes) == 0 || err != nil && (p != nil || notes != nil || !strings.HasPrefix(err.Error(),
			"predict: ")) {
			t.Errorf("%v, %q, %v", p, notes, err)
		}
	}
}

// TestBootsAgain: a machine that dies is booted three times, and one whose guest fails, or whose emulator does, once;
// an emulator that is not there is told with its package, and the console of a machine that failed is kept.
func TestBootsAgain(t *testing.T) {
	image := filepath.Join(t.TempDir(), "bzImage")
	write(t, image, string(setup()))
	_, e, err := bootable(image, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script string
		again  int
		err    string
	}{
		"dies":     {"echo hello", 2, "the kernel panicked before the guest said anything"},
		"fails":    {"cat <<'X'\n" + said(line{Fail: "no"}) + "\nX", 0, "the guest: no"},
		"emulator": {"echo no machine >&2; exit 1", 0, "no machine"},
		"done": {"cat <<'X'\n" + said(line{Told: Told{Release: "7.2",
			Online: "0-1"}}) + "\n" + said(line{Told: Told{Done: true}}) + "\nX", 0, ""},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		standIns(t, map[string]string{"go": "echo guest > init", e.QEMU: c.script})
		again := 0
		m, err := Measure(t.Context(), Config{Image: image, CPUs: make([]cpus.Role, 2), Actions: []string{"idle"},
			Progress: func(line string) {
				if strings.HasSuffix(line, ": once more") {
					again++
				}
			}})
		if again != c.again || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) ||
			m == nil || m.Arch != e.Arch {
			t.Errorf("%s: %d times more, %v, %+v", name, again, err, m)
		}
		if name == "done" && (m.Release != "7.2" || !m.Done) {
			t.Errorf("%s: it said %+v", name, m.Told)
		}
		left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
		var failed *BootError
		if errors.As(err, &failed) != (c.err != "") || failed != nil && !slices.Equal(left,
			[]string{failed.Console}) || failed == nil && len(left) != 0 {
			t.Errorf("%s: %q are left", name, left)
		}
	}
	t.Setenv("PATH", t.TempDir())
	want := fmt.Sprintf("boot %s: %s is not installed (Debian's package %s)", image, e.QEMU, e.Debian)
	if _, err := Measure(t.Context(), Config{Image: image, CPUs: make([]cpus.Role, 2)}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
