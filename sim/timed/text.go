package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// text is the text of all sites, with the stores of the update that is under way.
type text struct {
	sites []site
	log   []store // the i-th is at position first+i
	first cpus.Seq
}

// site is one site as it was before the update, and where its last store is.
type site struct {
	base    isa.Text
	since   cpus.Seq // position of base
	settled cpus.Promise
	literal uint64
	head    int32 // its last store, plus 1; 0 for none
}

// store is one store to a site, and the text that it left.
type store struct {
	at    Nanos
	text  isa.Text
	older int32 // the store before it to the same site, plus 1
	site  int32
}

func newText(n int, initial func(i int) isa.Text, literal uint64) text {
	t := text{sites: make([]site, n), first: 2}
	for i := range t.sites {
		t.sites[i] = site{base: initial(i), since: 1, literal: literal}
	}
	return t
}

// seq is the position of the last store.
func (t *text) seq() cpus.Seq { return t.first + cpus.Seq(len(t.log)) - 1 }

// peek is what is there.
func (t *text) peek(i int) isa.Text {
	s := &t.sites[i]
	if s.head == 0 {
		return s.base
	}
	return t.log[s.head-1].text
}

// version is what is there, and since which position.
func (t *text) version(i int) cpus.Version {
	s := &t.sites[i]
	if s.head == 0 {
		return cpus.Version{Seq: s.since, Text: s.base}
	}
	return t.at(s.head)
}

// at is the version that the store before n left.
func (t *text) at(n int32) cpus.Version {
	return cpus.Version{Seq: t.first + cpus.Seq(n) - 1, Text: t.log[n-1].text}
}

// write stores n bytes.
func (t *text) write(at Nanos, i, off, n int, text isa.Text) {
	s := &t.sites[i]
	t.log = append(t.log, store{at: at, text: t.peek(i).Splice(off, n, text), older: s.head, site: int32(i)})
	s.head = int32(len(t.log))
}

// window is what may be fetched by a CPU that synchronised at synced and sees every
// store that is older than since, the newest first.
func (t *text) window(i int, synced cpus.Seq, since Nanos, buf []cpus.Version) []cpus.Version {
	s := &t.sites[i]
	buf = buf[:0]
	for n := s.head; n != 0; n = t.log[n-1].older {
		v := t.at(n)
		buf = append(buf, v)
		if v.Seq <= synced || t.log[n-1].at <= since {
			return buf
		}
	}
	return append(buf, cpus.Version{Seq: s.since, Text: s.base})
}

// settle promises what is there; see cpus.Text.Settle.
func (t *text) settle(i int, want isa.Text) {
	v := t.version(i)
	if v.Text != want {
		v.Seq = t.seq() + 1
	}
	t.sites[i].settled = t.sites[i].settled.With(v.Seq)
}

// forget makes what is there the text from before the next update: nobody can
// fetch anything older any more.
func (t *text) forget() {
	for n, st := range t.log {
		if s := &t.sites[st.site]; s.head == int32(n+1) {
			v := t.at(s.head)
			s.base, s.since, s.head = v.Text, v.Seq, 0
		}
	}
	t.first += cpus.Seq(len(t.log))
	t.log = t.log[:0]
}
