// Package textpoke_test checks what no single package can: that the house
// stands as ARCHITECTURE.md says.
package textpoke_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/textpoke/textpoke/"

// floors are the packages from the ground up; imports point down only. An
// architecture lies below cpus, and isa below the architectures.
var floors = map[string]int{
	"spelling": -1,
	"results":  0, "results/interrupts": 1, "results/plots": 1, "results/perfetto": 1, "results/journal": 1,

	"records":  0,
	"cpus/isa": 1, "cpus/x86_64": 2, "cpus/arm64": 2, "cpus/riscv64": 2, "cpus": 3,
	"int3": 4, "tracers/metadata": 4,
	"poke":    5,
	"sched":   6,
	"tracers": 4,

	"sim/published": 0, "sim/fit": 0,
	"tracers/dispatch": 5,

	"sim/calibration": 4,
	"sim/measure":     5,
	"sim/kernels":     7,
	"sim/timeline":    6,
	"sim/attaching":   5,
	"sim/timed":       7, "sim/check": 7, "sim/litmus": 7,
	"sim/museum": 8, "sim/promela": 8,
	"sim":                              9,
	"sim/experiments":                  10,
	"sim/experiments/mutations":        11,
	"sim/experiments/flushcause":       11,
	"sim/experiments/eraladder":        11,
	"sim/experiments/buffersize":       11,
	"sim/experiments/pareto":           11,
	"sim/experiments/jumplabel":        11,
	"sim/experiments/int3lookup":       11,
	"sim/experiments/metadata":         11,
	"sim/experiments/migration":        11,
	"sim/experiments/ipiburst":         11,
	"sim/experiments/kernelinterrupts": 11,
	"sim/experiments/refcount":         11,
	"sim/experiments/isolation":        11,
	"sim/experiments/trigger":          11,
	"sim/experiments/fprobe":           11,
	"sim/experiments/callops":          11,
	"sim/experiments/catalogue":        12,
	"service/store":                    1, "service": 10, "service/page": 0,
	"service/lab":                         11,
	"service/api":                         12,
	"cmd/textpoke":                        13,
	"sim/experiments/coexist":             11,
	"sim/experiments/reach":               11,
	"sim/experiments/attach":              11,
	"sim/experiments/directops":           11,
	"sim/experiments/callopsalternatives": 11,
}

// TestImportsPointDown reads the imports of every file that is not a test.
func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	eachGoFile(t, func(path string) {
		pkg := filepath.ToSlash(filepath.Dir(path))
		if strings.Contains(pkg, "internal") || strings.HasSuffix(path, "_test.go") {
			return
		}
		floor, ok := floors[pkg]
		if !ok {
			t.Errorf("%s: package %s has no floor in the house", path, pkg)
			return
		}
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			target, ours := strings.CutPrefix(name, module)
			if !ours || strings.Contains(target, "internal") {
				continue
			}
			if floors[target] >= floor {
				t.Errorf("%s imports %s, which does not lie below it", path, target)
			}
			if strings.HasPrefix(pkg, "results") && !strings.HasPrefix(target, "results") {
				t.Errorf("%s imports %s: results stands on the ground and knows nobody", path, target)
			}
		}
	})
	for pkg := range floors {
		if !seen[pkg] {
			t.Errorf("package %s is in the house's plan and not in the house", pkg)
		}
	}
}

// TestNothingAboveAsksForAnArchitecture: what differs is in isa.Traits.
func TestNothingAboveAsksForAnArchitecture(t *testing.T) {
	eachGoFile(t, func(path string) {
		top := strings.Split(filepath.ToSlash(path), "/")[0]
		if strings.HasSuffix(path, "_test.go") || top != "int3" && top != "tracers" && top != "poke" && top != "sched" && top != "sim" {
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
