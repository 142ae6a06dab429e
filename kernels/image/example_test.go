// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// An image tells which call sites its kernel can patch, and how. [image.Open] takes the file
// that a machine boots.
func ExampleOf() {
	vmlinuz := fakekernel.Make("offsets-last").Data // os.ReadFile("/boot/vmlinuz-6.12")
	linked, err := vmlinux.Read("vmlinuz", bytes.NewReader(vmlinuz), int64(len(vmlinuz)))
	if err != nil {
		log.Fatal(err)
	}
	k := image.Of(linked)
	fmt.Println(k.Release, k.Arch.Name, "packed as", k.Form)
	fmt.Println(len(k.Records.Sites), "records,", k.Records.Init, "in code that is thrown away after boot")
	for _, tp := range k.Tracepoints() {
		fmt.Println("tracepoint", tp.Name, "has", len(k.Keys.Branches[tp.Key]), "branches")
	}
	// Output:
	// 9.9.9-synthetic riscv64 packed as Image
	// 2 records, 1 in code that is thrown away after boot
	// tracepoint a_point has 2 branches
}
