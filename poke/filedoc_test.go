// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestPlanFilesDoc holds the pages about plan files: their examples can be read and
// do what they should, and every word of the format is explained in the reference.
func TestPlanFilesDoc(t *testing.T) {
	doc := ""
	for _, page := range []string{"plan-files.md", "plan-file-reference.md"} {
		b, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		doc += string(b)
	}
	examples := map[string]*Protocol{}
	for _, m := range regexp.MustCompile("(?s)```plan\n(.*?)```").FindAllStringSubmatch(doc, -1) {
		p := parse(t, "plan-files.md", []byte(m[1]))
		examples[p.Name] = p
	}
	for name, built := range map[string]string{"mine": "breakpoint", "breakpoint": "breakpoint", "word": "word"} {
		p := examples[name]
		if p == nil {
			t.Fatalf("no example %s", name)
		}
		for _, arch := range cpus.ArchNames() {
			s := shapeOf(t, arch, p, 7, false)
			if name == "mine" && !s.Tail() {
				continue
			}
			want, err := planOf(Named(built, s.Traits), s)
			if got, gotErr := planOf(p, s); err != nil || gotErr != nil || !slices.Equal(got, want) {
				t.Errorf("%s on %s: %v, %v: %v", name, arch, err, gotErr, got)
			}
		}
	}
	_, format, _ := strings.Cut(doc, "## What a file says")
	words := slices.Concat(headerNames, batchingNames, layoutNames, locksNames, stepNames, partNames[:], mutexNames[:],
		conditionWords(), allSections(),
		[]string{loopBegins, loopEnds, ifWord, andWord, notWord, lazyWord})
	for i := range cpus.NumSections {
		for _, step := range cpus.StepsOf(cpus.Section(i)) {
			words = append(words, step.String())
		}
	}
	for _, w := range words {
		if !regexp.MustCompile("`([^`\n]* )?" + regexp.QuoteMeta(w) + "[: `]").MatchString(format) {
			t.Errorf("%s is not explained", w)
		}
	}
}
