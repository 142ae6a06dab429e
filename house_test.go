// SPDX-License-Identifier: Apache-2.0

// Package textpoke_test checks what no single package can: that the house
// stands as ARCHITECTURE.md says.
package textpoke_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/textpoke/textpoke/"

// below names, for each top folder, the folders that it may import. Inside a folder
// Go itself refuses cycles.
var below = map[string][]string{
	"cmd": {"service", "experiments", "check", "sim", "kernels", "tracers", "sched", "poke", "int3", "cpus",
		"records", "results", "internal"},
	"service": {"experiments", "sim", "kernels", "sched", "poke", "cpus", "records", "results", "internal"},
	"experiments": {"check", "sim", "kernels", "tracers", "sched", "poke", "int3", "cpus", "records", "results",
		"internal"},
	"check":    {"sim", "sched", "poke", "int3", "cpus", "records", "results", "internal"},
	"sim":      {"kernels", "tracers", "sched", "poke", "int3", "cpus", "records", "results", "internal"},
	"kernels":  {"tracers", "sched", "poke", "int3", "cpus", "records", "results", "internal"},
	"tracers":  {"cpus", "records", "internal"},
	"sched":    {"poke", "records", "internal"},
	"poke":     {"int3", "cpus", "records", "internal"},
	"int3":     {"cpus", "records", "internal"},
	"cpus":     {"records", "internal"},
	"records":  {"internal"},
	"results":  {"internal"},
	"internal": {},
}

// TestImportsPointDown reads the imports of every file that is not a test.
func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	eachGoFile(t, func(path string) {
		folder, _, in := strings.Cut(filepath.ToSlash(path), "/")
		if !in || strings.HasSuffix(path, "_test.go") {
			return
		}
		allowed, ok := below[folder]
		if !ok {
			t.Errorf("%s: folder %s is not in the house", path, folder)
			return
		}
		seen[folder] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			target, ours := strings.CutPrefix(name, module)
			to, _, _ := strings.Cut(target, "/")
			if ours && to != folder && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s, which does not lie below it", path, target)
			}
		}
	})
	for folder := range below {
		if !seen[folder] {
			t.Errorf("folder %s is in the house's plan and not in the house", folder)
		}
	}
}

// TestNoFolderHoldsTheHouse: no top folder has more than a quarter of the code.
func TestNoFolderHoldsTheHouse(t *testing.T) {
	lines, all := map[string]int{}, 0
	eachGoFile(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		folder, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		n := strings.Count(string(src), "\n")
		lines[folder] += n
		all += n
	})
	for folder, n := range lines {
		if 4*n > all {
			t.Errorf("%s holds %d of %d lines, more than a quarter", folder, n, all)
		}
	}
}

// TestNothingAboveAsksForAnArchitecture: what differs is in isa.Traits.
func TestNothingAboveAsksForAnArchitecture(t *testing.T) {
	eachGoFile(t, func(path string) {
		top := strings.Split(filepath.ToSlash(path), "/")[0]
		if strings.HasSuffix(path, "_test.go") || top != "int3" && top != "tracers" && top != "poke" && top != "sched" &&
			top != "sim" && top != "check" && top != "kernels" && top != "experiments" {
			return
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			code, _, _ := strings.Cut(line, "//")
			for _, arch := range []string{`"x86_64"`, `"arm64"`, `"riscv64"`} {
				if strings.Contains(code, arch) {
					t.Errorf("%s:%d: asks for %s", path, i+1, arch)
				}
			}
		}
	})
}

// spellers are the files outside of cmd that may spell flags, and why.
var spellers = map[string]string{
	"check/check.go":            "the words that repeat a question",
	"check/lessons/lessons.go":  "the words that repeat a lesson",
	"check/prove/smt.go":        "solvers' own flags",
	"kernels/build":             "the flags of cp and patch",
	"kernels/vm/guest/watch.go": "the arguments of a watcher that is started",
	"sim/axis/axis.go":          "the words that repeat a combination",
	"experiments":               "examples of commands",
}

// TestLibrariesSpeakNoCommandLine: what is chosen has a name, and the command line alone spells it as a flag.
func TestLibrariesSpeakNoCommandLine(t *testing.T) {
	flag := regexp.MustCompile(`(^|[^-!<\w])--[a-z]`)
	eachGoFile(t, func(path string) {
		folder := strings.Split(filepath.ToSlash(path), "/")
		if len(folder) == 1 || folder[0] == "cmd" || strings.HasSuffix(path, "_test.go") {
			return
		}
		for i := range folder {
			if spellers[strings.Join(folder[:i+1], "/")] != "" {
				return
			}
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && flag.MatchString(text) {
					t.Errorf("%s: %q spells a flag: name the choice (internal/choice)", set.Position(lit.Pos()), text)
				}
			}
			return true
		})
	})
}

// light are packages that others import, and what importing them must not drag along.
var light = map[string][]string{
	"results/interrupts": {"go-pretty", "gonum", "go-moremath", "x/perf", "levenshtein"},
	"records":            {"go-pretty", "gonum", "go-moremath", "x/perf", "levenshtein"},
}

// TestImportsAreLight asks the compiler what packages need.
func TestImportsAreLight(t *testing.T) {
	for pkg, heavy := range light {
		out, err := exec.Command("go", "list", "-deps", "./"+pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for dep := range strings.FieldsSeq(string(out)) {
			for _, h := range heavy {
				if strings.Contains(dep, h) {
					t.Errorf("%s drags %s along", pkg, dep)
				}
			}
		}
	}
}

// cutting is a division by the size of a vector, rounded up.
var cutting = regexp.MustCompile(`\+ ?(127|169|255)\) ?/ ?(128|170|256)|[sS]lots\)? ?- ?1\)* ?/`)

// TestSchedAloneCuts: how many batches patches take is asked of package sched.
func TestSchedAloneCuts(t *testing.T) {
	for line, want := range map[string]bool{"(n + slots - 1) / slots": true, "3 * ((n + 255) / 256)": true,
		"(n + max(1, b.Slots) - 1) / max(1, b.Slots)": true, "n / 256": false, "slots - 1": false} {
		if cutting.MatchString(line) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
	eachGoFile(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.ToSlash(path), "sched/") {
			return
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			if cutting.MatchString(line) {
				t.Errorf("%s:%d cuts batches: %s", path, i+1, strings.TrimSpace(line))
			}
		}
	})
}

// TestFilesAreShort: a file of over 400 lines asks to be split.
func TestFilesAreShort(t *testing.T) {
	eachGoFile(t, func(path string) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), "\n"); n > 400 {
			t.Errorf("%s has %d lines", path, n)
		}
	})
}

func eachGoFile(t *testing.T, f func(path string)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && path != "house_test.go" {
			n++
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 50 {
		t.Fatalf("only %d files were looked at", n)
	}
}
