// SPDX-License-Identifier: Apache-2.0

package textpoke_test

import (
	"os"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherSystems reads the house as it is compiled where there is no hardware engine and no tracefs: every package has
// its types, its tests included. Nothing is compiled.
func TestOtherSystems(t *testing.T) {
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax,
		Env:  append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"), Tests: true,
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, err := range p.Errors {
			t.Error(err)
		}
	}
}
