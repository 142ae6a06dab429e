// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Config is one kernel to be built.
type Config struct {
	Source    string       // a Debian package such as linux-source-7.2, a .deb, an archive, or a tree
	Arch      string       // instruction set
	Patches   []string     // files, for patch -p1, in their order
	Fragments []string     // parts of a configuration besides ours: files, or names of [Fragments]
	Out       string       // folder of everything; one for each source and architecture
	Jobs      int          // compilers at a time
	Progress  func(string) // is called with each line of progress; may be nil
}

// Built is a kernel that was built, as its manifest tells.
type Built struct {
	Source, Arch, Release string
	Compiler              string   // its first line of --version
	Left                  []string // options of our configuration that were not to be had
	Files                 []File   // image, configuration, modules, patches
}

// File is one of its files.
type File struct {
	What   string // image, config, module or patch
	Name   string // below the folder
	Bytes  int64
	SHA256 string
}

// FileColumns are the columns of its files.
var FileColumns = results.Declare[File](declared, "file", nil)

const (
	logName      = "build.log"
	manifestName = "manifest.json"
)

// builder is a build under way.
type builder struct {
	Config
	Built
	arch    Arch
	patches [][]byte // their texts
	parts   []fragment
}

func (b *builder) path(elem ...string) string {
	return filepath.Join(append([]string{b.Out}, elem...)...)
}

func (b *builder) tell(line string) {
	if b.Progress != nil {
		b.Progress(line)
	}
}

// Build builds a kernel, and writes vmlinuz, config, modules and manifest.json into the folder,
// where the source and the objects stay for the next build. The manifest is written last, and is
// gone while a build is under way.
func Build(ctx context.Context, c Config) (*Built, error) {
	arch, err := spelling.Find("architecture", c.Arch, Architectures(), func(a Arch) string { return a.Name })
	if err != nil {
		return nil, err
	}
	if err := missing(arch); err != nil {
		return nil, err
	}
	if c.Out, err = filepath.Abs(c.Out); err != nil {
		return nil, err
	}
	c.Jobs = max(1, c.Jobs)
	b := &builder{Config: c, arch: arch}
	if err := b.read(); err != nil {
		return nil, err
	}
	for _, dir := range []string{c.Out, b.path("objects")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("build: %w", err)
		}
	}
	for _, old := range []string{manifestName, logName} {
		if err := os.Remove(b.path(old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("build: %w", err)
		}
	}
	for _, step := range []func(context.Context) error{b.unpack, b.patch, b.configure, b.compile, b.install} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := b.describe(); err != nil {
		return nil, err
	}
	return &b.Built, nil
}

// read reads patches and configurations, before anything is made or unpacked.
func (b *builder) read() (err error) {
	for _, name := range b.Patches {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("patch: %w", err)
		}
		b.patches = append(b.patches, text)
	}
	b.parts, err = b.configurations()
	return err
}

// compile builds the image and the modules.
func (b *builder) compile(ctx context.Context) error {
	return b.make(ctx, filepath.Base(b.arch.Image), "modules")
}

// describe writes the manifest.
func (b *builder) describe() error {
	b.Built.Source, b.Built.Arch = b.Config.Source, b.arch.Name
	release, err := os.ReadFile(b.path("objects/include/config/kernel.release"))
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	b.Release = strings.TrimSpace(string(release))
	slices.Sort(b.Left)
	for _, kind := range []struct{ what, in string }{{"image", "vmlinuz"}, {"config", "config"}, {"patch", "patches"}, {"module", "modules"}} {
		err := filepath.WalkDir(b.path(kind.in), func(name string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || entry.IsDir() || kind.what == "module" && filepath.Ext(name) != ".ko":
				return err
			}
			return b.addFile(kind.what, name)
		})
		if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	return files.Write(b.path(manifestName), 0o644, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b.Built)
	})
}

func (b *builder) addFile(what, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	below, err2 := filepath.Rel(b.Out, name)
	b.Files = append(b.Files, File{what, below, n, fmt.Sprintf("%x", hash.Sum(nil))})
	return cmp.Or(err, err2)
}
