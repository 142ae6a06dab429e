// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
)

// Kernel is what an image says. It is not changed once it has been read, but for what
// [Kernel.Calls] remembers: one goroutine at a time.
type Kernel struct {
	*memory
	*symbols
	File    string // as it was asked for
	Hash    string // SHA-256 of the file, in hexadecimal
	Banner  string // Linux version ...
	Release string // as uname -r has it

	Records Records
	Keys    Keys
	Sites   Sites
	Events  []Event
	Config  string // CONFIG_IKCONFIG's text; "" where the image carries none

	layouts     layouts
	tracepoints map[uint64]string // their names by address
	parts       map[string][]uint64
	called      map[string]map[string]int
	notes       []string
	unnamed     bool // no symbol of data is there
}

// Open reads an image from a file.
func Open(path string) (*Kernel, error) {
	b, hash, err := load(path)
	if err != nil {
		return nil, err
	}
	k, err := Read(path, b)
	if err != nil {
		return nil, err
	}
	k.Hash = hash
	return k, nil
}

// headBytes is how much of a file tells what it is.
const headBytes = 0x1000

// load reads a file that begins as images do. A file of another kind is refused before
// more of it is read.
func load(path string) (b []byte, hash string, err error) {
	f, err := os.Open(inputs.Place(path))
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	switch head = head[:n]; {
	case st.IsDir():
		return nil, "", fmt.Errorf("%s: it is a directory", path)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return nil, "", err
	case !known(head):
		return nil, "", inFile(path, fail("", "not a kernel image: want vmlinuz, vmlinux, Image or zboot"))
	case st.Size() > MaxFile:
		return nil, "", inFile(path, fail("", "%d MiB, more than %d", st.Size()>>20, MaxFile>>20))
	}
	b = make([]byte, st.Size())
	copy(b, head)
	if _, err = io.ReadFull(f, b[min(len(b), n):]); err != nil && !errors.Is(err, io.EOF) {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:]), nil
}

// Looks tells whether a file that begins like this is meant for an image: it may be a program for EFI that is none.
func Looks(head []byte) bool { return known(head) || bytes.HasPrefix(head, []byte("MZ")) }

// known tells whether a file that begins like this is of a form that is read.
func known(head []byte) bool {
	return bytes.HasPrefix(head, []byte(elf.ELFMAG)) || isBzImage(head) || isZboot(head) || rawArch(head) != nil ||
		packedWith(head) != nil || bytes.HasPrefix(head, []byte(magicLZO))
}

// Read reads an image. Errors name file, which is not opened.
func Read(file string, b []byte) (*Kernel, error) {
	m, err := unwrap(b)
	if err != nil {
		return nil, inFile(file, err)
	}
	k := &Kernel{memory: m, File: file, called: map[string]map[string]int{}}
	if err := k.read(); err != nil {
		return nil, inFile(file, err)
	}
	return k, nil
}

// read takes the unpacked kernel apart. What of its tables is not there, or not
// understood, is among the notes.
func (k *Kernel) read() (err error) {
	if err := k.banner(); err != nil {
		return err
	}
	k.relocate()
	if k.symbols, err = readKallsyms(k.memory); err != nil {
		return fmt.Errorf("%s: %w", k.Release, err)
	}
	if err := k.settle(); err != nil {
		return fmt.Errorf("%s: %w", k.Release, err)
	}
	k.parts = map[string][]uint64{}
	for i := range k.symbols.all {
		if y := &k.symbols.all[i]; y.isText() {
			k.parts[plain(y.Name)] = append(k.parts[plain(y.Name)], y.Addr)
		}
	}
	k.config()
	k.readLayouts()
	k.readKeys()
	k.readRecords()
	k.readSites()
	k.readEvents()
	return nil
}

// bannerLine is linux_banner (init/version.c); the format of /proc/version is another
// string like it.
var bannerLine = regexp.MustCompile(`Linux version ([0-9]+\.[0-9]+[0-9A-Za-z.+~_-]*) [^\x00\n%]{0,400}`)

// banner finds what the kernel calls itself.
func (k *Kernel) banner() error {
	for _, s := range k.segments {
		if m := bannerLine.FindSubmatch(s.data); m != nil {
			k.Banner, k.Release = string(m[0]), string(m[1])
			return nil
		}
	}
	return fail(k.form, "holds no Linux version: not a kernel")
}

// Arch is the instruction set, as package cpus names it.
func (k *Kernel) Arch() string { return k.arch.name }

// Form is how the kernel was packed, from the outside in.
func (k *Kernel) Form() string { return k.form }

// Symbols is how many symbols the image names, and in which layout.
func (k *Kernel) Symbols() (n int, layout string) { return len(k.symbols.all), k.symbols.layout }

// Notes are what was found in another way than by name, and what was not found.
func (k *Kernel) Notes() []string { return k.notes }

func (k *Kernel) note(format string, args ...any) {
	k.notes = append(k.notes, fmt.Sprintf(format, args...))
}

// LandingPads tells whether most functions begin with one (BTI on arm64, IBT on x86_64):
// their records lie behind it.
func (k *Kernel) LandingPads() bool {
	pads := 0
	for _, at := range k.Records.Sites {
		if k.arch.pad(k.at(at - 4)) {
			pads++
		}
	}
	return 2*pads > len(k.Records.Sites)
}

// CallOps tells whether each record has a literal that names an ops
// (CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS): then nothing is left to patch in the common
// entry, and its label is not there.
func (k *Kernel) CallOps() bool {
	return k.arch.magic != "" && k.Has("ftrace_caller") && !k.Has("ftrace_call")
}

// Preempt is how the kernel says that it preempts tasks; "" where it does not say.
func (k *Kernel) Preempt() string {
	for _, p := range []string{"PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"} {
		for word := range strings.FieldsSeq(k.Banner) {
			if word == p {
				return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(p, "PREEMPT_"), "PREEMPT"))
			}
		}
	}
	return ""
}

// configMagic stands before the packed configuration (kernel/configs.c).
const configMagic = "IKCFG_ST"

func (k *Kernel) config() {
	for _, s := range k.segments {
		i := bytes.Index(s.data, []byte(configMagic))
		if i < 0 {
			continue
		}
		if p := packedWith(s.data[i+len(configMagic):]); p != nil {
			if b, err := p.unpack(s.data[i+len(configMagic):], 1<<20); err == nil {
				k.Config = string(b)
				return
			}
		}
		k.note("the configuration inside the image cannot be read")
	}
}
