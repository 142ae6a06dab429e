// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/records"
)

// The call sites of a real kernel, and those that a filter in the kernel's own syntax
// chooses.
func Example() {
	table, err := records.Open(context.Background(), "x86_64-6.12", records.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	filter, err := records.ParseFilter([]string{"vfs_read*", "!vfs_readv"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Len(), "records in", len(table.Groups()), "groups")
	for _, i := range filter.Match(table) {
		fmt.Println(table.Symbol(i))
	}
	// Output:
	// 42757 records in 3 groups
	// vfs_read
	// vfs_readlink
}
