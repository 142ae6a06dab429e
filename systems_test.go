// SPDX-License-Identifier: Apache-2.0

package textpoke_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherSystems reads the house as it is compiled where there is no hardware engine and no tracefs: every package has
// its types, its tests included. Nothing is compiled, and of others' packages only declarations are read.
func TestOtherSystems(t *testing.T) {
	house, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax,
		Env:  append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"), Tests: true,
		ParseFile: func(set *token.FileSet, name string, src []byte) (*ast.File, error) {
			f, err := parser.ParseFile(set, name, src, parser.AllErrors|parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(name, house+"/") {
				for _, d := range f.Decls {
					if is, ok := d.(*ast.FuncDecl); ok {
						is.Body = nil
					}
				}
			}
			return f, err
		},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if strings.HasSuffix(p.PkgPath, ".test") { // the program that go makes of tests
			continue
		}
		for _, err := range p.Errors {
			t.Error(err)
		}
	}
}
