// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed tests/*.litmus
var files embed.FS

// Shipped holds the shipped tests, files NAME.litmus without folders.
func Shipped() fs.FS {
	sub, err := fs.Sub(files, "tests")
	if err != nil { // only for an invalid name
		panic(err)
	}
	return sub
}

// ShippedNames lists the shipped tests by name, in alphabetical order.
func ShippedNames() []string {
	entries, err := fs.ReadDir(Shipped(), ".")
	if err != nil { // what is embedded can be read
		panic(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".litmus")
	}
	slices.Sort(names)
	return names
}
