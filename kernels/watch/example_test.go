// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/textpoke/textpoke/kernels/watch"
	"github.com/textpoke/textpoke/results/interrupts"
)

// Two readings of /proc/interrupts tell how many rounds there were between them, and who
// sent them: a sender does not interrupt itself.
func ExampleWatcher() {
	var w watch.Watcher
	for i, text := range []string{
		"     CPU0 CPU1 CPU2\nCAL:   10   10   10  Function call interrupts\n",
		"     CPU0 CPU1 CPU2\nCAL:   40   10   40  Function call interrupts\n",
	} {
		s, err := interrupts.Parse("reading", strings.NewReader(text))
		if err != nil {
			log.Fatal(err)
		}
		rows, err := w.Next(s, time.Duration(i)*time.Second, time.Second)
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range rows {
			fmt.Println(strings.TrimSpace(r.Sentence()))
		}
	}
	// Output:
	// 1.000 s  CAL: 30 rounds by CPU 1; 30 on CPU 0
}
