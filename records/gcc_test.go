// SPDX-License-Identifier: Apache-2.0

package records

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// gccSource has functions of several kinds; patched ones are global, so that
// the symbol table is the dumb twin: their entries are where they start.
const gccSource = `
int data[100];
__attribute__((noinline)) int alpha(int x) { return data[x % 100] += x; }
__attribute__((noinline)) static int hidden(int x) { return alpha(x) + 1; }
__attribute__((noinline, patchable_function_entry(0))) int bare(int x) { return hidden(x) * 3; }
__attribute__((noinline, weak)) int soft(int x) { return bare(x) - 1; }
int main(void) { return soft(0) & 1; }
`

// TestGCC compiles real programs and compares with what their symbols say.
func TestGCC(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skipf("needs gcc for x86_64: %v, %s", err, runtime.GOARCH)
	}
	dir := t.TempDir()
	src := filepath.Join(dir, "p.c")
	if err := os.WriteFile(src, []byte(gccSource), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		before int    // NOPs in front of the function, a byte each
		endbr  uint64 // length of the landing pad; functions that nobody points to have none
		flags  []string
	}{
		{"object", 0, 0, []string{"-c"}},
		{"object-sections", 0, 0, []string{"-c", "-ffunction-sections"}},
		{"no-pie", 0, 0, []string{"-no-pie", "-fno-pie"}},
		{"pie", 0, 0, []string{"-pie", "-fpie"}},
		{"so", 0, 0, []string{"-shared", "-fpic"}},
		{"landing-pad", 0, 4, []string{"-pie", "-fpie", "-fcf-protection=branch"}},
		{"before", 2, 0, []string{"-no-pie", "-fno-pie"}},
		{"mcount", 0, 0, []string{"-no-pie", "-fno-pie", "-pg", "-mfentry", "-mrecord-mcount"}},
		{"stripped-so", 0, 0, []string{"-shared", "-fpic", "-s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(dir, "p-"+c.name)
			args := append([]string{"-O2", "-o", out, src}, c.flags...)
			if c.name != "mcount" {
				args = append(args, fmt.Sprintf("-fpatchable-function-entry=%d,%d", 5+c.before, c.before))
			}
			if log, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
				t.Skipf("gcc %v: %v\n%s", args, err, log)
			}
			tab := mustOpen(t, out, Options{Arch: "x86_64"})
			checkTable(t, tab)
			want := gccSymbols(t, out)
			if c.name == "mcount" {
				want["bare"] = want["alpha"] // the attribute does not concern it
			}
			compareGCC(t, tab, want, c.endbr, c.name == "stripped-so")
		})
	}
}

// gccSymbols are the functions of the program and where they start; those of an
// unlinked file only by section.
func gccSymbols(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		syms, err = f.DynamicSymbols()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{}
	for _, s := range syms {
		if slices.Contains([]string{"alpha", "hidden", "soft", "main"}, s.Name) {
			want[s.Name] = s.Value
		}
	}
	return want
}

func compareGCC(t *testing.T, tab *Table, want map[string]uint64, endbr uint64, stripped bool) {
	t.Helper()
	wantModule := ""
	object := tab.Addr(0) >= Addr(elfArches[elf.EM_X86_64].modules)
	if object {
		wantModule = fileModule(tab.Name())
	}
	seen := 0
	for i := range tab.Len() {
		name, endbr := tab.Symbol(i), endbr
		at, ok := want[name]
		if !ok {
			if !stripped { // hidden has lost its name there
				t.Errorf("%s is not to be patched", tab.Describe(i))
			}
			continue
		}
		seen++
		if name == "hidden" {
			endbr = 0
		}
		if got := uint64(tab.Addr(i)); !object && !stripped && name != "bare" && got != at+endbr {
			t.Errorf("%s: want it at %#x", tab.Describe(i), at+endbr)
		}
		if tab.Module(i) != wantModule {
			t.Errorf("%s: want module %q", tab.Describe(i), wantModule)
		}
	}
	if seen < len(want) || tab.Len() < 4 {
		t.Errorf("%d records, %d of the %d functions %v", tab.Len(), seen, len(want), raws(tab))
	}
}
