// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/cover"
)

// memory bounds what a run of tests may take, since a fault may make a loop endless: 12 GiB
// of addresses, in KiB as ulimit wants them.
const memory = 12 << 20

// copyTrees makes n copies of the module that lies here, without what git ignores.
func copyTrees(ctx context.Context, n int) (trees []string, err error) {
	for range n {
		tree, err := os.MkdirTemp("", "mutate-")
		if err != nil {
			return trees, err
		}
		trees = append(trees, tree)
		cmd := exec.CommandContext(ctx, "sh", "-c",
			`git ls-files -z --cached --others --exclude-standard | tar --null -T - --ignore-failed-read -cf - | tar -xf - -C "$1"`,
			"sh", tree)
		if out, err := cmd.CombinedOutput(); err != nil {
			return trees, fmt.Errorf("copying the module: %w: %s", err, out)
		}
	}
	return trees, nil
}

// measure tries each fault in one of the trees.
func measure(ctx context.Context, p *pkg, faults []fault, trees []string, timeout time.Duration) (result, error) {
	r := result{dir: p.dir, other: p.other, faults: faults, outcomes: make([]outcome, len(faults))}
	if out, err := runTests(ctx, trees[0], p.dir, timeout, "-coverprofile", filepath.Join(trees[0], "cover")); err != nil {
		return r, fmt.Errorf("its tests fail without a fault: %w\n%s", err, out)
	}
	run, err := readCover(filepath.Join(trees[0], "cover"))
	if err != nil {
		return r, err
	}
	free := make(chan string, len(trees))
	for _, tree := range trees {
		free <- tree
	}
	var g errgroup.Group
	g.SetLimit(len(trees))
	for i, f := range faults {
		if !run(p.path+"/"+f.file, f.covered) {
			r.outcomes[i] = unreached
			continue
		}
		g.Go(func() error {
			tree := <-free
			defer func() { free <- tree }()
			var err error
			r.outcomes[i], err = try(ctx, tree, p, f, timeout)
			return err
		})
	}
	return r, g.Wait()
}

// try puts f into the tree and says whether the package's tests notice.
func try(ctx context.Context, tree string, p *pkg, f fault, timeout time.Duration) (o outcome, err error) {
	file := filepath.Join(tree, p.dir, f.file)
	if err := os.WriteFile(file, f.in(p.src[f.file]), 0o600); err != nil {
		return "", err
	}
	defer func() {
		// rapid would try its notes of this failure again with the next fault.
		err = errors.Join(err, os.WriteFile(file, p.src[f.file], 0o600),
			os.RemoveAll(filepath.Join(tree, p.dir, "testdata", "rapid")))
	}()
	out, err := runTests(ctx, tree, p.dir, timeout)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case bytes.Contains(out, []byte("[build failed]")):
		return "", fmt.Errorf("%s:%d: %s: does not compile: %s", f.file, f.line, f.new, out)
	case err == nil:
		return survived, nil
	case bytes.Contains(out, []byte("panic: test timed out after ")), errors.Is(err, context.DeadlineExceeded):
		return late, nil
	}
	return found, nil
}

// runTests runs the tests of the package in dir, the short ones, up to the first that fails.
func runTests(ctx context.Context, tree, dir string, timeout time.Duration, flags ...string) ([]byte, error) {
	args := append([]string{"-c", fmt.Sprintf("ulimit -v %d; exec \"$@\"", memory), "sh", "go", "test",
		"-vet=off", "-failfast", "-short", "-timeout", timeout.String()}, flags...)
	ctx, stop := context.WithTimeout(ctx, 3*timeout+time.Minute) // compiling, too
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", append(args, "./"+dir)...)
	cmd.Dir = tree
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

// readCover reads a profile of what tests run and answers for a file's line.
func readCover(name string) (func(file string, line int) bool, error) {
	profiles, err := cover.ParseProfiles(name)
	if err != nil {
		return nil, err
	}
	lines := map[string]bool{}
	for _, p := range profiles {
		for _, b := range p.Blocks {
			for line := b.StartLine; line <= b.EndLine && b.Count > 0; line++ {
				lines[fmt.Sprint(p.FileName, ":", line)] = true
			}
		}
	}
	return func(file string, line int) bool { return lines[fmt.Sprint(file, ":", line)] }, nil
}
