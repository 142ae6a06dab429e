// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"embed"
	"fmt"
)

//go:embed data/*.zst
var builtinData embed.FS

// Builtin is a table that comes with the program: the records of a real kernel
// after boot, in the order in which it walks them.
type Builtin struct {
	Name    string
	Arch    string
	Kernel  string // version
	Records int
	Modules int // modules that were loaded

	// CorePages is how many pages the kernel had taken for the core kernel's
	// records at boot, as it reports them. It then removed the records of init
	// functions from the groups, but kept the groups: so there are more pages
	// than the records need.
	CorePages int
	About     string // what is special about it
}

// The kernels are Debian's, with available_filter_functions_addrs read after
// boot.
var builtins = []Builtin{
	{Name: "x86_64-6.12", Arch: "x86_64", Kernel: "6.12", Records: 42757, CorePages: 176,
		About: "core kernel only"},
	{Name: "x86_64-6.12-modules", Arch: "x86_64", Kernel: "6.12", Records: 44444, Modules: 12, CorePages: 176,
		About: "modules loaded, unloaded and loaded again: their addresses do not all ascend"},
	{Name: "arm64-6.12", Arch: "arm64", Kernel: "6.12", Records: 48048, CorePages: 192,
		About: "core kernel only"},
	{Name: "riscv64-7.2", Arch: "riscv64", Kernel: "7.2", Records: 41845, CorePages: 168,
		About: "core kernel only"},
}

// Builtins are the built-in tables. The slice is the caller's.
func Builtins() []Builtin { return append([]Builtin(nil), builtins...) }

// BuiltinNames are the names of the built-in tables.
func BuiltinNames() (names []string) {
	for _, b := range builtins {
		names = append(names, b.Name)
	}
	return names
}

// DefaultFor is the name of the built-in table for an architecture, "" if there
// is none.
func DefaultFor(arch string) string {
	for _, b := range builtins {
		if b.Arch == arch {
			return b.Name
		}
	}
	return ""
}

// FindBuiltin is the built-in table of a name, if there is one.
func FindBuiltin(name string) (Builtin, bool) {
	for _, b := range builtins {
		if b.Name == name {
			return b, true
		}
	}
	return Builtin{}, false
}

// load reads the kernel's list. The records fill the core kernel's groups in order;
// where exactly removing the init records left the borders between groups is not
// recorded.
func (b Builtin) load() (*Table, error) {
	ctx := context.Background() // it takes milliseconds, and nothing is cut short by it
	f, err := builtinData.Open("data/" + b.Name + ".zst")
	if err != nil {
		return nil, fmt.Errorf("built-in table %s: %w", b.Name, err)
	}
	defer f.Close()
	in, err := unpacked(ctx, b.Name, f)
	if err != nil {
		return nil, err
	}
	build := newBuilder(b.Name)
	build.corePages = b.CorePages
	return build.readAddrs(&lines{ctx: ctx, file: b.Name, r: in}, b.Arch)
}
