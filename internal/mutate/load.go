// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package whose source faults are put into.
type pkg struct {
	path  string   // its import path
	dir   string   // its directory, relative to the module's
	names []string // its files, without tests
	other []string // its files for other systems or build tags, which nothing here compiles
	src   map[string][]byte
	fset  *token.FileSet
	files map[string]*ast.File
	info  *types.Info
	types types.ImporterFrom
}

// load reads the packages that patterns name, with the types of all that they import.
func load(ctx context.Context, patterns []string) ([]*pkg, error) {
	args := append([]string{"list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles,DepOnly,Module"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	fset := token.NewFileSet()
	lookup := func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("%s is not among the packages that were listed", path)
		}
		return os.Open(file)
	}
	imports := importer.ForCompiler(fset, "gc", lookup).(types.ImporterFrom)
	var packages []*pkg
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var l struct {
			ImportPath, Dir, Export string
			GoFiles, IgnoredGoFiles []string
			DepOnly                 bool
			Module                  *struct{ Dir string }
		}
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if l.DepOnly || len(l.GoFiles) == 0 {
			continue
		}
		dir, err := filepath.Rel(l.Module.Dir, l.Dir)
		if err != nil {
			return nil, err
		}
		packages = append(packages, &pkg{path: l.ImportPath, dir: dir, names: l.GoFiles,
			other: slices.DeleteFunc(l.IgnoredGoFiles, isTest), src: map[string][]byte{}, fset: fset,
			files: map[string]*ast.File{}, types: imports})
	}
	for _, p := range packages {
		if err := p.read(); err != nil {
			return nil, err
		}
	}
	return packages, nil
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }

func (p *pkg) read() error {
	for _, name := range p.names {
		src, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.src[name], p.files[name] = src, file
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	return p.check(p.files, p.info)
}

func (p *pkg) check(files map[string]*ast.File, info *types.Info) error {
	var all []*ast.File
	for _, name := range p.names {
		all = append(all, files[name])
	}
	config := types.Config{Importer: p.types}
	_, err := config.Check(p.path, p.fset, all, info)
	return err
}

// compiles says whether the package with f in it is a program at all.
func (p *pkg) compiles(f fault) bool {
	file, err := parser.ParseFile(p.fset, f.file, f.in(p.src[f.file]), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := map[string]*ast.File{}
	for name, old := range p.files {
		files[name] = old
	}
	files[f.file] = file
	return p.check(files, nil) == nil
}
