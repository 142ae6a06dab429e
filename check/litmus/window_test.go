// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// machineOf is a real machine that nobody starts: one CPU, sites at the
// records, disabled. Nothing here traps, so that it has no handler.
func machineOf(t testing.TB, archName string, at ...records.Addr) (*cpus.Machine, *cpus.Code) {
	t.Helper()
	arch, err := cpus.ParseArch(archName)
	if err != nil {
		t.Fatal(err)
	}
	code := &cpus.Code{Arch: arch, Traits: arch.Traits(), Fetch: cpus.Weak, Entry: 0xffffffff80ff0000}
	off := isa.Text(0)
	for _, a := range at {
		s, err := arch.Site(a, isa.Word)
		if err != nil {
			t.Fatal(err)
		}
		code.Sites, code.Len, off = append(code.Sites, s.Addr), int(s.Len), arch.Disabled(s)
	}
	m, err := cpus.NewMachine(cpus.Config{
		Code: code, Roles: []cpus.Role{cpus.Busy}, Initial: func(int) isa.Text { return off },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, code
}

// TestWindowsAreThoseOfCPUs compares the window of this package with that of the
// machine's text, store by store.
func TestWindowsAreThoseOfCPUs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, code := machineOf(t, "x86_64", 0xffffffff81000000, 0xffffffff81000040)
		test := &Test{sites: []site{{name: "a", initial: "00000"}, {name: "b", initial: "00000"}}}
		s := test.windowStart()
		for i := range test.sites {
			s.versions[i][0].Text = m.Peek(i)
		}
		for range rapid.IntRange(0, 20).Draw(rt, "steps") {
			site := rapid.IntRange(0, 1).Draw(rt, "site")
			switch cpu := rapid.IntRange(0, 1).Draw(rt, "cpu"); rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				if s.n[site] == maxVersions {
					continue
				}
				off := rapid.IntRange(0, code.Len-1).Draw(rt, "off")
				n := rapid.IntRange(1, code.Len-off).Draw(rt, "n")
				text := isa.Text(rapid.Uint64().Draw(rt, "text"))
				m.Store(site, off, n, text)
				s.store(site, off, n, text)
			case 1:
				s.synced[cpu] = m.Seq()
				if s.seq != m.Seq() {
					rt.Fatalf("position %d, the machine's is %d", s.seq, m.Seq())
				}
			case 2:
				window, _ := m.Window(site, s.synced[cpu], nil)
				var want []isa.Text
				for _, v := range window {
					want = append(want, v.Text)
				}
				if got := s.window(cpu, site); !slices.Equal(got, want) {
					rt.Fatalf("site %d, synchronised at %d: %v, the machine's window is %v", site, s.synced[cpu], got, want)
				}
			}
		}
	})
}

// script is a Chooser that answers from a list, then 0.
type script struct{ answers, asked []int }

func (s *script) Choose(_ cpus.Choice, n int) int {
	s.asked = append(s.asked, n)
	if len(s.asked) > len(s.answers) {
		return 0
	}
	return s.answers[len(s.asked)-1]
}

// TestMixIsThatOfStep: what one fetch may return from a window is what cpus.Step
// executes for some choice, on each instruction set, one store after another.
func TestMixIsThatOfStep(t *testing.T) {
	for _, c := range []struct {
		arch, class string
		fetch       cpus.Fetch
		at          records.Addr
		parts       int // of how many bytes
	}{
		{"x86_64", "intel", cpus.Weak, 0xffffffff81000004, 1},
		{"x86_64", "amd", cpus.Quadword, 0xffffffff81000003, 1},
		{"arm64", "arm(0,0)", cpus.Weak, 0xffffffff81000004, 4},
		{"riscv64", "rv(ziccif)", cpus.Weak, 0xffffffff81000004, 2},
	} {
		t.Run(c.class, func(t *testing.T) {
			m, code := machineOf(t, c.arch, c.at)
			code.Fetch = c.fetch
			s := &site{initial: "0", aligned: code.Len > c.parts}
			for range code.Len/c.parts - 1 {
				s.initial += "0"
			}
			on, _, err := code.Arch.Enabled(isa.Site{Addr: code.Sites[0], Len: uint8(code.Len)},
				isa.Destination{Target: code.Entry, Entry: code.Entry})
			if err != nil {
				t.Fatal(err)
			}
			off := m.Peek(0)
			m.Store(0, 0, code.Len, on)

			var want []isa.Text
			for _, text := range mix([]isa.Text{on, off}, 0, code.Len, called(c.class).window().whole(s)) {
				want = appendNew(want, text)
			}
			got := stepTexts(t, m, code, off, on)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("cpus.Step executes %x, the window model %x", got, want)
			}
		})
	}
}

// stepTexts is every text that a CPU which synchronised before the store may
// execute, by going through all sequences of choices.
func stepTexts(t *testing.T, m *cpus.Machine, code *cpus.Code, off, on isa.Text) (texts []isa.Text) {
	t.Helper()
	var prefix []int
	for {
		ch := &script{answers: prefix}
		texts = appendNew(texts, stepOnce(t, m, code, ch, off, on))
		for len(prefix) < len(ch.asked) {
			prefix = append(prefix, 0)
		}
		i := len(prefix) - 1
		for ; i >= 0; i-- {
			// Questions about other things than text have large ranges: how
			// long to stay in a trampoline.
			if prefix[i]++; prefix[i] < min(ch.asked[i], 2) {
				break
			}
		}
		if i < 0 {
			return texts
		}
		prefix = slices.Clone(prefix[:i+1])
	}
}

// stepOnce lets a CPU execute the site once and tells with which text.
func stepOnce(t *testing.T, m *cpus.Machine, code *cpus.Code, ch cpus.Chooser, off, on isa.Text) isa.Text {
	t.Helper()
	c, pad := cpus.CPU{Synced: 1}, cpus.NewScratchpad()
	for range 8 {
		event := cpus.Step(&c, code, m, ch, pad)
		switch {
		case pad.Found && pad.Violation.Property == cpus.TornFetch:
			var text isa.Text
			for i := range code.Len {
				b, err := strconv.ParseUint(pad.Violation.Bytes[3*i:3*i+2], 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				text = text.Splice(i, 1, isa.Text(b))
			}
			return text
		case event == cpus.Untraced:
			return off
		case c.Phase == cpus.Entered || c.Phase == cpus.Calling:
			return on
		}
	}
	t.Fatal("the CPU executes nothing")
	return 0
}

// TestWindowVerdicts: a handful by hand, of each kind of synchronisation.
func TestWindowVerdicts(t *testing.T) {
	const flag = "test t\nsite a 0\ndata f\nthread w\nstore a 1\n%\nwrite f 1\nthread c\nr = read f\n%\ns = exec " +
		"a\noutcome c:r=1 c:s=0\nexpect none "
	for _, c := range []struct {
		writer, reader, class string
		want                  Verdict
	}{
		{"", "", "arm(1,1)", Allowed},
		{"dsb", "dsb", "arm(1,1)", Allowed},
		{"", "isb", "arm(0,0)", Forbidden},
		{"isb", "", "arm(0,0)", Allowed},
		{"", "fence.i", "rv(plain)", Forbidden},
		{"", "fence", "rv(plain)", Allowed},
		{"", "serialise", "intel", Forbidden},
		{"", "lock", "amd", Allowed},
		{"ipi\nwait", "", "intel", Forbidden},
		{"ipi\nwait", "", "arm(0,1)", Forbidden},
		{"ipi", "", "rv(ziccif)", Allowed},
	} {
		test := parse(t, fill(flag, c.writer, c.reader)+c.class+"\n")
		f, err := newMachine(test, called(c.class).window()).search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := verdict(f.reached); got != c.want {
			t.Errorf("%s, want %s of\n%s", got, c.want, test)
		}
	}
}

// TestWindowTwin: by windows, a program can come out as in the slow twin and no other way.
func TestWindowTwin(t *testing.T) {
	for _, c := range classes {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				test := random(t, c.family)
				is, twin := outcomes(t, newMachine(test, c.window())), windowOutcomes(t, test, c)
				within(t, test, is, "the window model", twin, "its twin")
				within(t, test, twin, "the twin of the window model", is, "the model")
			})
		})
	}
}
