// SPDX-License-Identifier: Apache-2.0

package metadata_test

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// A global trampoline looks up what it must know of the function that called it.
func Example() {
	const function records.Addr = 0xffffffff81001040
	table, err := metadata.New(metadata.ResizableHash, metadata.Text{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := table.Set(&metadata.Record{Func: function, Args: 2, Image: "one program on entry"}); err != nil {
		fmt.Println(err)
		return
	}
	record := table.Lookup(function)
	fmt.Printf("%d arguments are saved, then %v\n", record.Args, record.Image)
	fmt.Println(table.Set(&metadata.Record{Func: function, Args: 13}))
	// Output:
	// 2 arguments are saved, then one program on entry
	// metadata of 0xffffffff81001040: 13 arguments: a trampoline saves 12 at most
}
