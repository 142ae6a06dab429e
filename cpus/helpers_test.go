// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The addresses of the two ops that tests use; they differ in both halves.
const (
	testNop    = 0xffff_8000_1111_2222
	testTracer = 0xffff_ffff_3333_4444
)

// noHandler has nothing published.
type noHandler struct{}

func (noHandler) Enter(int) bool                              { return false }
func (noHandler) Find(records.Addr, *Probe) (isa.Insn, Found) { return isa.Insn{}, NoEntry }
func (noHandler) Leave(int)                                   {}

// oneHandler has one address published, and counts its references.
type oneHandler struct {
	at   records.Addr
	act  isa.Insn
	refs int
}

func (h *oneHandler) Enter(int) bool { h.refs++; return true }
func (h *oneHandler) Leave(int)      { h.refs-- }
func (h *oneHandler) Find(at records.Addr, p *Probe) (isa.Insn, Found) {
	p.Comparisons++
	if at == h.at {
		return h.act, Hit
	}
	return h.act, NoEntry
}

// fixture is a machine with disabled sites, and the texts of each.
type fixture struct {
	*Machine
	code        *Code
	off, on, bp []isa.Text
}

func newFixture(t testing.TB, archName string, sites int, roles []Role, h Handler, fetch Fetch) *fixture {
	t.Helper()
	arch, err := ParseArch(archName)
	if err != nil {
		t.Fatal(err)
	}
	const base = 0xffffffff81000004
	code := &Code{Arch: arch, Traits: arch.Traits(), Fetch: fetch, Entry: 0xffffffff80ff0000}
	f := &fixture{code: code}
	for i := range sites {
		s, err := arch.Site(records.Addr(base)+records.Addr(64*i), isa.Word)
		if err != nil {
			t.Fatal(err)
		}
		on, _, err := arch.Enabled(s, isa.Destination{Target: code.Entry, Entry: code.Entry})
		if err != nil {
			t.Fatal(err)
		}
		code.Sites, code.Len = append(code.Sites, s.Addr), int(s.Len)
		f.off, f.on = append(f.off, arch.Disabled(s)), append(f.on, on)
		f.bp = append(f.bp, arch.Disabled(s).Splice(0, code.Traits.BreakpointLen, arch.Breakpoint()))
	}
	f.Machine, err = NewMachine(Config{
		Code: code, Roles: roles, Handler: h, NopOps: testNop, Seed: 1, Senders: 3,
		Initial: func(i int) isa.Text { return f.off[i] },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ops := range []uint64{testTracer, uint64(code.Entry)} {
		if err := f.AddOps(ops); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// busy is so many busy CPUs.
func busy(n int) []Role { return make([]Role, n) }

// script is a Chooser that answers from a list, then 0.
type script struct {
	answers []int
	asked   []int // how many answers each question had
}

func (s *script) Choose(_ Choice, n int) int {
	s.asked = append(s.asked, n)
	if len(s.answers) == 0 {
		return 0
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a
}

// everyAnswer calls f with a Chooser for every sequence of answers there is.
func everyAnswer(f func(ch Chooser)) {
	var prefix []int
	for {
		s := &script{answers: append([]int(nil), prefix...)}
		f(s)
		for len(prefix) < len(s.asked) {
			prefix = append(prefix, 0)
		}
		i := len(prefix) - 1
		for ; i >= 0; i-- {
			if prefix[i]++; prefix[i] < s.asked[i] {
				break
			}
		}
		if i < 0 {
			return
		}
		prefix = prefix[:i+1]
	}
}

// steps makes n steps of a CPU by hand.
func (f *fixture) steps(c *CPU, ch Chooser, pad *Scratchpad, n int) (events []Event) {
	for range n {
		if e := Step(c, f.code, f.Machine, ch, pad); e != Nothing {
			events = append(events, e)
		}
	}
	return events
}
