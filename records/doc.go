// SPDX-License-Identifier: Apache-2.0

// Package records holds what can be patched: tables of the call sites that a
// kernel's function tracer rewrites. It reads them from real kernels and ELF
// files or makes them up, sorts them into groups as the kernel does, and chooses
// among them by the kernel's filter syntax. It knows nothing about instructions.
//
// Open is the way in; it gives a Table, which never changes again. A record is
// its index in the table; the order of the table is the order in which the
// kernel walks its records.
//
// # Sources
//
// Open takes the name of a built-in table (Builtins), a file whose content tells
// its format (Read), or a description of a table to generate, with these keys,
// all of them optional:
//
//	gen:n=40000,groups=7,order=grouped,spacing=64,modules=0.1,misaligned=0.01,seed=1
//
//	n           records, 0 to 100000000; 40000
//	groups      groups of the core kernel; 1. Each module is one more group
//	order       grouped: ascending inside groups, groups shuffled (the default)
//	            sorted: ascending throughout
//	            random: records shuffled, each descent starts a group
//	            descending: every record is its own group
//	spacing     mean bytes from record to record, a multiple of 8, at least 16; 64
//	modules     share of records that live in modules, 0 to 1; 0
//	misaligned  share of records shifted by 4 bytes, 0 to 1; 0
//	seed        of all random choices; 1
//	lengths     bytes of sites, drawn evenly: 1+2+5; as is usual
//	base        where the core kernel starts; 0xffffffff81000000
//
// Modules lie behind the core kernel and are called mod0, mod1, ...; functions
// are called fn0, fn1, ... by their place in the table. Records lie at 4 modulo
// 8, as arm64 and riscv64 want them, and sites never overlap on any
// architecture. Spacing varies evenly between 16 bytes and twice the mean less
// 16; a misaligned record has at least 24 behind it.
//
// A table from a list of functions and /proc/kallsyms has the addresses of the symbols, which
// differ from the records' own by a constant of the architecture (see Options.Arch): counts, order
// and groups are right, addresses approximate.
//
// # Groups
//
// Groups come from the source where it has them (CSV, New). Otherwise the
// kernel's rule applies: a load unit, which is the core kernel or a module, takes
// one page for every 256 records, and its pages are cut into descending powers
// of two (GroupSizes). Built-in tables have the number of pages their kernels
// reported.
//
// # Finding your way
//
//	table.go     Table, what everybody uses: its groups, its names, modules and counts
//	open.go      Open and Read: from a name, through packings, to the right reader
//	build.go     New, and the builder that every reader feeds
//	kernel.go    kernels' images (package vmlinux)
//	csv.go       text, line by line, and CSV, both ways
//	kallsyms.go  addresses of names
//	elf*.go      ELF: words and their relocations, symbols, sites
//	gen.go       generated tables
//	builtin.go   the kernel's lists, and built-in tables, which are such lists, packed
//	filter.go    filters; glob.go for patterns
package records
