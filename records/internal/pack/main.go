// SPDX-License-Identifier: Apache-2.0

// Command pack makes the built-in tables: it reads a list of records in any
// format that the records package reads, and writes it packed.
//
//	go run ./records/internal/pack LIST records/data/NAME.tpr
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/records/internal/packed"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack LIST OUTPUT")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(2)
	}
}

func pack(from, to string) error {
	t, err := records.Open(context.Background(), from, records.Options{})
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := packed.Encode(&buf, table{t}); err != nil {
		return err
	}
	return os.WriteFile(to, buf.Bytes(), 0o644)
}

// table shows a table of records the way packing wants it.
type table struct{ *records.Table }

func (t table) Record(i int) (addr uint64, symbol, module string) {
	return uint64(t.Addr(i)), t.Symbol(i), t.Module(i)
}
