// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

//go:embed guest/action.go guest/bpf.go guest/callers.go guest/count.go guest/main.go guest/recalled.go guest/together.go guest/uprobe.go
var guestSource embed.FS

// guest is the init for an architecture, from the cache or built now, of the embedded source and of more files.
func guest(ctx context.Context, e *emulator, more map[string][]byte) ([]byte, error) {
	names, err := fs.Glob(guestSource, "guest/*.go")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"go.mod": []byte("module guest\n\ngo 1.26\n")}
	for _, name := range names {
		if files[filepath.Base(name)], err = guestSource.ReadFile(name); err != nil {
			return nil, err
		}
	}
	maps.Copy(files, more)
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(files[name]), files[name])
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	kept := filepath.Join(cache, "textpoke", fmt.Sprintf("guest-%s-%.8x", e.GOARCH, hash.Sum(nil)))
	if text, err := os.ReadFile(kept); err == nil {
		return text, nil
	}
	text, err := buildGuest(ctx, e, files)
	if err != nil {
		return nil, fmt.Errorf("build the guest for %s: %w", e.Arch, err)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err == nil {
		_ = renameio.WriteFile(kept, text, 0o700) // the next time is slower without
	}
	return text, nil
}

func buildGuest(ctx context.Context, e *emulator, files map[string][]byte) ([]byte, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("the go tool is not installed, and the guest is built from source")
	}
	dir, err := os.MkdirTemp("", "textpoke-guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", "init", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+e.GOARCH, "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	return os.ReadFile(filepath.Join(dir, "init"))
}

// entry is one file or folder of an initramfs.
type entry struct {
	name string
	mode uint32 // of stat(2), with its type
	text []byte
}

const (
	folder     = 0o040755
	executable = 0o100755
	plain      = 0o100644
)

// writeCPIO writes an archive in the "newc" form, which the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst, init/initramfs.c).
func writeCPIO(w io.Writer, entries []entry) error {
	var b bytes.Buffer
	pad := func() {
		for b.Len()%4 != 0 {
			b.WriteByte(0)
		}
	}
	for i, e := range append(entries, entry{name: "TRAILER!!!"}) {
		if len(e.text) > 1<<32-1 {
			return fmt.Errorf("initramfs: %s has %d bytes, more than the format can say", e.name, len(e.text))
		}
		b.WriteString("070701")
		fields := [13]uint32{0: uint32(i + 1), 1: e.mode, 4: 1, 6: uint32(len(e.text)), 11: uint32(len(e.name) + 1)}
		for _, f := range fields {
			fmt.Fprintf(&b, "%08X", f)
		}
		b.WriteString(e.name)
		b.WriteByte(0)
		pad()
		b.Write(e.text)
		pad()
	}
	_, err := b.WriteTo(w)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}
