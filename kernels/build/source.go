// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sourcesDir is where Debian's packages of the kernel's source put their archives.
const sourcesDir = "/usr/src"

// unpack puts the source into the folder, where it is not there already.
func (b *builder) unpack(ctx context.Context) error {
	if name, err := os.ReadFile(b.path("source.name")); err == nil {
		if string(name) != b.Config.Source {
			return fmt.Errorf("%s holds the source %s, not %s: build in another folder", b.Out, name, b.Config.Source)
		}
		return nil
	}
	temp, err := os.MkdirTemp(b.Out, "unpacking-")
	if err != nil {
		return fmt.Errorf("unpack source: %w", err)
	}
	defer os.RemoveAll(temp)
	b.tell("unpack " + b.Config.Source)
	tree, err := b.tree(ctx, temp)
	if err != nil {
		return fmt.Errorf("source %s: %w", b.Config.Source, err)
	}
	if _, err := os.Stat(filepath.Join(tree, "Kconfig")); err != nil {
		return fmt.Errorf("source %s: no kernel's source: it has no Kconfig", b.Config.Source)
	}
	// A tree without a name is of an interrupted build, and is not trusted.
	if err := errors.Join(os.RemoveAll(b.path("source")), os.Rename(tree, b.path("source"))); err != nil {
		return fmt.Errorf("source %s: %w", b.Config.Source, err)
	}
	return os.WriteFile(b.path("source.name"), []byte(b.Config.Source), 0o644)
}

// tree is the folder of a copy of the source's tree below temp.
func (b *builder) tree(ctx context.Context, temp string) (string, error) {
	name, err := filepath.Abs(b.Config.Source)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		tree := filepath.Join(temp, "tree")
		return tree, b.run(ctx, temp, "cp", "-a", "--reflink=auto", name, tree)
	case err == nil && strings.HasSuffix(name, ".deb"):
		return b.fromPackage(ctx, name, temp)
	case err == nil:
		return b.fromArchive(ctx, name, temp)
	case strings.ContainsRune(b.Config.Source, filepath.Separator):
		return "", err
	}
	name = b.Config.Source
	if found, _ := filepath.Glob(filepath.Join(sourcesDir, name+".tar.*")); len(found) > 0 {
		return b.fromArchive(ctx, found[0], temp)
	}
	if err := b.run(ctx, temp, "apt-get", "download", "-q", name); err != nil {
		return "", fmt.Errorf("no file, not in %s, and not to be had: %w", sourcesDir, err)
	}
	found, _ := filepath.Glob(filepath.Join(temp, "*.deb"))
	if len(found) != 1 {
		return "", fmt.Errorf("apt-get downloaded %d packages, want one", len(found))
	}
	return b.fromPackage(ctx, found[0], temp)
}

// fromPackage unpacks a Debian package, which holds an archive.
func (b *builder) fromPackage(ctx context.Context, deb, temp string) (string, error) {
	files := filepath.Join(temp, "package")
	if err := b.run(ctx, temp, "dpkg-deb", "-x", deb, files); err != nil {
		return "", err
	}
	found, _ := filepath.Glob(filepath.Join(files, sourcesDir, "linux-source-*.tar.*"))
	if len(found) != 1 {
		return "", fmt.Errorf("it has %d archives linux-source-* in %s, want one", len(found), sourcesDir)
	}
	return b.fromArchive(ctx, found[0], temp)
}

// fromArchive unpacks an archive, which holds one folder.
func (b *builder) fromArchive(ctx context.Context, archive, temp string) (string, error) {
	files := filepath.Join(temp, "archive")
	if err := os.Mkdir(files, 0o755); err != nil {
		return "", err
	}
	if err := b.run(ctx, files, "tar", "-xf", archive); err != nil {
		return "", err
	}
	inside, err := os.ReadDir(files)
	if err != nil || len(inside) != 1 {
		return "", errors.Join(err, fmt.Errorf("the archive has %d folders, want one", len(inside)))
	}
	return filepath.Join(files, inside[0].Name()), nil
}
