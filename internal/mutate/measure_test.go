// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/cover"
	"golang.org/x/tools/go/packages"
)

// outcome is what became of a fault.
type outcome string

const (
	found     outcome = "found"              // a test failed
	late      outcome = "late"               // the tests did not end in time, which counts as found
	survived  outcome = "survived"           // all tests passed
	unreached outcome = "no test comes here" // and so none can fail
)

// pkg is a package whose source faults are put into.
type pkg struct {
	*packages.Package
	dir string            // relative to the module's
	src map[string][]byte // its files, without tests
}

// load reads the packages that patterns name, with the types of all that they import.
func load(ctx context.Context, patterns []string) (all []*pkg, err error) {
	loaded, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.NeedName | packages.NeedFiles |
		packages.NeedCompiledGoFiles | packages.NeedModule | packages.NeedImports | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo}, patterns...)
	if err != nil {
		return nil, err
	}
	for _, l := range loaded {
		switch {
		case len(l.Errors) > 0:
			return nil, l.Errors[0]
		case len(l.GoFiles) == 0:
			continue
		}
		p := &pkg{l, "", map[string][]byte{}}
		if p.dir, err = filepath.Rel(l.Module.Dir, filepath.Dir(l.GoFiles[0])); err != nil {
			return nil, err
		}
		for _, file := range l.GoFiles {
			if p.src[filepath.Base(file)], err = os.ReadFile(file); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// other are the package's files for other systems or build tags, which nothing here compiles.
func (p *pkg) other() (names []string) {
	for _, file := range p.IgnoredFiles {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			names = append(names, filepath.Base(file))
		}
	}
	return names
}

// Import is a package that this one imports. It implements types.Importer.
func (p *pkg) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return p.Imports[path].Types, nil
}

// compiles says whether the package with f in it is a program at all.
func (p *pkg) compiles(f fault) bool {
	file, err := parser.ParseFile(p.Fset, f.file, f.in(p.src[f.file]), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := slices.Clone(p.Syntax)
	files[slices.IndexFunc(p.GoFiles, func(name string) bool { return filepath.Base(name) == f.file })] = file
	_, err = (&types.Config{Importer: p}).Check(p.PkgPath, p.Fset, files, nil)
	return err == nil
}

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
func (p *pkg) measure(ctx context.Context, faults []fault, trees []string, timeout time.Duration) error {
	profile := filepath.Join(trees[0], "cover")
	if out, err := p.test(ctx, trees[0], timeout, "-coverprofile", profile); err != nil {
		return fmt.Errorf("its tests fail without a fault: %w\n%s", err, out)
	}
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return err
	}
	free := make(chan string, len(trees))
	for _, tree := range trees {
		free <- tree
	}
	var g errgroup.Group
	g.SetLimit(len(trees))
	for i := range faults {
		f := &faults[i]
		if !runs(profiles, p.PkgPath+"/"+f.file, f.covered) {
			f.outcome = unreached
			continue
		}
		g.Go(func() (err error) {
			tree := <-free
			defer func() { free <- tree }()
			f.outcome, err = p.try(ctx, tree, *f, timeout)
			return err
		})
	}
	return g.Wait()
}

// try puts f into the tree and says whether the package's tests notice.
func (p *pkg) try(ctx context.Context, tree string, f fault, timeout time.Duration) (o outcome, err error) {
	file := filepath.Join(tree, p.dir, f.file)
	if err := os.WriteFile(file, f.in(p.src[f.file]), 0o600); err != nil {
		return "", err
	}
	defer func() {
		// rapid would try its notes of this failure again with the next fault.
		err = errors.Join(err, os.WriteFile(file, p.src[f.file], 0o600),
			os.RemoveAll(filepath.Join(tree, p.dir, "testdata", "rapid")))
	}()
	out, err := p.test(ctx, tree, timeout)
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

// test runs the tests of the package in a tree, the short ones, up to the first that fails.
func (p *pkg) test(ctx context.Context, tree string, timeout time.Duration, flags ...string) ([]byte, error) {
	args := append([]string{"go", "test", "-vet=off", "-failfast", "-short", "-timeout", timeout.String()}, flags...)
	ctx, stop := context.WithTimeout(ctx, 3*timeout+time.Minute) // compiling, too
	defer stop()
	cmd := bounded(ctx, append(args, "./"+p.dir)...)
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	endAll(cmd)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

// processes bounds how many a run may have at a time, where the machine lets us say so: a child with a fault may start
// children.
const processes = 1000

// groups are folders of control groups that count processes, of either version.
var groups = []string{"/sys/fs/cgroup/pids/", "/sys/fs/cgroup/"}

// bounded is a command in a group of processes of its own, with bounds on memory and on the number of processes.
func bounded(ctx context.Context, args ...string) *exec.Cmd {
	script := fmt.Sprintf("for d in %s; do g=${d}mutate-$$; mkdir $g && echo %d >$g/pids.max && echo $$ >$g/cgroup.procs && break; "+
		"done 2>/dev/null; ulimit -v %d; exec \"$@\"", strings.Join(groups, " "), processes, memory)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return endAll(cmd) }
	cmd.WaitDelay = 10 * time.Second // whoever is left may hold the output open
	return cmd
}

// endAll ends what a bounded command has left, and removes its group.
func endAll(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	for _, d := range groups {
		group := fmt.Sprint(d, "mutate-", cmd.Process.Pid)
		for range 100 {
			list, _ := os.ReadFile(group + "/cgroup.procs")
			for _, pid := range strings.Fields(string(list)) {
				if n, err := strconv.Atoi(pid); err == nil {
					_ = syscall.Kill(n, syscall.SIGKILL)
				}
			}
			if err := os.Remove(group); err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return err
}

// runs says whether a line of a file ran, by profiles of coverage.
func runs(profiles []*cover.Profile, file string, line int) bool {
	return slices.ContainsFunc(profiles, func(p *cover.Profile) bool {
		return p.FileName == file && slices.ContainsFunc(p.Blocks, func(b cover.ProfileBlock) bool {
			return b.Count > 0 && b.StartLine <= line && line <= b.EndLine
		})
	})
}
