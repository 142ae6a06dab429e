// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/textpoke/textpoke/internal/files"
)

// make runs the kernel's makefile.
func (b *builder) make(ctx context.Context, args ...string) error {
	args = append([]string{"-C", b.path("source"), "O=" + b.path("objects"), "ARCH=" + b.arch.Make,
		"CROSS_COMPILE=" + b.arch.Compiler, "-j" + strconv.Itoa(b.Jobs)}, args...)
	if _, err := exec.LookPath("ccache"); err == nil { // a patch to a header that goes again changes its time only
		args = append(args, "CC=ccache "+b.arch.Compiler+"gcc")
	}
	return b.run(ctx, b.Out, "make", args...)
}

// fixed makes a build depend on its input alone. The price: pahole writes type information in one
// thread.
var fixed = []string{"KBUILD_BUILD_USER=textpoke", "KBUILD_BUILD_HOST=textpoke", "KBUILD_BUILD_VERSION=1",
	"KBUILD_BUILD_TIMESTAMP=1970-01-01", "LC_ALL=C", "TZ=UTC"}

// killDelay is how long a program that is told to stop may take before it is killed.
const killDelay = 10 * time.Second

// run runs a program in a folder. Its output goes to the log, and the end of it into the error.
func (b *builder) run(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat([]string{"CCACHE_DIR=" + b.path("ccache")}, os.Environ(), fixed)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // make passes it on
	cmd.WaitDelay = killDelay
	var said bytes.Buffer
	log, err := os.OpenFile(b.path(logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	fmt.Fprintf(log, "\n$ %v\n", cmd)
	out := &tee{log: log, said: &said, each: b.tell}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s was cut short: %w", program, context.Cause(ctx))
	case err != nil && said.Len() > 0:
		return fmt.Errorf("%s: %s (%s)", program, failure(said.Bytes()), b.path(logName))
	case err != nil:
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// tee writes what a program prints to the log, keeps it, and tells its last line.
type tee struct {
	log  *os.File
	said *bytes.Buffer
	each func(string)
}

func (t *tee) Write(p []byte) (int, error) {
	t.said.Write(p)
	if line := bytes.TrimSpace(p); len(line) > 0 {
		last := line[bytes.LastIndexByte(line, '\n')+1:]
		t.each(string(last))
	}
	return t.log.Write(p)
}

// install puts the image, the modules and the configuration into the folder.
func (b *builder) install(ctx context.Context) error {
	modules := b.path("modules")
	if err := os.RemoveAll(modules); err != nil {
		return err
	}
	b.tell("install modules")
	if err := b.make(ctx, "INSTALL_MOD_PATH="+modules, "INSTALL_MOD_STRIP=1", "modules_install"); err != nil {
		return err
	}
	// They lead into the source and the objects.
	for _, link := range []string{"build", "source"} {
		found, _ := filepath.Glob(filepath.Join(modules, "lib/modules/*", link))
		for _, name := range found {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	if err := files.Copy(b.path("objects/.config"), b.path("config"), 0o644); err != nil {
		return err
	}
	return files.Copy(b.path("objects", b.arch.Image), b.path("vmlinuz"), 0o644)
}
