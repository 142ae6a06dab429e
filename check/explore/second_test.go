// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// sights are what of the states both machines can say: the sites' texts and promises, and what
// each CPU is about and may fetch.
func (s *littleSearch) sights() map[string]bool {
	out := map[string]bool{}
	for m := range s.seen {
		var b strings.Builder
		for site := range s.sites {
			fmt.Fprintf(&b, "%s %v; ", bytesOf[m.text[site]], m.promised[site] != 0)
		}
		for i := range s.cpus {
			c := &m.cpu[i]
			at, about := c.at, c.site
			if at == "again" || at == "out" {
				at, about = "out", 0
			}
			fmt.Fprintf(&b, "%s %d ref %d", at, about, c.ref)
			for site := range s.sites {
				var texts []string
				for t, bytes := range bytesOf {
					if c.sees[site]>>t&1 != 0 {
						texts = append(texts, bytes)
					}
				}
				slices.Sort(texts)
				fmt.Fprintf(&b, " %q", texts)
			}
			b.WriteString("; ")
		}
		out[b.String()] = true
	}
	return out
}

// littleBytes says of five bytes what bytesOf says.
func littleBytes(text string) string {
	head, tail := text[:2], " xx"
	if strings.HasPrefix(text[3:], "1f") {
		tail = " 1f"
	}
	return head + tail
}

// sightsOf are the same of the checker's states.
func sightsOf(t *testing.T, m *Model) map[string]bool {
	full, err := newSearch(m, Options{Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := full.run(t.Context()); err != nil || r.Verdict != Safe {
		t.Fatal(r, err)
	}
	names := map[cpus.Phase]string{cpus.Trapped: "trapped", cpus.Searching: "searching", cpus.Leaving: "leaving",
		cpus.Returning: "returning", cpus.Missed: "missed", cpus.Retrying: "retrying"}
	out, w := map[string]bool{}, newWorld(m)
	err = full.seen.each(func(_ uint64, words []uint64) error {
		w.unpack(words)
		var b strings.Builder
		for site := range m.Code.Sites {
			fmt.Fprintf(&b, "%s %v; ", littleBytes(w.Peek(site).Format(5)), w.settled[site].Seq() != 0)
		}
		for i := range m.Roles {
			c := &w.cpu[i]
			at, about := "out", int32(0)
			if name := names[c.Phase]; name != "" {
				at, about = name, c.Site
			}
			fmt.Fprintf(&b, "%s %d ref %d", at, about, w.refs[i])
			for site := range m.Code.Sites {
				var texts []string
				window, _ := w.Window(site, c.Synced, nil)
				for _, v := range window {
					texts = append(texts, littleBytes(v.Text.Format(5)))
				}
				slices.Sort(texts)
				fmt.Fprintf(&b, " %q", slices.Compact(texts))
			}
			b.WriteString("; ")
		}
		out[b.String()] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSecondOpinion: two machines that share no line of code agree on what is safe, on
// what breaks, and, where nothing does, on all that can be seen of a state. How many states
// they have differs, since each tells other things apart: 164 by hand and 447 of the checker
// with one site, 1,431 and 4,035 with two. A third checker, which somebody else wrote for
// this protocol, closes at 484 and 4,734: near the checker's, and equal to neither.
func TestSecondOpinion(t *testing.T) {
	t.Parallel()
	for sites := 1; sites <= 2; sites++ {
		for mutation := range mutated {
			s := setup(t, "x86_64", "breakpoint", mutation, 2, sites)
			s.Workload = Endless
			want := newLittleSearch(mutation, sites, 2)
			verdict := Safe
			if len(want.broken) > 0 {
				verdict = Unsafe
			}
			got := explore(t, s, Options{})
			if got.Verdict != verdict || verdict == Unsafe && !want.broken[string(got.Violation.Property)] {
				t.Errorf("%d sites, %q: %s %v, the other says %s %v", sites, mutation, got.Verdict, got.Violation, verdict,
					slices.Collect(maps.Keys(want.broken)))
			}
			if verdict == Unsafe {
				continue
			}
			m, err := s.Model()
			if err != nil {
				t.Fatal(err)
			}
			a, b := want.sights(), sightsOf(t, m)
			t.Logf("%d sites: %d states here, %d there, %d sights", sites, len(want.seen), got.States, len(a))
			for sight := range a {
				if !b[sight] {
					t.Fatalf("%d sites: the checker never sees %s", sites, sight)
				}
			}
			for sight := range b {
				if !a[sight] {
					t.Fatalf("%d sites: only the checker sees %s", sites, sight)
				}
			}
		}
	}
}
