// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// TestWindow: a CPU may fetch every version from the one that was in force when it
// last synchronised, and no older one than what it must have seen by now. The twin
// keeps all versions of a site in a list.
func TestWindow(t *testing.T) {
	type version struct {
		cpus.Version
		at Nanos
	}
	rapid.Check(t, func(t *rapid.T) {
		const sites = 3
		txt := newText(sites, func(i int) isa.Text { return isa.Text(i) }, 0)
		var twin [sites][]version
		for i := range twin {
			twin[i] = []version{{cpus.Version{Seq: 1, Text: isa.Text(i)}, -1}}
		}
		now, seq := Nanos(0), cpus.Seq(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += Nanos(rapid.IntRange(0, 3).Draw(t, "later"))
			i := rapid.IntRange(0, sites-1).Draw(t, "site")
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0: // the next update: nobody can fetch what was
				txt.forget()
				for i := range twin {
					twin[i] = twin[i][len(twin[i])-1:]
					twin[i][0].at = -1
				}
			case 1, 2, 3:
				n := rapid.IntRange(1, 5).Draw(t, "bytes")
				off := rapid.IntRange(0, 5-n).Draw(t, "offset")
				store := isa.Text(rapid.Uint64().Draw(t, "text"))
				txt.write(now, i, off, n, store)
				seq++
				last := twin[i][len(twin[i])-1].Text
				twin[i] = append(twin[i], version{cpus.Version{Seq: seq, Text: last.Splice(off, n, store)}, now})
			default:
				synced := cpus.Seq(rapid.Uint64Range(1, uint64(seq)).Draw(t, "synced"))
				since := now - Nanos(rapid.IntRange(0, 20).Draw(t, "lag"))
				var want []cpus.Version
				for k := len(twin[i]) - 1; k >= 0; k-- {
					v := twin[i][k]
					want = append(want, v.Version)
					if v.Seq <= synced || v.at <= since && v.at >= 0 {
						break
					}
				}
				if got := txt.window(i, synced, since, nil); !slices.Equal(got, want) {
					t.Fatalf("window %v, want %v", got, want)
				}
			}
			if got, want := txt.peek(i), twin[i][len(twin[i])-1].Text; got != want {
				t.Fatalf("site %d holds %x, want %x", i, got, want)
			}
			if txt.seq() != seq {
				t.Fatalf("position %d, want %d", txt.seq(), seq)
			}
		}
	})
}
