// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"

	"github.com/textpoke/textpoke/records/vmlinux"
)

var le = binary.LittleEndian

// Kernel is what ftrace can patch of a kernel whose image was read, in the order in which
// it walks its records.
type Kernel struct {
	Marks   int      // entries of the table, __mcount_loc
	Empty   int      // of them, of weak functions that lost, emptied by the build
	Init    int      // of them, in text that is thrown away after boot
	Invalid int      // of them, of weak functions that lost, listed and never patched
	Order   int      // descents in the table as it stands; the kernel sorts it
	Sites   []uint64 // the others
	Pads    int      // of them, right behind a landing pad (BTI on arm64, IBT on x86_64)
	Pages   int      // of records that the kernel takes
	places  []int    // where each of them stands among the marks, in order
	k       *vmlinux.Kernel
}

// OfKernel finds the records of a kernel.
func OfKernel(k *vmlinux.Kernel) *Kernel {
	r := &Kernel{k: k}
	r.read()
	return r
}

// LandingPads tells whether most functions begin with one: their records lie behind it.
func (r *Kernel) LandingPads() bool { return 2*r.Pads > len(r.Sites) }

// readLinked reads a kernel's image, or the sections of another ELF file. A linked ELF file
// with a segment where kernels lie is a kernel, unless it has no symbol table of its own.
func readLinked(ctx context.Context, file string, r io.ReaderAt, size int64, opt Options) (*Table, error) {
	var magic [4]byte
	n, _ := r.ReadAt(magic[:], 0)
	isELF := bytes.Equal(magic[:n], magicELF)
	if isELF && !kernelELF(r) {
		return readELF(ctx, file, r, size, opt)
	}
	k, err := vmlinux.Read(file, r, size)
	switch {
	case err != nil && isELF:
		return readELF(ctx, file, r, size, opt)
	case err != nil:
		return nil, err
	}
	return OfKernel(k).Table()
}

// kernelELF tells whether an ELF file is linked to where kernels lie: the upper half of the
// addresses.
func kernelELF(r io.ReaderAt) bool {
	f, err := elf.NewFile(r)
	return err == nil && slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_LOAD && p.Vaddr>>63 == 1 })
}

// markBytes is an entry of the table: an address.
const markBytes = 8

// invalidName is what the kernel calls a record of a weak function that lost, where it
// looks for them at boot (test_for_valid_rec, kernel/trace/ftrace.c, since Linux 6.0).
const invalidName = "__ftrace_invalid_address__"

func (r *Kernel) read() {
	if !r.k.Has("__start_mcount_loc") {
		r.findMarks()
	}
	_, b := r.k.Between("__start_mcount_loc", "__stop_mcount_loc", markBytes)
	var marks []uint64
	for ; len(b) >= markBytes; b = b[markBytes:] {
		r.Marks++
		mark := le.Uint64(b)
		if mark == 0 {
			r.Empty++
			continue
		}
		if len(marks) > 0 && mark < marks[len(marks)-1] {
			r.Order++
		}
		marks = append(marks, mark)
	}
	slices.Sort(marks) // ftrace_process_locs
	r.pick(marks)
	if n := len(marks); r.Invalid > n/maxInvalid {
		r.k.Note("%d of %d entries of the table of records name no function that is patched: the image may be damaged", r.Invalid, n)
	}
	r.Pages = Pages(r.Marks)
}

// maxInvalid is the share of records, one in so many, that may belong to weak functions that
// lost: of distributions' kernels, one in 60.
const maxInvalid = 8

// pick keeps the marks that the kernel patches.
func (r *Kernel) pick(marks []uint64) {
	arch, behind := elfArches[r.k.Arch.Machine], r.behind(marks)
	code, bounded := text{r.k}, r.k.Has("_stext") && r.k.Has("_etext")
	for i, mark := range marks {
		_, offset, ok := r.k.Symbol(mark)
		switch {
		case r.k.Discarded(mark):
			r.Init++
		case !ok || offset > behind || bounded && !r.k.Stays(mark):
			r.Invalid++
		default:
			at := arch.record(code, mark)
			if arch.pad(code, at-4) {
				r.Pads++
			}
			r.Sites = append(r.Sites, at)
			r.places = append(r.places, i)
		}
	}
}

// anywhere is the distance of a record from its symbol where it does not matter.
const anywhere = ^uint64(0)

// behind is how far behind its function's symbol a record may lie: nothing, or the four
// bytes of a landing pad where most functions begin with one (FTRACE_MCOUNT_MAX_OFFSET,
// arch/x86/include/asm/ftrace.h). Kernels that do not look for weak functions patch them.
func (r *Kernel) behind(marks []uint64) uint64 {
	if r.k.Arch.Magic != "" || !r.k.Contains(invalidName) {
		return anywhere
	}
	at := map[uint64]int{}
	for _, mark := range marks {
		if _, offset, ok := r.k.Symbol(mark); ok {
			at[offset]++
		}
	}
	if at[4] > at[0] {
		return 4
	}
	return 0
}

// Table is the records in the kernel's groups.
func (r *Kernel) Table() (*Table, error) {
	b := newBuilder(r.k.File)
	for _, at := range r.Sites {
		y, _, _ := r.k.Symbol(at)
		if err := b.add(Addr(at), []byte(cmp.Or(y.Name, "unknown")), nil); err != nil {
			return nil, err
		}
	}
	if groups := r.groups(); len(groups) > 0 {
		if err := b.setGroups(groups); err != nil {
			return nil, err
		}
	}
	return b.finishSome(r.k.Arch.Name)
}

// groups are runs of records as the kernel's pages cut them, which are filled before
// anything is thrown away.
func (r *Kernel) groups() (out []Group) {
	first, limit, sizes := 0, 0, GroupPages(r.Pages)
	for i, place := range r.places {
		for place >= limit && len(sizes) > 0 {
			if i > first {
				out = append(out, Group{first, i})
				first = i
			}
			limit += sizes[0] * RecordsPerPage
			sizes = sizes[1:]
		}
	}
	if n := len(r.places); n > first {
		out = append(out, Group{first, n})
	}
	return out
}

// minMarks is how many entries a kernel's table has, at the least.
const minMarks = 1000

// findMarks looks for the table of a kernel that names no data (without CONFIG_KALLSYMS_ALL):
// it takes the longest run of pointers into text, where most of the places hold a
// compiler's nops for a tracer; those of weak functions may have lost theirs.
func (r *Kernel) findMarks() {
	var best uint64
	most, arch, code := 0, elfArches[r.k.Arch.Machine], text{r.k}
	for _, s := range r.k.Segments {
		for o := 0; o+markBytes <= len(s.Data); {
			n, good, last := 0, 0, 0
			for p := o; p+markBytes <= len(s.Data) && r.k.IsText(le.Uint64(s.Data[p:])); p += markBytes {
				n++
				if arch.nop(code, le.Uint64(s.Data[p:])) {
					good, last = good+1, n
				} else if n-last > 4 || good == 0 {
					break
				}
			}
			if last > most && good*100 > last*95 {
				best, most = s.Addr+uint64(o), last
			}
			o += markBytes * max(1, last)
		}
	}
	if most >= minMarks {
		r.k.Add("__start_mcount_loc", best)
		r.k.Add("__stop_mcount_loc", best+uint64(markBytes*most))
		r.k.Note("the table of records is not named: %d entries at %#x by their contents", most, best)
	}
}
