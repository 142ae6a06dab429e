// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/renameio/v2"
)

//go:embed guest/*.go
var guestSource embed.FS

// guestModule is what makes the embedded source a module.
const guestModule = "module guest\n\ngo 1.26\n"

// guest is the init for an architecture, from the cache or built now.
func guest(ctx context.Context, e *emulator) ([]byte, error) {
	names, err := fs.Glob(guestSource, "guest/*.go")
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	for _, name := range names {
		text, err := guestSource.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	kept := filepath.Join(cache, "textpoke", fmt.Sprintf("guest-%s-%.8x", e.goarch, hash.Sum(nil)))
	if text, err := os.ReadFile(kept); err == nil {
		return text, nil
	}
	text, err := buildGuest(ctx, e, names)
	if err != nil {
		return nil, fmt.Errorf("build the guest for %s: %w", e.arch, err)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err == nil {
		_ = renameio.WriteFile(kept, text, 0o700) // the next time is slower without
	}
	return text, nil
}

func buildGuest(ctx context.Context, e *emulator, names []string) ([]byte, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("the go tool is not installed, and the guest is built from source")
	}
	dir, err := os.MkdirTemp("", "textpoke-guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(guestModule), 0o600); err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := guestSource.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", "init", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+e.goarch, "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	return os.ReadFile(filepath.Join(dir, "init"))
}
