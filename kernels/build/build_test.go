// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makefile stands for the kernel's: its configuration has what is asked for but CONFIG_NOWHERE, its
// compiler copies, and refuses a source that says error. It counts what it compiles.
const makefile = `
.RECIPEPREFIX = >
vpath %.c $(CURDIR)
allnoconfig:
> mkdir -p $(O)/include/config && echo 7.9.0-test > $(O)/include/config/kernel.release
> grep -v NOWHERE $(KCONFIG_ALLCONFIG) > $(O)/.config
bzImage: $(O)/arch/x86/boot/bzImage
$(O)/arch/x86/boot/bzImage: $(O)/one.o $(O)/two.o
> mkdir -p $(@D) && cat $^ > $@
$(O)/%.o: %.c
> @if grep error $<; then echo "$<:1:1: error: no such thing" >&2; exit 1; fi
> cp $< $@ && echo $* >> $(O)/compiled
modules:
modules_install:
> mkdir -p $(INSTALL_MOD_PATH)/lib/modules/7.9.0-test/kernel && echo a module > $(INSTALL_MOD_PATH)/lib/modules/7.9.0-test/kernel/a.ko
> ln -s / $(INSTALL_MOD_PATH)/lib/modules/7.9.0-test/build
`

// tree writes a source of two files.
func tree(t *testing.T) string {
	t.Helper()
	was := programTable
	t.Cleanup(func() { programTable = was })
	programTable = "program,package\nmake,make\npatch,patch\ntar,tar\ngzip,gzip\n" // what its makefile needs
	if err := missing(mustArch(t)); err != nil {
		t.Skip(err)
	}
	return written(t, map[string]string{"Kconfig": "", "Makefile": makefile, "one.c": "one\n", "two.c": "two\n"})
}

func mustArch(t *testing.T) Arch {
	t.Helper()
	for _, a := range Architectures() {
		if a.Image == "arch/x86/boot/bzImage" {
			if a.Compiler != "" {
				t.Skip("the source of this test is of another machine")
			}
			return a
		}
	}
	t.Fatal("no architecture")
	return Arch{}
}

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBuild builds, with a patch, without it, and after what cannot be built.
func TestBuild(t *testing.T) {
	source, arch := tree(t), mustArch(t)
	texts := written(t, map[string]string{
		"two.patch":    "--- a/two.c\n+++ b/two.c\n@@ -1 +1 @@\n-two\n+three\n",
		"broken.patch": "--- a/one.c\n+++ b/one.c\n@@ -1 +1 @@\n-one\n+error\n",
		"other.patch":  "--- a/one.c\n+++ b/one.c\n@@ -1 +1 @@\n-nothing of the kind\n+two\n",
		"nowhere":      "CONFIG_NOWHERE=y\nCONFIG_AND_NOWHERE=y\n",
	})
	text := func(name string) string { return filepath.Join(texts, name) }
	c := Config{Source: source, Arch: arch.Name, Out: filepath.Join(t.TempDir(), "out"), Jobs: 1}
	steps := []struct {
		name                   string
		patches, fragments     []string
		image, compiled, fails string
	}{
		{name: "first", image: "one\ntwo\n", compiled: "one\ntwo\n"},
		{name: "again", image: "one\ntwo\n", compiled: "one\ntwo\n"},
		{name: "patched", patches: []string{text("two.patch")}, image: "one\nthree\n", compiled: "one\ntwo\ntwo\n"},
		{name: "more", patches: []string{text("two.patch"), text("broken.patch")}, fails: "error: no such thing"},
		{name: "does not apply", patches: []string{text("two.patch"), text("other.patch")}, fails: "Hunk #1 FAILED at 1"},
		{name: "still patched", patches: []string{text("two.patch")}, image: "one\nthree\n", compiled: "one\ntwo\ntwo\none\n"},
		{name: "plain", image: "one\ntwo\n", compiled: "one\ntwo\ntwo\none\ntwo\n"},
		{name: "option", fragments: []string{text("nowhere")},
			fails: "CONFIG_AND_NOWHERE=y, CONFIG_NOWHERE=y is not to be had"},
		{name: "no fragment", fragments: []string{"lokdep"}, fails: "lockdep"},
	}
	for _, s := range steps {
		c.Patches, c.Fragments = s.patches, s.fragments
		built, err := Build(context.Background(), c)
		if s.fails != "" {
			if err == nil || !strings.Contains(err.Error(), s.fails) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s: %v, want one line with %q", s.name, err, s.fails)
			}
			if _, err := os.Stat(filepath.Join(c.Out, manifestName)); err == nil {
				t.Errorf("%s: there is a manifest of what was not built", s.name)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := read(t, c.Out, "vmlinuz"); got != s.image {
			t.Errorf("%s: image %q, want %q", s.name, got, s.image)
		}
		if got := read(t, c.Out, "objects/compiled"); got != s.compiled {
			t.Errorf("%s: compiled %q, want %q", s.name, got, s.compiled)
		}
		if n := len(built.Files); n != 3+len(s.patches) || built.Release != "7.9.0-test" {
			t.Errorf("%s: %d files of release %s", s.name, n, built.Release)
		}
		if !strings.Contains(read(t, c.Out, manifestName), built.Files[0].SHA256) {
			t.Errorf("%s: the manifest lacks the image's hash", s.name)
		}
	}
	if _, err := os.Lstat(filepath.Join(c.Out, "modules/lib/modules/7.9.0-test/build")); err == nil {
		t.Error("a link leads out of the modules")
	}
	c.Source, c.Fragments = texts, nil
	if _, err := Build(context.Background(), c); err == nil || !strings.Contains(err.Error(), "holds the source") {
		t.Errorf("another source in the same folder: %v", err)
	}
	c.Out = t.TempDir()
	if _, err := Build(context.Background(), c); err == nil || !strings.Contains(err.Error(), "no Kconfig") {
		t.Errorf("no source: %v", err)
	}
}

// TestUnread: a patch or a configuration that cannot be read is told before anything is made; a tree may be named from
// here.
func TestUnread(t *testing.T) {
	source, arch := tree(t), mustArch(t)
	t.Chdir(filepath.Dir(source))
	c := Config{Source: filepath.Base(source), Arch: arch.Name, Out: filepath.Join(t.TempDir(), "out")}
	for _, c := range []Config{{Patches: []string{"no.patch"}}, {Fragments: []string{"no.config"}}} {
		c.Source, c.Arch, c.Out = filepath.Base(source), arch.Name, filepath.Join(t.TempDir(), "out")
		if _, err := Build(context.Background(), c); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(c.Out); err == nil {
			t.Error("the folder was made")
		}
	}
	if _, err := Build(context.Background(), c); err != nil {
		t.Error(err)
	}
}

// TestArchive builds of a tree in an archive; an archive that is cut short is an error of one line.
func TestArchive(t *testing.T) {
	source, arch := tree(t), mustArch(t)
	archive := filepath.Join(t.TempDir(), "linux.tar.gz")
	if out, err := exec.Command("tar", "-czf", archive, "-C", filepath.Dir(source),
		filepath.Base(source)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := Config{Source: archive, Arch: arch.Name, Out: t.TempDir()}
	if _, err := Build(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(archive, 100); err != nil {
		t.Fatal(err)
	}
	c.Out = t.TempDir()
	if _, err := Build(context.Background(), c); err == nil || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "tar") {
		t.Errorf("an archive that ends early: %v", err)
	}
}

// TestMissing: programs that are not there are told by their packages, before anything is unpacked.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", "")
	out := filepath.Join(t.TempDir(), "out")
	_, err := Build(context.Background(), Config{Source: "linux-source-7.2", Arch: Architectures()[0].Name, Out: out})
	if err == nil || !strings.Contains(err.Error(), "apt-get install") || !strings.Contains(err.Error(), "flex") ||
		!strings.Contains(err.Error(), "gcc") {
		t.Errorf("no programs: %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the folder was made")
	}
}

// TestFailure picks the line that tells most.
func TestFailure(t *testing.T) {
	for output, want := range map[string]string{
		"  CC a.o\na.c:3:1: error: expected ;\nmake[2]: *** [a.o] Error 1\n": "a.c:3:1: error: expected ;",
		"patching file a.c\nHunk #2 FAILED at 7.\n":                          "Hunk #2 FAILED at 7.",
		"make: *** No rule to make target 'x'.  Stop.\n":                     "make: *** No rule to make target 'x'.  Stop.",
		"something else\nits end\n":                                          "its end",
	} {
		if got := failure([]byte(output)); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
