// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/textpoke/textpoke/internal/inputs"
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
