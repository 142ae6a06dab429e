// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/textpoke/textpoke/records/internal/packed"
)

// Nothing here is slow; the flag lets go test ./... -long pass through.
var _ = flag.Bool("long", false, "run slow tests")

func TestPack(t *testing.T) {
	const list = "ffffffff81002014 one\nffffffff81002064 other\nffffffffc0203014 mine [ext4]\n"
	dir := t.TempDir()
	from, to := filepath.Join(dir, "list"), filepath.Join(dir, "packed")
	if err := os.WriteFile(from, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := pack(from, to); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	err = packed.Decode(data, func(addr uint64, symbol, module []byte) error {
		fmt.Fprintf(&got, "%x %s", addr, symbol)
		if len(module) > 0 {
			fmt.Fprintf(&got, " [%s]", module)
		}
		got.WriteByte('\n')
		return nil
	})
	if err != nil || got.String() != list {
		t.Errorf("%v, got\n%swant\n%s", err, got.String(), list)
	}
	if err := pack(filepath.Join(dir, "none"), to); err == nil {
		t.Error("a list that does not exist was packed")
	}
}
