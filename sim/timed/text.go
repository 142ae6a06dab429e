// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// text is the text of all sites, with the stores of the update that is under way.
type text struct {
	sites    []site
	stored   []int32       // by site: its last store, plus 1; 0 for none
	literals []uint64      // by site
	changes  []cpus.Change // by site: the update begun last
	log      []store       // the i-th is at position first+i
	first    cpus.Seq
}

// site is what is there: all that most fetches need, in half a cache line.
type site struct {
	is      cpus.Version
	at      Nanos // when that was stored
	settled cpus.Promise
}

// longAgo is when the text from before the update was stored.
const longAgo Nanos = math.MinInt64 / 2

// store is one store to a site, and what it replaced.
type store struct {
	at    Nanos
	was   cpus.Version
	older int32 // the store before it to the same site, plus 1
	site  int32
}

func newText(n int, initial func(i int) isa.Text, literal uint64) text {
	t := text{
		sites:    make([]site, n),
		stored:   make([]int32, n),
		literals: make([]uint64, n),
		changes:  make([]cpus.Change, n),
		first:    2,
	}
	for i := range t.sites {
		t.sites[i] = site{is: cpus.Version{Seq: 1, Text: initial(i)}, at: longAgo}
		t.literals[i] = literal
	}
	return t
}

// seq is the position of the last store.
func (t *text) seq() cpus.Seq { return t.first + cpus.Seq(len(t.log)) - 1 }

// peek is what is there.
func (t *text) peek(i int) isa.Text { return t.sites[i].is.Text }

// write stores n bytes.
func (t *text) write(at Nanos, i, off, n int, text isa.Text) {
	s := &t.sites[i]
	t.log = append(t.log, store{at: at, was: s.is, older: t.stored[i], site: int32(i)})
	t.stored[i] = int32(len(t.log))
	s.is, s.at = cpus.Version{Seq: t.seq(), Text: s.is.Text.Splice(off, n, text)}, at
}

// window is what may be fetched by a CPU that synchronised at synced and sees every
// store that is older than since, the newest first.
func (t *text) window(i int, synced cpus.Seq, since Nanos, buf []cpus.Version) []cpus.Version {
	s := &t.sites[i]
	buf = append(buf[:0], s.is)
	at := s.at
	for n := t.stored[i]; at > since && buf[len(buf)-1].Seq > synced; {
		st := &t.log[n-1]
		buf = append(buf, st.was)
		if n, at = st.older, longAgo; n != 0 {
			at = t.log[n-1].at
		}
	}
	return buf
}

// settle promises what is there.
func (t *text) settle(i int, want isa.Text) {
	s := &t.sites[i]
	s.settled = s.settled.Of(s.is, want, t.seq())
}

// forget makes the present text the oldest: no CPU can fetch an earlier version any more.
func (t *text) forget() {
	for _, st := range t.log {
		t.sites[st.site].at, t.stored[st.site] = longAgo, 0
	}
	t.first += cpus.Seq(len(t.log))
	t.log = t.log[:0]
}
