// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// tape is a Shared that answers at random and notes what it was asked.
type tape struct {
	pair  bool // sites are pairs
	half  bool // and one of them is executed already
	t     *rapid.T
	text  map[string]isa.Text
	ops   []uint64
	log   []string
	noted struct{ literal, peek, find, outcome, enter, leftOut []int } // the answers, for the twin
}

func (s *tape) note(what string, answers *[]int, n int) int {
	s.log = append(s.log, what)
	if answers == nil {
		return 0
	}
	a := rapid.IntRange(0, n-1).Draw(s.t, what)
	*answers = append(*answers, a)
	return a
}

var fetchable = []string{"nop", "call", "other", "breakpoint"}

func (s *tape) Window(_ int, _ Seq, buf []Version) ([]Version, Promise) {
	text := 0
	if s.half { // the same pair, as long as nobody stores
		text = s.noted.peek[len(s.noted.peek)-1]
		s.log, s.noted.peek = append(s.log, "fetch"), append(s.noted.peek, text)
	} else {
		text = s.note("fetch", &s.noted.peek, 4)
	}
	s.half = s.pair && !s.half && fetchable[text] != "breakpoint"
	return append(buf[:0], Version{Seq: 1, Text: s.text[fetchable[text]]}), 0
}
func (s *tape) Peek(int) isa.Text {
	return s.text[[]string{"nop", "breakpoint"}[s.note("peek", &s.noted.peek, 2)]]
}
func (s *tape) Seq() Seq { s.note("seq", nil, 0); return 1 }
func (s *tape) Changing(int) Change {
	found := []string{"nop", "call", "other"}[s.noted.find[len(s.noted.find)-1]]
	return Change{From: s.text["nop"], To: s.text[found]}
}
func (s *tape) Settled(int) Promise { return 0 }
func (s *tape) Literal(int) uint64  { return s.ops[s.note("literal", &s.noted.literal, len(s.ops))] }
func (s *tape) CallOps(uint64) Outcome {
	return Outcome(s.note("call", &s.noted.outcome, 2))
}
func (s *tape) Pending(_ int, masked bool) bool {
	if !masked { // where rounds get through masks this is asked too
		s.note("pending", nil, 0)
	}
	return false
}
func (s *tape) Take(int, bool) (Taken, bool) { return Taken{}, false }
func (s *tape) Answer(Ticket)                {}
func (s *tape) EnterKernel(int) Space {
	if s.note("enter kernel", &s.noted.leftOut, 2) == 1 {
		return InUser | owes
	}
	return InUser
}
func (s *tape) LeaveKernel(int)  { s.note("leave kernel", nil, 0) }
func (s *tape) Arrive(int)       {}
func (s *tape) BringUp(int) bool { s.note("bring up", nil, 0); return true }
func (s *tape) ComeOnline(int)   { s.note("come online", nil, 0) }
func (s *tape) TakeDown(int) bool {
	s.note("take down", nil, 0)
	return true
}
func (s *tape) EndHotplug(int)   { s.note("end hotplug", nil, 0) }
func (s *tape) Resumed(int) bool { s.note("resumed", nil, 0); return true }
func (s *tape) Enter(int) bool   { return s.note("take reference", &s.noted.enter, 2) == 1 }
func (s *tape) Leave(int)        { s.note("give back", nil, 0) }
func (s *tape) Find(records.Addr, *Probe) (isa.Insn, Found) {
	call := func(i int) isa.Insn { return isa.Insn{Kind: isa.Call, Target: records.Addr(s.ops[i])} }
	acts := []isa.Insn{{Kind: isa.Nop}, call(0), call(1), {}}
	a := s.note("look up", &s.noted.find, 4)
	return acts[a], map[bool]Found{true: Hit}[a < 3]
}

// texts are what a fetch can give.
func texts(t *rapid.T, code *Code, pair bool) map[string]isa.Text {
	code.Layout = map[bool]isa.Layout{true: isa.Pair}[pair]
	site, err := code.Arch.Site(0xffffffff81000004, code.Layout)
	if err != nil {
		t.Fatal(err)
	}
	code.Len, code.Sites = int(site.Len), []records.Addr{site.Addr}
	out := map[string]isa.Text{"nop": code.Arch.Disabled(site)}
	for name, target := range map[string]records.Addr{"call": code.Entry, "other": code.Entry + 4096} {
		out[name], _, err = code.Arch.Enabled(site, isa.Destination{Target: target, Entry: target})
		if err != nil {
			t.Fatal(err)
		}
	}
	out["breakpoint"] = out["nop"].Splice(0, code.Traits.BreakpointLen, code.Arch.Breakpoint())
	return out
}
