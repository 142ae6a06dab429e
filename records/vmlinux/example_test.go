// SPDX-License-Identifier: Apache-2.0

package vmlinux_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// A kernel's own symbol table names its code.
func ExampleRead() {
	image := fakekernel.Make("offsets-last").Data
	k, err := vmlinux.Read("Image", bytes.NewReader(image), int64(len(image)))
	if err != nil {
		log.Fatal(err)
	}
	at, _ := k.Addr("function_00007")
	symbol, offset, _ := k.Symbol(at + 12)
	fmt.Printf("%s: %s+%d of %d symbols\n", k.Release, symbol.Name, offset, len(k.All))
	// Output:
	// 9.9.9-synthetic: function_00007+12 of 20021 symbols
}
