// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"
	"strings"
	"testing"
)

// explained are sentences of x86_64's protocol without which a property does not follow.
var explained = map[string]string{
	"batch-there": "use-after-free", "released": "use-after-free", "whole-pointers": "torn-literal",
	"answered": "conservation", "no-handler-left": "count-overwritten",
	"never-looks-whether-the-breakpoint-is-still-there": "unhandled-breakpoint",
}

// TestExplain: properties follow from at most thirty sentences, each of which holds of every
// view; of x86_64's protocol all of them do.
func TestExplain(t *testing.T) {
	z3 := solver(t, "z3")
	for arch, whole := range map[string]string{"x86_64": "", "arm64": "broken-site", "riscv64": "broken-site"} {
		p := closed(t, setup(t, arch, "native", ""))
		o, err := p.Explain(t.Context(), z3)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.Whole, " "); got != whole || len(o.Sentences) > 30 || len(o.Sentences) < 10 {
			t.Errorf("%s: %d sentences, and %q by all views; want %q", arch, len(o.Sentences), got, whole)
		}
		for _, x := range o.Sentences {
			if slices.ContainsFunc(p.closure.views, x.denies) {
				t.Errorf("%s: some view denies %s", arch, x.Name)
			}
			if want := explained[x.Name]; arch == "x86_64" && want != "" && !slices.Contains(x.Used, want) {
				t.Errorf("%s is used for %v, want %s", x.Name, x.Used, want)
			}
		}
	}
}

// TestExplainTheProtocol: between the second round and the third a CPU can fetch the breakpoint
// before the new tail, or the new text.
func TestExplainTheProtocol(t *testing.T) {
	o, err := closed(t, setup(t, "x86_64", "native", "")).Explain(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Publish": "the old text", "Sync 1": "the old text; cc 1f 44 00 00",
		"Sync 2": "cc 1f 44 00 00; cc f7 ff fe ff", "Sync 3": "cc f7 ff fe ff; the new text", "Unpublish": "the new text",
	}
	for _, st := range o.Steps {
		if w, ok := want[st.Name]; ok && strings.Join(st.Fetch, "; ") != w {
			t.Errorf("%s: %v, want %s", st.Name, st.Fetch, w)
		}
		delete(want, st.Name)
	}
	if len(want) > 0 {
		t.Errorf("no step %v", want)
	}
	if text := o.String(); !strings.Contains(text,
		"CPUs can fetch cc 1f 44 00 00 from Write breakpoint to Sync 2, and nowhere else.") {
		t.Errorf("not said:\n%s", text)
	}
}

// TestSentencesMatter: a sentence that some view denies is left out, and what follows from it
// then takes all views.
func TestSentencesMatter(t *testing.T) {
	z3 := solver(t, "z3")
	p := closed(t, setup(t, "x86_64", "native", ""))
	v := p.closure.views[0]
	_, broken := p.closure.allSteps()
	for _, n := range broken {
		if n.name == "unhandled-breakpoint" {
			v[does] = n.branches[0].when[0].any[0].in.list(maxValues)[0]
		}
	}
	more := *p.closure
	more.views = append(slices.Clone(more.views), v)
	o, err := (&Proof{closure: &more}).Explain(t.Context(), z3)
	if err != nil || !slices.Equal(o.Whole, []string{"unhandled-breakpoint"}) {
		t.Errorf("by all views %v, error %v", o.Whole, err)
	}
}
