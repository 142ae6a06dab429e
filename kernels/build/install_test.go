// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInstalls: image, configuration and modules, without the links that lead out of them; what was there before goes.
func TestInstalls(t *testing.T) {
	standIns(t, map[string]string{"make": `[ "$7" = "INSTALL_MOD_PATH=$OUT/modules" ] || exit 5
[ "$8" = INSTALL_MOD_STRIP=1 ] && [ "$9" = modules_install ] || exit 5
d=$OUT/modules/lib/modules/7; mkdir -p $d/kernel; touch $d/kernel/a.ko; ln -s / $d/build; ln -s / $d/source; ln -s / $d/other`})
	b, told := building(t, "")
	t.Setenv("OUT", b.Out)
	for name, text := range map[string]string{"objects/.config": "options",
		"objects/arch/riscv/boot/Image": "an image", "modules/lib/old.ko": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(b.path(name)), 0o700), os.WriteFile(b.path(name), []byte(text),
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if read(t, b.path("vmlinuz")) != "an image" || read(t, b.path("config")) != "options" ||
		(*told)[0] != "install modules" {
		t.Errorf("%q", *told)
	}
	for name, want := range map[string]bool{"kernel/a.ko": true, "other": true, "build": false, "source": false,
		"../old.ko": false} {
		if _, err := os.Lstat(b.path("modules/lib/modules/7", name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"objects/arch/riscv/boot/Image", "objects/.config"} {
		if err := os.Remove(b.path(name)); err != nil {
			t.Fatal(err)
		}
		if err := b.install(t.Context()); err == nil || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	standIns(t, map[string]string{"make": "exit 6"})
	if err := b.install(t.Context()); err == nil || err.Error() != "make: exit status 6" {
		t.Error(err)
	}
}

// TestManifest: the kernel's release, what is left out, and each file with its kind, its size and its hash; of modules
// those alone that are some.
func TestManifest(t *testing.T) {
	b, _ := building(t, "linux-source-7.2")
	b.Left, b.Compiler = []string{"CONFIG_Z=y", "CONFIG_A=y"}, "gcc 1"
	kinds := map[string]string{"vmlinuz": "image", "config": "config", "patches/0000.patch": "patch",
		"modules/lib/a.ko": "module",
		"modules/lib/b.ko": "module"}
	want := Built{Source: "linux-source-7.2", Arch: "riscv64", Release: "7.2.1", Compiler: "gcc 1",
		Left: []string{"CONFIG_A=y", "CONFIG_Z=y"}}
	for _, name := range []string{"vmlinuz", "config", "patches/0000.patch", "modules/lib/a.ko", "modules/lib/b.ko",
		"modules/lib/modules.dep",
		"objects/include/config/kernel.release", "objects/one.o"} {
		text := name + "\n"
		if strings.HasSuffix(name, "release") {
			text = " 7.2.1\n"
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(b.path(name)), 0o700), os.WriteFile(b.path(name), []byte(text),
			0o600)); err != nil {
			t.Fatal(err)
		}
		if kind := kinds[name]; kind != "" {
			want.Files = append(want.Files, File{kind, name, int64(len(text)), fmt.Sprintf("%x", sha256.Sum256([]byte(text)))})
		}
	}
	if err := b.describe(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, b.Built); d != "" {
		t.Error(d)
	}
	text := read(t, b.path(manifestName))
	var got Built
	if err := json.Unmarshal([]byte(text), &got); err != nil || cmp.Diff(want, got) != "" || !strings.HasPrefix(text,
		"{\n  \"Source\": ") ||
		!strings.HasSuffix(text, "\n}\n") {
		t.Errorf("%v: %s", err, text)
	}
	if err := b.addFile("image", b.path("none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Remove(b.path("objects/include/config/kernel.release")); err != nil {
		t.Fatal(err)
	}
	if err := b.describe(); err == nil || !strings.HasPrefix(err.Error(), "release: ") {
		t.Error(err)
	}
}

// TestPatchesThatStay: those that are in the source already and come first stay as they are; others are taken out, the
// last one first, and the rest is put in; each is told, and kept under its number.
func TestPatchesThatStay(t *testing.T) {
	standIns(t, map[string]string{"patch": `for a in "$@"; do case $a in -R|-N) d=$a;; --dry-run) exit 0;; *.patch) f=$a;; esac; done
echo "$d $(cat "$f")" >> "$OUT/done"; ! grep -q bad "$f"`})
	texts := written(t, map[string]string{"a.patch": "a", "b.patch": "b", "c.patch": "c", "bad.patch": "bad"})
	b, told := building(t, "linux")
	t.Setenv("OUT", b.Out)
	if err := os.Mkdir(b.path("source"), 0o700); err != nil {
		t.Fatal(err)
	}
	apply := func(names ...string) (done string, err error) {
		if err := os.RemoveAll(b.path("done")); err != nil {
			t.Fatal(err)
		}
		b.Patches, b.patches, *told = nil, nil, nil
		for _, name := range names {
			b.Patches = append(b.Patches, filepath.Join(texts, name+".patch"))
		}
		if err := b.read(); err != nil {
			t.Fatal(err)
		}
		err = b.patch(t.Context())
		text, _ := os.ReadFile(b.path("done"))
		return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", "), err
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""}, {[]string{"a"}, "-N a"}, {[]string{"a"}, ""}, {[]string{"a", "b", "c"}, "-N b, -N c"},
		{[]string{"a", "c"}, "-R c, -R b, -N c"},
		{[]string{"b", "c"}, "-R c, -R a, -N b, -N c"}, {[]string{"b"}, "-R c"}, {nil, "-R b"},
	} {
		got, err := apply(c.names...)
		if got != c.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", c.names, got, err, c.want)
		}
		in, _ := filepath.Glob(b.path("patches/*"))
		for i, name := range c.names {
			if len(in) != len(c.names) || in[i] != b.path(fmt.Sprintf("patches/%04d.patch", i)) || read(t, in[i]) != name {
				t.Errorf("%q: %q are kept", c.names, in)
			}
		}
		if strings.Contains(c.want, "-N c") && (*told)[len(*told)-1] != "patch c.patch" {
			t.Errorf("%q are told", *told)
		}
	}
	_, err := apply("a", "bad")
	if want := fmt.Sprintf("patch %s does not apply to linux: patch: exit status 1", filepath.Join(texts,
		"bad.patch")); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if in, _ := filepath.Glob(b.path("patches/*")); len(in) != 1 {
		t.Errorf("%q are kept", in)
	}
	if err := os.WriteFile(b.path("patches/0000.patch"), []byte("bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(); err == nil || err.Error() != fmt.Sprintf("take patch %s out of %s: patch: exit status 1",
		b.path("patches/0000.patch"), b.path("source")) {
		t.Error(err)
	}
}

// TestPrograms: programs that are missing are told by their packages; this machine's own compiler has no prefix.
func TestPrograms(t *testing.T) {
	was := programTable
	t.Cleanup(func() { programTable = was })
	there := filepath.Join(t.TempDir(), "header.h")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	programTable = "program,package\nno-such-a,package-a\nsh,shell\n" + there + ",headers\n" + there + "-none,package-b\n"
	arch := Arch{Name: "z80", Compiler: "no-such-z80-", Package: "gcc-z80"}
	if err := missing(arch); err == nil ||
		err.Error() != "a kernel cannot be built here: apt-get install package-a package-b gcc-z80" {
		t.Error(err)
	}
	programTable = "program,package\nsh,shell\n"
	standIns(t, map[string]string{"no-such-z80-gcc": ""})
	if err := missing(arch); err != nil {
		t.Error(err)
	}
	own := 0
	for _, a := range Architectures() {
		if a.GOARCH == runtime.GOARCH {
			own++
			if a.Compiler != "" || a.Package != "gcc" {
				t.Errorf("this machine's own: %+v", a)
			}
		} else if a.Compiler == "" || a.Package != "gcc-"+strings.ReplaceAll(strings.TrimSuffix(a.Compiler, "-"), "_", "-") {
			t.Errorf("%+v", a)
		}
	}
	if own > 1 || len(Architectures()) != 3 {
		t.Errorf("%+v", Architectures())
	}
	if _, err := Build(t.Context(), Config{Arch: "x86_65"}); err == nil || !strings.Contains(err.Error(), "x86_64") ||
		!strings.Contains(err.Error(), "architecture") {
		t.Error(err)
	}
}
