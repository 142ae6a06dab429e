// SPDX-License-Identifier: Apache-2.0

package build

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/textpoke/textpoke/internal/sheet"
)

//go:embed architectures.csv
var architectureTable string

//go:embed programs.csv
var programTable string

// Arch is how kernels of an instruction set are built.
type Arch struct {
	Name     string `col:"arch,key"`       // as everywhere here
	GOARCH   string `col:"goarch"`         // as Go calls it
	Make     string `col:"make"`           // as the kernel's makefiles call it
	Compiler string `col:"compiler,maybe"` // prefix of the compiler and its tools; "" for this machine's own
	Package  string `col:"package"`        // Debian's package of the compiler
	Image    string `col:"image"`          // file that is booted, below the objects
}

// Architectures are the instruction sets that kernels are built for.
func Architectures() []Arch {
	all := sheet.Must[Arch]("architectures.csv", architectureTable)
	for i := range all {
		if all[i].GOARCH == runtime.GOARCH {
			all[i].Compiler, all[i].Package = "", "gcc"
		}
	}
	return all
}

// program is what building needs, a program or a file, and Debian's package of it.
type program struct {
	Name    string `col:"program,key"`
	Package string `col:"package"`
}

// missing lists the programs that a build for an architecture lacks, by Debian's names of their packages.
func missing(a Arch) error {
	var packages []string
	for _, p := range append(sheet.Must[program]("programs.csv", programTable), program{a.Compiler + "gcc", a.Package}) {
		if !installed(p.Name) {
			packages = append(packages, p.Package)
		}
	}
	if len(packages) > 0 {
		return errors.New("a kernel cannot be built here: apt-get install " + strings.Join(packages, " "))
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
