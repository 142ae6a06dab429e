// SPDX-License-Identifier: Apache-2.0

package ledger

import (
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

//go:embed data/*.gz
var data embed.FS

//go:embed data/kernels.csv
var kernelsText string

//go:embed data/rows.csv
var rowsText string

// opened are the kernels of files, each read once.
var opened struct {
	sync.Mutex
	of map[string]*Kernel
}

// Open finds a kernel: a built-in one by its name, or a file, which is an image or what
// [WriteFacts] wrote. A file of a built-in kernel's name needs ./ in front.
func Open(name string) (*Kernel, error) {
	if k, err := Named(name); err == nil {
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
		return nil, &records.ParseError{File: path, Reason: "not a kernel image, and not a kernel's facts"}
	}
	return ReadFacts(path, f)
}

// maxFacts bounds a file of facts, in bytes: distributions' kernels have 300 kB of them.
const maxFacts = 64 << 20

// builtIn is a kernel that comes with the program, a line of kernels.csv. Its facts are read on the
// first use. That they can be is tested: if not, the program is broken.
type builtIn struct {
	Name    string `col:"kernel,key"` // its architecture and release
	Default bool   `col:"default"`
	Table   string `col:"table,maybe"`
	Modules string `col:"modules_table,maybe"`

	open func() *Kernel
}

// builtins are those kernels.
var builtins = sync.OnceValue(func() []builtIn {
	all := sheet.Must[builtIn]("kernels.csv", kernelsText)
	for i := range all {
		all[i].open = sync.OnceValue(all[i].load)
	}
	return all
})

// load reads the facts of a kernel, and adds what its image does not hold.
func (b *builtIn) load() *Kernel {
	k, err := readPacked(b.Name+".csv.gz", ReadFacts)
	if err != nil {
		panic(err)
	}
	_, k.Release, _ = strings.Cut(b.Name, "-")
	k.Table, k.ModulesTable = b.Table, b.Modules
	listed := slices.DeleteFunc(sheet.Must[Row]("rows.csv", rowsText), func(r Row) bool { return r.Kernel != b.Name })
	if len(listed) > 0 {
		k.rows = listed
	}
	return k
}

// readPacked reads a file of this package.
func readPacked[T any](file string, read func(file string, r io.Reader) (T, error)) (out T, err error) {
	f, err := data.Open("data/" + file)
	if err != nil {
		return out, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return out, fmt.Errorf("%s: %w", file, err)
	}
	return read(file, r)
}
