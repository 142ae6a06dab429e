// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"bytes"
	"slices"

	"github.com/textpoke/textpoke/kernels/record"
)

// token is a step of a batch in a plan's words, and the site that it is about; -1 for none.
type token struct {
	does string
	site int
}

// The words.
const (
	breakpoint = "Write breakpoint"
	tail       = "Write tail"
	head       = "Write head"
	word       = "Write word"
	literal    = "Write literal"
	sync       = "Sync"
	publish    = "Publish"
	unpublish  = "Unpublish"
	stop       = "StopMachine"
	resume     = "Resume"
)

var others = map[record.Kind]string{record.Round: sync, record.Publish: publish, record.Unpublish: unpublish,
	record.Stop: stop, record.Resume: resume}

// tokens are a batch's steps. trap is a breakpoint's bytes. ok is false where a store is about no site: a later one took
// its place.
func tokens(r *record.Recording, b *record.Batch, trap []byte) (out []token, ok bool) {
	trapped, stored := map[int]bool{}, map[int]bool{}
	for _, i := range b.Steps {
		s := &r.Steps[i]
		if does, ok := others[s.Kind]; ok {
			if t := (token{does, -1}); len(out) == 0 || out[len(out)-1] != t || does == sync {
				out = append(out, t)
			}
		}
		if s.Kind != record.Store {
			continue
		}
		site := -1 // of one that changes twice, in a stopped machine, the second follows the first
		for n := range b.Sites {
			if t := &b.Sites[n]; (within(t, s.At) || within(t.Literal, s.At)) && (site < 0 || stored[site] && !stored[n]) {
				site = n
			}
		}
		if site < 0 {
			return nil, false
		}
		stored[site] = true
		t := token{word, site}
		switch of := &b.Sites[site]; {
		case within(of.Literal, s.At):
			t.does = literal
		case s.At > of.Addr:
			t.does = tail
		case bytes.Equal(s.New, trap) && len(s.New) <= len(of.New):
			t.does, trapped[site] = breakpoint, true
		case trapped[site] && len(s.New) == len(trap):
			t.does = head
		}
		out = append(out, t)
	}
	return out, true
}

func within(s *record.Site, at uint64) bool {
	return s != nil && at >= s.Addr && at < s.Addr+uint64(len(s.New))
}

// shape is the common shape of batches: the steps before all sites, for each site, and behind.
type shape struct {
	loop                bool
	before, each, after []string // without a loop all is in before
}

func (s shape) equal(t shape) bool {
	return s.loop == t.loop && slices.Equal(s.before, t.before) && slices.Equal(s.each, t.each) &&
		slices.Equal(s.after, t.after)
}

// phases folds a batch that goes through its sites in phases: each kind of store comes once, for sites in their order.
func phases(list []token) (s shape, ok bool) {
	last := token{"", -1}
	for _, t := range list {
		if t.site >= 0 && t.does == last.does {
			if t.site <= last.site {
				return s, false
			}
			last = t
			continue
		}
		if t.site >= 0 && slices.Contains(s.before, t.does) {
			return s, false
		}
		s.before, last = append(s.before, t.does), t
	}
	return s, true
}

// loop folds a batch that goes from site to site, and stores something. Of what follows the last site, as much belongs
// to it as follows the others. The longest turn stands for all: a turn may lack what depends on the site.
func loop(list []token, sites int) (s shape, ok bool) {
	s.loop = true
	for list[0].site < 0 {
		s.before, list = append(s.before, list[0].does), list[1:]
	}
	var turns [][]string
	site := -1
	for _, t := range list {
		if t.site >= 0 && t.site != site {
			if t.site != len(turns) {
				return s, false
			}
			turns, site = append(turns, nil), t.site
		}
		turns[site] = append(turns[site], t.does)
	}
	for _, turn := range turns[:len(turns)-1] {
		if len(turn) > len(s.each) {
			s.each = turn
		}
	}
	end := &turns[len(turns)-1]
	for n := range len(*end) + 1 {
		if part := (*end)[:len(*end)-n]; partOf(part, s.each) {
			s.after, *end = (*end)[len(*end)-n:], part
			break
		}
	}
	for _, turn := range turns {
		if !partOf(turn, s.each) {
			return s, false
		}
	}
	return s, len(turns) == sites
}

// partOf tells whether a turn is another one from which something may be missing.
func partOf(part, whole []string) bool {
	for _, does := range part {
		i := slices.Index(whole, does)
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}
