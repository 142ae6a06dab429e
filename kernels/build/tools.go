// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

//go:embed architectures.csv
var architectureTable []byte

//go:embed programs.csv
var programTable []byte

// Arch is how kernels of an instruction set are built.
type Arch struct {
	Name     string // as everywhere here
	Make     string // as the kernel's makefiles call it
	Compiler string // prefix of the compiler and its tools; "" for this machine's own
	Package  string // Debian's package of the compiler
	Image    string // file that is booted, below the objects
}

// Architectures are the instruction sets that kernels are built for.
func Architectures() (all []Arch) {
	for _, r := range table(architectureTable) {
		a := Arch{Name: r[0], Make: r[2], Compiler: r[3], Package: r[4], Image: r[5]}
		if r[1] == runtime.GOARCH {
			a.Compiler, a.Package = "", "gcc"
		}
		all = append(all, a)
	}
	return all
}

// table is the rows of a table of ours, without its head.
func table(text []byte) [][]string {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		panic(err)
	}
	return rows[1:]
}

// archNamed finds one of them.
func archNamed(name string) (Arch, error) {
	var names []string
	for _, a := range Architectures() {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Arch{}, fmt.Errorf("architecture %q: %w", name, spelling.NotOneOf(name, names))
}

// MissingError says which programs a build lacks, by Debian's names of their packages.
type MissingError struct{ Packages []string }

func (e *MissingError) Error() string {
	return "a kernel cannot be built here: apt-get install " + strings.Join(e.Packages, " ")
}

// missing lists the tools that a build for an architecture lacks.
func missing(a Arch) error {
	var packages []string
	for _, r := range append(table(programTable), []string{a.Compiler + "gcc", a.Package}) {
		if !installed(r[0]) {
			packages = append(packages, r[1])
		}
	}
	if len(packages) > 0 {
		return &MissingError{packages}
	}
	return nil
}

// installed tells whether there is a program of this name, or a file of this path.
func installed(name string) bool {
	if filepath.IsAbs(name) {
		_, err := os.Stat(name)
		return err == nil
	}
	_, err := exec.LookPath(name)
	return err == nil
}
