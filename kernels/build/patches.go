// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// patch puts the requested patches into the source, and takes others out. Those that are in it
// already and come first stay, so that make finds no file newer than its object without need.
func (b *builder) patch(ctx context.Context) error {
	in, err := filepath.Glob(b.path("patches/*.patch")) // in their order, by their numbers
	if err != nil {
		return err
	}
	want, same := b.patches, 0
	for ; same < min(len(in), len(want)); same++ {
		if text, err := os.ReadFile(in[same]); err != nil || !bytes.Equal(text, want[same]) {
			break
		}
	}
	for i := len(in) - 1; i >= same; i-- {
		if err := b.applied(ctx, in[i], "-R"); err != nil {
			return fmt.Errorf("take patch %s out of %s: %w", in[i], b.path("source"), err)
		}
		if err := os.Remove(in[i]); err != nil {
			return err
		}
	}
	for i := same; i < len(want); i++ {
		if err := b.applied(ctx, b.Patches[i], "-N"); err != nil {
			return fmt.Errorf("patch %s does not apply to %s: %w", b.Patches[i], b.Config.Source, err)
		}
		kept := b.path(fmt.Sprintf("patches/%04d.patch", i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, want[i], 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// applied applies a patch, or takes it out: whole or not at all.
func (b *builder) applied(ctx context.Context, file, direction string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	b.tell("patch " + filepath.Base(file))
	args := []string{"-p1", "--batch", "--fuzz=2", "--no-backup-if-mismatch", "--reject-file=-", direction, "-i", file}
	if err := b.run(ctx, b.path("source"), "patch", append(args, "--dry-run")...); err != nil {
		return err
	}
	return b.run(ctx, b.path("source"), "patch", args...)
}

// failures are the lines of a log that say what went wrong, the one that says most first: of a
// compiler or a linker, of patch, of make, of others.
var failures = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^.*: (?:fatal )?error: .*$`),
	regexp.MustCompile(`(?m)^.*undefined reference to .*$`),
	regexp.MustCompile(`(?m)^Hunk #\d+ FAILED.*$`),
	regexp.MustCompile(`(?m)^.*[Nn]o (?:file to patch|rule to make target).*$`),
	regexp.MustCompile(`(?m)^make.*\*\*\* .*$`),
	regexp.MustCompile(`(?m)^(?:E|tar|cp|dpkg-deb|patch): .*$`),
}

// failure is the line of a program's output that tells most.
func failure(output []byte) string {
	for _, f := range failures {
		if line := f.Find(output); line != nil {
			return string(bytes.TrimSpace(line))
		}
	}
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
