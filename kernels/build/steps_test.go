// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// standIns puts programs in front of all others: texts of shell scripts by their names.
func standIns(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// building is a build in a new folder, which tells its lines.
func building(t *testing.T, source string) (b *builder, told *[]string) {
	t.Helper()
	told = new([]string)
	b = &builder{Config: Config{Source: source, Out: t.TempDir(), Jobs: 3,
		Progress: func(line string) { *told = append(*told, line) }},
		arch: Arch{Name: "riscv64", Make: "riscv", Compiler: "cross-", Image: "arch/riscv/boot/Image"}}
	return b, told
}

// archived is an archive of folders that hold a Kconfig.
func archived(t *testing.T, folders ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range folders {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name,
			"Kconfig"), []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(t.TempDir(), "linux-source-7.2.tar.gz")
	if out, err := exec.Command("tar", append([]string{"-czf", archive, "-C", dir},
		folders...)...).CombinedOutput(); err != nil {
		t.Skipf("skipped: tar: %v: %s", err, out)
	}
	return archive
}

// TestSources: a folder is copied, an archive holds one folder, a package one archive, and a name is downloaded; the
// folder is this source's from then on, and nothing else is left of unpacking.
func TestSources(t *testing.T) {
	archive := archived(t, "linux")
	folder := written(t, map[string]string{"Kconfig": "linux", ".hidden": ""})
	deb := filepath.Join(t.TempDir(), "linux-source.deb")
	if err := os.WriteFile(deb, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	const unpacks = `[ "$1" = -x ] || exit 3
mkdir -p "$3/usr/src"; for a in $(cat "$2"); do cp "$a" "$3/usr/src/"; done`
	t.Setenv("DEB", deb)
	standIns(t, map[string]string{"dpkg-deb": unpacks,
		"apt-get": `[ "$*" = "download -q linux-source-0.1" ] && cp "$DEB" here.deb`})
	for source, files := range map[string]int{folder: 2, archive: 1, deb: 1, "linux-source-0.1": 1} {
		b, told := building(t, source)
		if err := b.unpack(t.Context()); err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		inside, _ := os.ReadDir(b.path("source"))
		if len(inside) != files || read(t, b.path("source", "Kconfig")) != "linux" || read(t, b.path("source.name")) != source {
			t.Errorf("%s: %v", source, inside)
		}
		if (*told)[0] != "unpack "+source {
			t.Errorf("%s: told %q", source, *told)
		}
		left, _ := filepath.Glob(b.path("unpacking-*"))
		if len(left) != 0 {
			t.Errorf("%s: %q is left", source, left)
		}
		if err := os.WriteFile(b.path("source", "mine"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		n := len(*told)
		if err := b.unpack(t.Context()); err != nil || len(*told) != n || read(t, b.path("source", "mine")) != "" { // it stays
			t.Errorf("%s again: %v, %q", source, err, *told)
		}
	}
	b, _ := building(t, archive)
	if err := errors.Join(os.Mkdir(b.path("source"), 0o700), os.WriteFile(b.path("source", "old"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := b.unpack(t.Context()); err != nil { // of an interrupted build
		t.Fatal(err)
	}
	if _, err := os.Stat(b.path("source", "old")); err == nil {
		t.Error("a tree without a name is trusted")
	}
}

// TestSourcesRefused: a file that is no source is refused by its name, in one line that says why.
func TestSourcesRefused(t *testing.T) {
	two, one := archived(t, "linux", "other"), archived(t, "linux")
	empty := filepath.Join(t.TempDir(), "empty.deb")
	many := filepath.Join(t.TempDir(), "many.deb")
	for file, text := range map[string]string{empty: "", many: one + "\n" + filepath.Join(filepath.Dir(one),
		"linux-source-6.1.tar.xz")} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(one, filepath.Join(filepath.Dir(one), "linux-source-6.1.tar.xz")); err != nil {
		t.Fatal(err)
	}
	plain := written(t, map[string]string{"Makefile": ""})
	standIns(t, map[string]string{"dpkg-deb": `mkdir -p "$3/usr/src"; for a in $(cat "$2"); do cp "$a" "$3/usr/src/"; done`,
		"apt-get": `case $3 in *none) echo "E: Unable to locate package $3" >&2; exit 100;; *two) touch a.deb b.deb;; esac`})
	for source, want := range map[string]string{
		two:           "source " + two + ": the archive has 2 folders, want one",
		empty:         "source " + empty + ": it has 0 archives linux-source-* in /usr/src, want one",
		many:          "source " + many + ": it has 2 archives linux-source-* in /usr/src, want one",
		plain:         "source " + plain + ": no kernel's source: it has no Kconfig",
		"./no/such":   "source ./no/such: stat ",
		"linux-none":  "source linux-none: no file, not in /usr/src, and not to be had: apt-get: E: Unable to locate package linux-none (",
		"linux-two":   "source linux-two: apt-get downloaded 2 packages, want one",
		"linux-other": "source linux-other: apt-get downloaded 0 packages, want one",
	} {
		b, _ := building(t, source)
		err := b.unpack(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
		left, _ := filepath.Glob(b.path("*"))
		if slices.ContainsFunc(left, func(name string) bool { return filepath.Base(name) != logName }) {
			t.Errorf("%s: %q is left", source, left)
		}
	}
	b, _ := building(t, plain)
	b.Out = filepath.Join(b.Out, "none")
	if err := b.unpack(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "unpack source: ") {
		t.Errorf("a folder that is not there: %v", err)
	}
	b, _ = building(t, plain)
	if err := os.WriteFile(b.path("source.name"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s holds the source another, not %s: build in another folder", b.Out, plain)
	if err := b.unpack(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestRuns: a program runs in its folder with what makes builds alike, whatever the environment says; what it prints is
// logged behind its command, its lines are told, and its last failure is the error.
func TestRuns(t *testing.T) {
	b, told := building(t, "")
	t.Setenv("KBUILD_BUILD_USER", "somebody")
	t.Setenv("OWN", "kept")
	dir := t.TempDir()
	if err := b.run(t.Context(), dir, "sh", "-c",
		`pwd; echo "$KBUILD_BUILD_USER $KBUILD_BUILD_TIMESTAMP $LC_ALL $TZ $OWN" >&2`); err != nil {
		t.Fatal(err)
	}
	want := []string{dir, "textpoke 1970-01-01 C UTC kept"}
	if n := len(*told); n == 0 || (*told)[n-1] != want[1] { // lines that come together are told by the last one
		t.Errorf("told %q", *told)
	}
	if log := read(t, b.path(logName)); !strings.HasPrefix(log, "\n$ ") || !strings.Contains(log, "sh -c pwd;") ||
		!strings.HasSuffix(log, strings.Join(want, "\n")+"\n") {
		t.Errorf("%q", log)
	}
	n := len(read(t, b.path(logName)))
	for script, want := range map[string]string{
		"echo one; echo 'x.c:1: error: two'; echo three; exit 1": "sh: x.c:1: error: two (" + b.path(logName) + ")",
		"exit 3": "sh: exit status 3",
	} {
		if err := b.run(t.Context(), dir, "sh", "-c", script); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", script, err, want)
		}
	}
	if log := read(t, b.path(logName)); len(log) <= n || !strings.Contains(log, "one\nx.c:1: error: two\nthree\n") {
		t.Errorf("the log: %q", log)
	}
	if err := b.run(t.Context(), dir, "no-such-program"); err == nil || !strings.HasPrefix(err.Error(),
		"no-such-program: exec: ") {
		t.Errorf("%v", err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	if err := b.run(ctx, dir, "sh", "-c", "echo said; sleep 100"); err == nil || err.Error() != "sh was cut short: enough" {
		t.Errorf("%v", err)
	}
	b.Out = filepath.Join(b.Out, "none")
	if err := b.run(t.Context(), dir, "true"); err == nil || !strings.HasPrefix(err.Error(), "log: open ") {
		t.Errorf("%v", err)
	}
	b.Progress = nil
	b.tell("nobody listens")
}

// TestTee: of each writing the last line is told that is none of spaces alone.
func TestTee(t *testing.T) {
	b, told := building(t, "")
	log, err := os.Create(b.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	w := tee{log: log, said: new(bytes.Buffer), each: b.tell}
	for _, text := range []string{"one\ntwo\n", "\n", "  three  \n\n", ""} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if d := cmp.Diff([]string{"two", "three"}, *told); d != "" {
		t.Error(d)
	}
}

// TestMakes: the kernel's makefile in the source, with objects beside it, for the instruction set, so many at a time;
// through ccache where that is installed, which keeps what it knows in the folder.
func TestMakes(t *testing.T) {
	scripts := map[string]string{"make": `pwd; for a in "$@"; do echo "$a"; done; echo "$CCACHE_DIR"`}
	for _, through := range []string{"", "CC=ccache cross-gcc"} {
		t.Setenv("PATH", "")
		if through != "" {
			scripts["ccache"] = ""
		}
		standIns(t, scripts)
		b, _ := building(t, "")
		if err := b.compile(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(strings.TrimPrefix(read(t, b.path(logName)), "\n"), "\n")
		want := []string{b.Out, "-C", b.path("source"), "O=" + b.path("objects"), "ARCH=riscv", "CROSS_COMPILE=cross-",
			"-j3", "Image", "modules", through, b.path("ccache"), ""}
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		if d := cmp.Diff(want, strings.Split(strings.TrimSpace(said), "\n")); d != "" {
			t.Error(d)
		}
	}
}

// TestConfigures: our own options that are not to be had are left and told; of what somebody asks for it is an error.
// An option that is to be off is had where it is off, or not there. The source's program is asked where the options are
// others.
func TestConfigures(t *testing.T) {
	standIns(t, map[string]string{"make": `for a in "$@"; do case $a in O=*) o=${a#O=};; KCONFIG_ALLCONFIG=*) c=${a#*=};; esac; done
[ "$8" = allnoconfig ] || exit 4
echo asked; (grep -v LACKS "$c"; echo CONFIG_ON=y) > "$o/.config"`})
	for name, c := range map[string]struct {
		parts []fragment
		left  []string
		err   string
	}{
		"had": {[]fragment{{"ours",
			[]byte("CONFIG_A=y\nCONFIG_B=\"x=y\"\nCONFIG_OFF_LACKS=n\n# CONFIG_C=y\nOTHER=y"), false}}, nil, ""},
		"left": {[]fragment{{"ours", []byte("CONFIG_Z_LACKS=y\nCONFIG_A_LACKS=m\nCONFIG_ON=n"), false}},
			[]string{"CONFIG_A_LACKS=m", "CONFIG_ON=n", "CONFIG_Z_LACKS=y"}, ""},
		"asked": {[]fragment{{"ours", []byte("CONFIG_LACKS=y"), false}, {"own", []byte("CONFIG_A=y"), true}},
			[]string{"CONFIG_LACKS=y"}, ""},
		"refused": {[]fragment{{"own", []byte("CONFIG_Z_LACKS=y\nCONFIG_LACKS=1"), true}}, nil,
			"configuration own: CONFIG_LACKS=1, CONFIG_Z_LACKS=y is not to be had of linux for riscv64"},
	} {
		b, told := building(t, "linux")
		b.parts = c.parts
		if err := os.Mkdir(b.path("objects"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := b.configure(t.Context())
		if d := cmp.Diff(c.left, b.Left); d != "" || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, %s", name, err, d)
		}
		if d := cmp.Diff([]string{"configure", "asked"}, *told); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		want := ""
		for _, p := range c.parts {
			want += string(p.text) + "\n"
		}
		if got := read(t, b.path("wanted.config")); got != want {
			t.Errorf("%s: wanted %q, want %q", name, got, want)
		}
		for _, again := range []bool{false, true} { // with the same options, and with others
			*told, b.Left = nil, nil
			if again {
				b.parts = append(b.parts, fragment{"more", []byte("CONFIG_MORE=y"), false})
			}
			if err := b.configure(t.Context()); (err != nil) != (c.err != "") || (len(*told) > 0) != again {
				t.Errorf("%s again: %v, %q", name, err, *told)
			}
		}
	}
	b, _ := building(t, "linux")
	if err := b.configure(t.Context()); err == nil { // no folder for objects
		t.Error("configured nowhere")
	}
	b.arch.Name = "z80"
	if _, err := b.configurations(); err == nil {
		t.Error("a configuration of an architecture that there is not")
	}
}

// TestFragmentsByName: ours come first, and need not be had; then those that are asked for, by name or by file.
func TestFragmentsByName(t *testing.T) {
	b, _ := building(t, "linux")
	file := filepath.Join(b.Out, "own.config")
	if err := os.WriteFile(file, []byte("CONFIG_OWN=y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Fragments = append(Fragments(), file)
	all, err := b.configurations()
	if err != nil || len(all) != 5 {
		t.Fatal(len(all), err)
	}
	for i, name := range []string{"base", "riscv64", "lockdep", "selftests", file} {
		want, err := os.ReadFile(filepath.Join("config", name+".config"))
		if i == 4 {
			want, err = os.ReadFile(file)
		}
		if err != nil || all[i].name != name || all[i].must != (i > 1) || string(all[i].text) != string(want) {
			t.Errorf("%d: %s, must %v, %v", i, all[i].name, all[i].must, err)
		}
	}
	b.Fragments = []string{"lokdep"}
	if _, err := b.configurations(); err == nil ||
		err.Error() != "configuration open lokdep: no such file or directory, and not one of lockdep, selftests; did you mean lockdep?" {
		t.Error(err)
	}
}
