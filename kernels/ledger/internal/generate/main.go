// SPDX-License-Identifier: Apache-2.0

// Command generate writes the facts of the kernels that come with the program:
//
//	go run ./kernels/ledger/internal/generate NAME=IMAGE...
//
// reads each image and writes kernels/ledger/data/NAME.csv.gz, from which all ledgers
// follow. NAME=FILE.csv packs facts that were read in a release's source.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/textpoke/textpoke/kernels/ledger"
)

func main() {
	for _, arg := range os.Args[1:] {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			fmt.Fprintf(os.Stderr, "%s: want NAME=IMAGE\n", arg)
			os.Exit(2)
		}
		if err := generate(name, file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func generate(name, file string) error {
	k, err := ledger.Open("./" + file)
	if filepath.IsAbs(file) {
		k, err = ledger.Open(file)
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	bare := *k
	bare.Own = nil // the program has tables of records
	if err := ledger.WriteFacts(w, &bare); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("kernels/ledger/data", name+".csv.gz"), b.Bytes(), 0o644)
}
