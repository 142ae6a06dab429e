// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// opened are the kernels of files, each read once.
var opened struct {
	sync.Mutex
	of map[string]*Kernel
}

// Open finds a kernel: a built-in one by its name, or a file, which is an image or what
// [WriteFacts] wrote. A file of a built-in kernel's name needs ./ in front.
func Open(name string) (*Kernel, error) {
	if k := builtin().named(name); k != nil {
		return k, nil
	}
	opened.Lock()
	defer opened.Unlock()
	if k := opened.of[inputs.Place(name)]; k != nil {
		return k, nil
	}
	k, err := read(name)
	if err != nil {
		return nil, err
	}
	k.File = name
	if opened.of == nil {
		opened.of = map[string]*Kernel{}
	}
	opened.of[inputs.Place(name)] = k
	return k, nil
}

func read(path string) (*Kernel, error) {
	f, err := inputs.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("kernel %q: no file, and %w", path, spelling.NotOneOf(path, Names()))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 0x1000)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if vmlinux.Looks(head[:n]) || unpack.Of(head[:n]) != nil {
		img, err := image.Open(path)
		if err != nil {
			return nil, err
		}
		return FromImage(img)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	st, err := f.Stat()
	if err == nil && st.Size() > maxFacts {
		return nil, &records.ParseError{File: path, Reason: "neither a kernel image nor a kernel's facts"}
	}
	return ReadFacts(path, f)
}

// maxFacts bounds a file of facts, in bytes: distributions' kernels have 300 kB of them.
const maxFacts = 64 << 20

//go:embed data/*.csv data/*.gz
var data embed.FS

// builtin is the kernels that come with the program. That their files can be read
// is tested: if they cannot, the program is broken.
var builtin = sync.OnceValue(func() *catalogue {
	var c catalogue
	for _, f := range []struct {
		name string
		read func(file string, r io.Reader) error
	}{{"kernels.csv", c.readKernels}, {"rows.csv", c.readRows}} {
		b, err := data.ReadFile("data/" + f.name)
		if err == nil {
			err = f.read(f.name, bytes.NewReader(b))
		}
		if err != nil {
			panic(err)
		}
	}
	return &c
})

// catalogue is kernels on their way from files.
type catalogue struct{ entries []*builtIn }

// builtIn is a kernel that comes with the program. Its facts are read on the first use.
type builtIn struct {
	name, table, modules string
	arch                 string
	preset               bool
	rows                 []Row
	open                 func() (*Kernel, error)
}

// load reads the facts of a kernel, and adds what its image does not hold.
func (b *builtIn) load() (*Kernel, error) {
	file := "data/" + b.name + ".csv.gz"
	packed, err := data.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	k, err := ReadFacts(file, r)
	if err != nil {
		return nil, err
	}
	_, k.Release, _ = strings.Cut(b.name, "-")
	k.Table, k.ModulesTable, k.preset = b.table, b.modules, b.preset
	if b.rows != nil {
		k.rows = b.rows
	}
	return k, nil
}

func (c *catalogue) names() []string {
	out := make([]string, len(c.entries))
	for i, b := range c.entries {
		out[i] = b.name
	}
	return out
}

// entry finds a kernel by its name, nil if there is none.
func (c *catalogue) entry(name string) *builtIn {
	i := slices.Index(c.names(), name)
	if i < 0 {
		return nil
	}
	return c.entries[i]
}

// named is a kernel by its name, nil if there is none.
func (c *catalogue) named(name string) *Kernel {
	b := c.entry(name)
	if b == nil {
		return nil
	}
	k, err := b.open()
	if err != nil {
		panic(err)
	}
	return k
}

// listed is a line of kernels.csv.
type listed struct {
	Line    int    `col:"#"`
	Kernel  string `col:"kernel,key"`
	Default bool   `col:"default"`
	Table   string `col:"table,maybe"`
	Modules string `col:"modules_table,maybe"`
}

func (c *catalogue) readKernels(file string, r io.Reader) error {
	lines, err := sheet.Read[listed](file, r)
	for _, l := range lines {
		b := &builtIn{name: l.Kernel, preset: l.Default, table: l.Table, modules: l.Modules}
		b.open = sync.OnceValues(b.load)
		var release bool
		if b.arch, _, release = strings.Cut(b.name, "-"); !release {
			return sheet.Wrong(file, l.Line, "kernel", b.name, "want its architecture and release, joined by -")
		}
		c.entries = append(c.entries, b)
	}
	return err
}

// listedRow is a line of rows.csv.
type listedRow struct {
	Line      int    `col:"#"`
	Kernel    string `col:"kernel,key"`
	Row       string `col:"row,key"`
	Modelled  bool   `col:"modelled"`
	SenderToo bool   `col:"sender_too"`
	About     string `col:"about"`
}

func (c *catalogue) readRows(file string, r io.Reader) error {
	lines, err := sheet.Read[listedRow](file, r)
	for _, l := range lines {
		b := c.entry(l.Kernel)
		if b == nil {
			return sheet.Wrong(file, l.Line, "kernel", l.Kernel, "no kernel of that name stands in kernels.csv")
		}
		b.rows = append(b.rows, Row{l.Row, l.Modelled, l.SenderToo, l.About})
	}
	return err
}
