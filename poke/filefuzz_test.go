// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
)

// FuzzParseProtocol: no text makes the parser panic, errors are one line that
// names the file, what is read twice is the same, and whatever compiles gives
// back what it takes.
func FuzzParseProtocol(f *testing.F) {
	for _, sh := range ShippedPlans() {
		f.Add(sh.Text)
	}
	f.Add(
		[]byte(
			"name: x\r\nevery batch:\n for each patch\nMap\nWrite word if not tail and literal\nend\nonce after:\nLock " +
				"text_mutex\nUnlock text_mutex",
		),
	)
	f.Add([]byte("\ufeffname: \xff"))
	f.Add(
		[]byte(
			"name: both\nevery batch:\nPublish\nWrite breakpoint\nUnpublish\nWaitHandlers\nonce after:\nWrite " +
				"word\n" + DefaultPath() +
				"entry:\ncall a site\nenter\ncatch up",
		),
	)
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := ParseProtocol("f.plan", src)
		if err != nil {
			var wrong *PlanError
			if !errors.As(err, &wrong) || strings.ContainsAny(err.Error(), "\n\r") || !strings.HasPrefix(err.Error(),
				"f.plan:") || len(err.Error()) > 3*maxPlanLine {
				t.Errorf("error %q", err)
			}
			if n := strings.Count(string(src), "\n") + 1; wrong.Line < 1 || wrong.Line > n {
				t.Errorf("line %d of %d", wrong.Line, n)
			}
			return
		}
		again := parse(t, "f.plan", src)
		fits := 0
		for _, arch := range cpus.ArchNames() {
			s := shapeOf(t, arch, p, 3, true)
			plan, err := planOf(p, s)
			twice, err2 := planOf(again, s)
			if d := cmp.Diff(plan, twice); d != "" || (err == nil) != (err2 == nil) {
				t.Errorf("%s: read twice (-once +twice): %v, %v\n%s", arch, err, err2, d)
			}
			var impossible *ImpossibleError
			if err == nil || errors.As(err, &impossible) {
				fits++
				holdsPath(t, p, s)
			}
			p.Mutations(s)
			p.Settles(s)
			p.Lazy(s)
			if err == nil && len(Undo(plan, len(plan)-1, 0, s)) == 0 {
				t.Errorf("%s: nothing is taken back of %v", arch, plan)
			}
		}
		if fits == 0 {
			t.Error("accepted, and fits no instruction set")
		}
	})
}

func planOf(p *Protocol, s Shape) (plan []Step, err error) {
	err = p.Compile(s, cut(s.Patches, 2), func(st Step) { plan = append(plan, st) })
	return plan, err
}

// holdsPath: where a plan compiles its path does, and the path's text says all of it.
func holdsPath(t *testing.T, p *Protocol, s Shape) {
	path, err := p.Path(s)
	if err != nil {
		t.Errorf("the plan compiles, and its path does not: %v", err)
		return
	}
	var again cpus.Path
	if err := again.UnmarshalBinary([]byte(path.String())); err != nil || again != path {
		t.Errorf("path\n%s\nread again: %v\n%s", path, err, again)
	}
}
