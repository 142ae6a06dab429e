// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// MaxModule bounds an unpacked module, in bytes.
const MaxModule = 128 << 20

// relaBytes is the size of Elf64_Rela: where, type, addend.
const relaBytes = 24

// Module is a kernel module before it is linked: relocations name the places in its tables.
type Module struct {
	Name      string // the file's, without the packing's suffix
	Arch      string
	Records   int
	Sites     int            // of static calls
	SitesInit int            // of them, in text that is thrown away once it has started
	Calls     map[string]int // sites, by the symbol of the key
	Branches  int            // of static keys
	Keys      map[string]int // branches of keys that the module does not define
	Areas     map[Area]int   // bytes of memory that it takes
	Caches    int            // of objects that its end destroys
	Zbb       int            // places of riscv64's text that are replaced where CPUs have the extension Zbb
}

// Area is memory that a module's sections share (enum mod_mem_type, include/linux/module.h, Linux 6.4).
type Area uint8

// The areas. Its symbols are in InitData, and those that stay in Data too, beside struct module.
const (
	Text Area = iota
	Data
	Rodata
	AfterInit // written while the module starts, and read-only then
	CallTable // of static calls: part of AfterInit in 7.2, and of Data in 6.12
	InitText
	InitData
	InitRodata
)

// afterInit are the sections that become read-only (module_mark_ro_after_init, kernel/module/main.c, Linux 6.12).
var afterInit = []string{".data..ro_after_init", "__jump_table"}

// initCode are sections that arm64's kernel makes code (module_frob_arch_sections, arch/arm64/kernel/module-plts.c, Linux
// 6.12).
var initCode = []string{".init.plt", ".init.text.ftrace_trampoline"}

// area is where a section goes (__layout_sections and module_init_layout_section).
func area(s *elf.Section) (a Area, ok bool) {
	switch {
	case s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0 || s.Name == ".modinfo" || s.Name == "__versions" ||
		s.Name == ".data..percpu":
		return 0, false
	case slices.Contains(afterInit, s.Name):
		return AfterInit, true
	case s.Name == ".static_call_sites":
		return CallTable, true
	case s.Flags&elf.SHF_EXECINSTR != 0 || slices.Contains(initCode, s.Name):
		a = Text
	case s.Flags&elf.SHF_WRITE != 0:
		a = Data
	default:
		a = Rodata
	}
	if strings.HasPrefix(s.Name, ".init") {
		a = [...]Area{Text: InitText, Data: InitData, Rodata: InitRodata}[a]
	}
	return a, true
}

// OpenModule reads a module, packed or not.
func OpenModule(path string) (*Module, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() || st.Size() > MaxModule {
		return nil, vmlinux.InFile(path, vmlinux.Fail("", "not a kernel module"))
	}
	b, err := inputs.Read(path, MaxModule)
	if err != nil {
		return nil, err
	}
	return ReadModule(path, b)
}

// ReadModule reads a module. Errors name file, which is not opened.
func ReadModule(file string, b []byte) (*Module, error) {
	b, err := vmlinux.Unpack(b, MaxModule)
	if err != nil {
		return nil, vmlinux.InFile(file, err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, vmlinux.InFile(file, vmlinux.Fail("", "not a kernel module: no ELF file"))
	}
	a := vmlinux.OfMachine(f.Machine)
	if f.Type != elf.ET_REL || a == nil || f.Section(".modinfo") == nil {
		return nil, vmlinux.InFile(file, vmlinux.Fail("ELF file", "not a kernel module of %s", vmlinux.ArchNames()))
	}
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	m := &Module{Name: name, Arch: a.Name, Calls: map[string]int{}, Keys: map[string]int{}, Areas: map[Area]int{}}
	syms, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, vmlinux.InFile(file, vmlinux.Fail("symbols", "%s", unpack.Reason(err)))
	}
	for _, s := range f.Sections {
		if a, ok := area(s); ok {
			m.take(a, s.Size, s.Addralign)
		}
		if s.Type != elf.SHT_RELA || int(s.Info) >= len(f.Sections) {
			continue
		}
		rela, err := s.Data()
		if err == nil {
			err = m.table(f, f.Sections[s.Info], rela, syms)
		}
		if err != nil {
			return nil, vmlinux.InFile(file, vmlinux.Fail("section "+s.Name, "%s", unpack.Reason(err)))
		}
	}
	m.symbols(f, syms)
	m.Caches = endCalls(f, syms, "kmem_cache_destroy")
	return m, nil
}

// take adds a section to an area.
func (m *Module) take(a Area, size, align uint64) {
	align = min(max(1, align), MaxModule)
	m.Areas[a] = int((uint64(m.Areas[a])+align-1)/align*align + min(size, MaxModule))
}

// symbols adds what layout_symtab does (kernel/module/kallsyms.c, Linux 6.12): all symbols, each with a byte for its type,
// the file's names, and a struct mod_kallsyms; and once more those of sections that stay, each with its own name.
func (m *Module) symbols(f *elf.File, syms []elf.Symbol) {
	const each, table = elf.Sym64Size + 1, 40
	all, stay := uint64(each*(len(syms)+1)+table), uint64(each+1) // the first has no name
	for _, y := range syms {
		if i := int(y.Section); y.Name != "" && i < len(f.Sections) {
			if a, ok := area(f.Sections[i]); ok && a < InitText {
				stay += uint64(each + len(y.Name) + 1)
			}
		}
	}
	if s := f.Section(".strtab"); s != nil {
		all += s.Size
	}
	m.take(Data, stay, 8)
	m.take(InitData, all, 8)
}

// place is what a relocation names.
type place struct {
	section string // in which it lies, "" outside of the module
	symbol  string // or the section's name
	spot    uint64 // see spotOf
}

// spotOf numbers the places in all sections of a file.
func spotOf(section int, at uint64) uint64 { return uint64(section)<<48 + at }

// places are what the relocations of a table name, by where they stand. Where two stand
// at one place, as riscv64's differences do, the first is the one that is added.
func places(f *elf.File, rela []byte, syms []elf.Symbol) map[uint64]place {
	out := make(map[uint64]place, len(rela)/relaBytes)
	for ; len(rela) >= relaBytes; rela = rela[relaBytes:] {
		at, n := le.Uint64(rela), le.Uint64(rela[8:])>>32
		if _, twice := out[at]; twice || n == 0 || n > uint64(len(syms)) {
			continue
		}
		y := syms[n-1]
		p := place{symbol: y.Name, spot: spotOf(int(y.Section), y.Value+le.Uint64(rela[16:]))}
		if i := int(y.Section); y.Section != elf.SHN_UNDEF && i < len(f.Sections) {
			p.section = f.Sections[i].Name
		}
		if p.symbol == "" {
			p.symbol = p.section
		}
		out[at] = p
	}
	return out
}

// table counts one table of a module.
func (m *Module) table(f *elf.File, s *elf.Section, rela []byte, syms []elf.Symbol) error {
	switch s.Name {
	case "__mcount_loc", "__patchable_function_entries":
		m.Records += len(rela) / relaBytes
	case ".static_call_sites":
		of := places(f, rela, syms)
		for at := uint64(0); at < tableBytes(s, siteBytes); at += siteBytes {
			m.Sites++
			if strings.HasPrefix(of[at].section, ".init") {
				m.SitesInit++
			}
			m.Calls[of[at+4].symbol]++
		}
	case "__jump_table":
		of := places(f, rela, syms)
		for at := uint64(0); at < tableBytes(s, jumpBytes); at += jumpBytes {
			m.Branches++
			if key := of[at+8]; key.section == "" && key.symbol != "" {
				m.Keys[key.symbol]++
			}
		}
	case ".alternative": // struct alt_entry and RISCV_ISA_EXT_ZBB: alternative.h and hwcap.h of arch/riscv, Linux 6.12
		const entry, zbb = 16, 30
		b, err := s.Data()
		for ; len(b) >= entry; b = b[entry:] {
			if vendor, wants := le.Uint16(b[8:]), le.Uint16(b[12:]); vendor == 0 && wants == zbb {
				m.Zbb++
			}
		}
		return err
	}
	return nil
}

// mostFunctions of a module are looked through for what its end calls.
const mostFunctions = 1 << 14

// endCalls is how often a module's end calls a function of the kernel, through its own functions, too. Each call that
// stands there counts once; some within one section have no relocation, and are not seen.
func endCalls(f *elf.File, syms []elf.Symbol, name string) int {
	type call struct {
		from uint64
		to   place
	}
	var calls []call
	for _, s := range f.Sections {
		if s.Type == elf.SHT_RELA && int(s.Info) < len(f.Sections) && f.Sections[s.Info].Flags&elf.SHF_EXECINSTR != 0 {
			rela, _ := s.Data() // ReadModule has read it before
			for at, to := range places(f, rela, syms) {
				if f.Machine == elf.EM_X86_64 {
					to.spot += 4 // it was counted from the next instruction
				}
				calls = append(calls, call{spotOf(int(s.Info), at), to})
			}
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.from, b.from) })
	size, end := map[uint64]uint64{}, uint64(0)
	for _, y := range syms {
		if spot := spotOf(int(y.Section), y.Value); elf.ST_TYPE(y.Info) == elf.STT_FUNC {
			if size[spot] = y.Size; y.Name == "cleanup_module" {
				end = spot
			}
		}
	}
	known := map[uint64]int{} // by function
	var count func(function uint64) int
	count = func(function uint64) (n int) {
		if n, seen := known[function]; seen || len(known) > mostFunctions {
			return n
		}
		known[function] = 0 // it may call itself
		i, _ := slices.BinarySearchFunc(calls, function, func(c call, at uint64) int { return cmp.Compare(c.from, at) })
		for ; i < len(calls) && calls[i].from-function < size[function]; i++ {
			if n = min(n+count(calls[i].to.spot), MaxModule); calls[i].to.symbol == name {
				n++
			}
		}
		known[function] = n
		return n
	}
	return count(end)
}

// tableBytes is a table's size in whole entries, no more than a file of a module holds.
func tableBytes(s *elf.Section, entry uint64) uint64 { return min(s.Size, MaxModule) / entry * entry }

// Modules are the modules below a directory, by path.
func Modules(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), ".ko") {
			paths = append(paths, path)
		}
		return err
	})
	slices.Sort(paths)
	return paths, err
}
