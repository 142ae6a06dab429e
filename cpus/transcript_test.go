// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/textpoke/textpoke/cpus/isa"
)

// TestTranscripts plays testdata/transcripts/*.txt on a machine in lockstep, command
// by command, and compares what CPUs do with what stands there:
//
//	machine arch=A cpus=ROLES [fetch=F]  a machine with one disabled site
//	step cpu=N [times=K] [answers=(A,B)] steps of a CPU; answers are to its choices, then 0
//	store breakpoint|tail|head|enabled   the patcher's next store to the site
//	publish, unpublish                   the handler's entry: act as the enabled site
//	round [lazy], stop, resume           what CPU 0's patcher asks of the others
//	answered                             whether the last round is over
//	window cpu=N                         what the CPU may fetch from the site
//
// go test ./cpus -run Transcripts -rewrite writes the outputs anew: read them.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var s *stage
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "machine" {
				s = newStage(t, d)
				return ""
			}
			return s.do(t, d)
		})
	})
}

// stage is the machine of one transcript.
type stage struct {
	*fixture
	lock    *Lockstep
	handler *published
}

// published answers handlers while an entry is there.
type published struct {
	oneHandler
	there bool
}

func (p *published) Enter(cpu int) bool { return p.there && p.oneHandler.Enter(cpu) }

func newStage(t *testing.T, d *datadriven.TestData) *stage {
	arch, fetch, roles := "x86_64", "weak", "2"
	d.MaybeScanArgs(t, "arch", &arch)
	d.MaybeScanArgs(t, "fetch", &fetch)
	d.ScanArgs(t, "cpus", &roles)
	f, err := ParseFetch(fetch)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	all, err := ParseRoles(roles)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	h := &published{}
	s := &stage{fixture: newFixture(t, arch, 1, all, h, f), handler: h}
	h.at = s.code.Sites[0]
	h.act = s.code.Arch.Decode(h.at, s.on[0], s.code.Arch.Scratch(isa.Site{Addr: h.at, Len: uint8(s.code.Len)},
		s.code.Entry))
	s.SetOps(uint64(s.code.Entry), CalledTracer)
	s.SetOps(testTracer, CalledTracer)
	s.lock = s.Lockstep()
	return s
}

func (s *stage) do(t *testing.T, d *datadriven.TestData) string {
	n := s.code.Traits.BreakpointLen
	switch d.Cmd {
	case "step":
		return s.step(t, d)
	case "store":
		part := d.CmdArgs[0].Key
		switch part {
		case "breakpoint":
			s.Store(0, 0, n, s.code.Arch.Breakpoint())
		case "tail":
			s.Store(0, n, s.code.Len-n, s.on[0].Slice(n, s.code.Len-n))
		case "head":
			s.Store(0, 0, n, s.on[0])
		case "enabled":
			s.Store(0, 0, s.code.Len, s.on[0])
		default:
			d.Fatalf(t, "part %s: not one of breakpoint, tail, head, enabled", part)
		}
		return fmt.Sprintf("site holds %s since %d", s.Peek(0).Format(s.code.Len), s.Seq())
	case "publish", "unpublish":
		s.handler.there = d.Cmd == "publish"
		return ""
	case "round":
		return fmt.Sprintf("%d CPUs are interrupted", s.Sender(0).Send(0, Sync, d.HasArg("lazy")))
	case "stop":
		return fmt.Sprintf("asked: %t", s.Sender(0).StopMachine(0, false))
	case "resume":
		s.Sender(0).ResumeMachine()
		return ""
	case "answered":
		return fmt.Sprint(s.Sender(0).Answered())
	case "window":
		return s.window(t, d)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

// step makes steps of a CPU and says, for each, what the CPU did and what it is now.
func (s *stage) step(t *testing.T, d *datadriven.TestData) string {
	cpu, times := 1, 1
	var answers []int
	d.MaybeScanArgs(t, "cpu", &cpu)
	d.MaybeScanArgs(t, "times", &times)
	if a, ok := d.Arg("answers"); ok {
		for i := range a.Vals {
			var n int
			a.Scan(t, i, &n)
			answers = append(answers, n)
		}
	}
	ch := &script{answers: answers}
	var b strings.Builder
	for range times {
		before := s.lock.CPU(cpu)
		does := before.Phase.Does()
		if before.AtBorder() && !before.Polled() {
			does = "looks for interrupts"
		}
		event := s.lock.Step(cpu, ch)
		after := s.lock.CPU(cpu)
		fmt.Fprintf(&b, "cpu %d %s", cpu, does)
		if event != Nothing {
			fmt.Fprintf(&b, ": %s", event)
		}
		fmt.Fprintf(&b, " -> %s, synchronised at %d\n", after.Phase, after.Synced)
		if total, found := s.Violations(); int(total) > 0 && event == Broken {
			fmt.Fprintf(&b, "  %s\n", found[total-1])
		}
	}
	return b.String()
}

// window is what a CPU may fetch, the newest first.
func (s *stage) window(t *testing.T, d *datadriven.TestData) string {
	var cpu int
	d.ScanArgs(t, "cpu", &cpu)
	versions, _ := s.Window(0, s.lock.CPU(cpu).Synced, nil)
	var b strings.Builder
	for _, v := range versions {
		fmt.Fprintf(&b, "%s since %d\n", v.Text.Format(s.code.Len), v.Seq)
	}
	return b.String()
}
