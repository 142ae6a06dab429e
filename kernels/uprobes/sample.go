// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxSample bounds the sites of a sample.
const maxSample = 1000

// parseSample reads [NUMBERx]INSTRUCTION, such as 3xnop5; ok is false for anything else.
func parseSample(spec string) (i Insn, sites int, ok bool) {
	number, name, many := strings.Cut(spec, "x")
	if _, err := strconv.ParseUint(number, 10, 31); !many || err != nil {
		number, name = "1", spec
	}
	at := slices.Index(insnNames[:], name)
	sites, err := strconv.Atoi(number)
	return Insn(max(at, 0)), sites, at >= 0 && err == nil
}

// Open reads where a program can be probed: a file, or a sample, which is so many sites of
// one instruction, such as nop5 or 3xnop10. A file of such a name needs ./ in front.
func Open(spec string) (*Program, error) {
	if _, _, ok := parseSample(spec); !ok {
		return ReadProgram(spec)
	}
	p := &Program{File: spec}
	text, err := p.Text()
	if err == nil {
		p.Sites, err = readSites(bytes.NewReader(text))
	}
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", spec, err)
	}
	return p, nil
}

// maxProcesses bounds the processes that a program is probed in (PID_MAX_LIMIT,
// include/linux/threads.h).
const maxProcesses = 4 << 20

// OpenTarget reads PROGRAM[@PROCESSES]: what [Open] reads, and in how many processes it is
// probed, one unless that is said.
func OpenTarget(spec string) (p *Program, processes int, err error) {
	file, number, given := strings.Cut(spec, "@")
	processes = 1
	if given {
		if processes, err = strconv.Atoi(number); err != nil || processes < 1 || processes > maxProcesses {
			return nil, 0, fmt.Errorf("processes %q: want 1 to %d", number, maxProcesses)
		}
	}
	p, err = Open(file)
	return p, processes, err
}

// Text is the program's file.
func (p *Program) Text() ([]byte, error) {
	i, sites, ok := parseSample(p.File)
	switch {
	case !ok:
		return os.ReadFile(p.File)
	case sites < 1 || sites > maxSample:
		return nil, fmt.Errorf("%d sites: want 1 to %d", sites, maxSample)
	}
	return sample(i, sites), nil
}

// Where a sample's text is linked, and how far apart its sites are: none crosses a page.
const (
	sampleAt   = 0x401000
	sampleStep = 16
)

// The code of a sample, in the assembler's words. Each byte that it reads takes it through
// all of its sites; then it writes the byte back. It ends with its input.
var (
	// sub $16,%rsp; 1: xor %eax,%eax; xor %edi,%edi; mov %rsp,%rsi; mov $1,%edx; syscall; dec %eax; je 2f;
	// mov $60,%eax; xor %edi,%edi; syscall; 2:
	sampleHead = []byte("\x48\x83\xec\x10" + "\x31\xc0\x31\xff\x48\x89\xe6\xba\x01\x00\x00\x00\x0f\x05\xff\xc8\x74\x09" +
		"\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05")
	// mov $1,%eax; mov $1,%edi; mov %rsp,%rsi; mov $1,%edx; syscall; jmp 1b, which is 4 bytes behind the beginning
	sampleTail = []byte("\xb8\x01\x00\x00\x00\xbf\x01\x00\x00\x00\x48\x89\xe6\xba\x01\x00\x00\x00\x0f\x05\xe9")
	// push %rbp; pop %rbp
	otherSite = []byte("\x55\x5d")
)

// sample is a static x86-64 program with so many sites of an instruction.
func sample(i Insn, sites int) []byte {
	nops := bytes.Repeat(bytesOf[Nop1], sampleStep)
	text := append(bytes.Clone(sampleHead), nops[len(sampleHead)%sampleStep:]...)
	var probes []probe
	for n := range sites {
		probes = append(probes, probe{fmt.Sprint("site", n), sampleAt + uint64(len(text))})
		site := bytesOf[i]
		if i == Other {
			site = otherSite
		}
		text = append(append(text, site...), nops[len(site):]...)
	}
	text = append(text, sampleTail...)
	text = binary.LittleEndian.AppendUint32(text, uint32(4-(len(text)+4)))
	return program(text, sampleAt, 0, probes...)
}

// probe is a note to be written.
type probe struct {
	name string
	at   uint64
}

// Where what belongs to a program lies in its file, and where its notes say that it was linked.
const (
	textFile = 0x1000
	baseAt   = 0x602000
)

// program writes an x86-64 program, which begins with its text, and a note for each probe.
// by is how far it was moved after it was linked.
func program(text []byte, textAt, by uint64, probes ...probe) []byte {
	var notes bytes.Buffer
	for _, p := range probes {
		var desc bytes.Buffer
		for _, v := range []uint64{p.at - by, baseAt - by, 0} {
			desc.Write(binary.LittleEndian.AppendUint64(nil, v))
		}
		desc.WriteString("app\x00" + p.name + "\x008@%rax\x00")
		for _, v := range []int{len(noteName) + 1, desc.Len(), noteType} {
			notes.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
		}
		notes.WriteString(noteName + "\x00")
		notes.Write(desc.Bytes())
		notes.Write(make([]byte, -notes.Len()&3))
	}
	names := "\x00.text\x00" + noteSection + "\x00" + baseSection + "\x00.shstrtab\x00"
	at := func(name string) uint32 { return uint32(strings.Index(names, name+"\x00")) }
	in := textFile + textAt%pageSize // as it lies in its page
	notesAt := in + uint64(len(text))
	namesAt := notesAt + uint64(notes.Len())
	sections := []elf.Section64{
		{},
		{Name: at(".text"), Type: uint32(elf.SHT_PROGBITS), Flags: 6, Addr: textAt, Off: in, Size: uint64(len(text)), Addralign: 1},
		{Name: at(noteSection), Type: uint32(elf.SHT_NOTE), Off: notesAt, Size: uint64(notes.Len()), Addralign: 4},
		{Name: at(baseSection), Type: uint32(elf.SHT_PROGBITS), Flags: 2, Addr: baseAt, Off: in, Size: 1, Addralign: 1},
		{Name: at(".shstrtab"), Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names)), Addralign: 1},
	}
	header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: textAt, Phoff: 64,
		Shoff: namesAt + uint64(len(names)), Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
		Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1)}
	copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: in, Vaddr: textAt,
		Filesz: uint64(len(text)), Memsz: uint64(len(text)), Align: pageSize}
	var out bytes.Buffer
	for _, part := range []any{header, segment, make([]byte, in-64-56), text, notes.Bytes(), []byte(names), sections} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a buffer takes all
	}
	return out.Bytes()
}
