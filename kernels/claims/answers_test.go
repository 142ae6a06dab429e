// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write answers.csv and the table of docs/claims.md")

const document = "../../docs/claims.md"

// answers is what trees have answered: releases in order, and by claim and release.
type answers struct {
	releases []string
	of       map[[2]string]string
}

func readAnswers() (answers, error) {
	a := answers{of: map[[2]string]string{}}
	b, err := os.ReadFile("answers.csv")
	if err != nil {
		return a, err
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		return a, err
	}
	a.releases = rows[0][1:]
	for _, r := range rows[1:] {
		for i, release := range a.releases {
			a.of[[2]string{r[0], release}] = r[i+1]
		}
	}
	return a, nil
}

func (a *answers) write(all []claim) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := [][]string{append([]string{"claim"}, a.releases...)}
	for _, c := range all {
		row := []string{c.name}
		for _, r := range a.releases {
			row = append(row, a.of[[2]string{c.name, r}])
		}
		rows = append(rows, row)
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile("answers.csv", b.Bytes(), 0o644)
}

// markdown is the table of the document.
func (a *answers) markdown(all []claim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| claim | says | releases | where | %s |\n|%s\n", strings.Join(a.releases, " | "),
		strings.Repeat("---|", 4+len(a.releases)))
	for _, c := range all {
		where := filepath.Base(c.file)
		if c.function != "" {
			where = c.function
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |", c.name, c.says, c.releases(), where)
		for _, r := range a.releases {
			fmt.Fprintf(&b, " %s |", a.of[[2]string{c.name, r}])
		}
		b.WriteByte('\n')
	}
	for _, answer := range []string{holds, absent, fails, cannotTell} {
		fmt.Fprintf(&b, "| | | | %s |", answer)
		for _, r := range a.releases {
			n := 0
			for _, c := range all {
				if a.of[[2]string{c.name, r}] == answer {
					n++
				}
			}
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestSource asks the trees of TEXTPOKE_SOURCE, and holds what they say against
// answers.csv, where it has their release.
func TestSource(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("TEXTPOKE_SOURCE"))
	if len(dirs) == 0 {
		t.Skip("TEXTPOKE_SOURCE names no kernel's source")
	}
	all := claims(t)
	known, err := readAnswers()
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		source, err := openTree(dir)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, c := range all {
			answer, why := c.judge(source)
			counts[answer]++
			switch key := [2]string{c.name, source.release}; {
			case *update:
				known.of[key] = answer
			case slices.Contains(known.releases, source.release) && known.of[key] != answer:
				t.Errorf("%s: %s: %s (%s), and answers.csv has %q", source.release, c.name, answer, why, known.of[key])
			}
			if answer == fails {
				t.Errorf("%s: %s: %s: %s", source.release, c.name, c.says, why)
			}
			t.Logf("%s %-11s %s %s", source.release, answer, c.name, why)
		}
		t.Logf("%s: of %d claims %d hold, %d are absent as said, %d fail, %d cannot be told", source.release, len(all),
			counts[holds], counts[absent], counts[fails], counts[cannotTell])
		if *update && !slices.Contains(known.releases, source.release) {
			known.releases = append(known.releases, source.release)
			slices.SortFunc(known.releases, func(a, b string) int {
				if number(a) < number(b) {
					return -1
				}
				return 1
			})
		}
	}
	if *update {
		if err := known.write(all); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDocument: docs/claims.md shows the answers, none of which is that a claim fails, and
// each claim was answered by some release.
func TestDocument(t *testing.T) {
	all := claims(t)
	known, err := readAnswers()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(b), "| claim | says |")
	want := before + known.markdown(all)
	if *update && found {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Errorf("%s is not what answers.csv says: go test ./kernels/claims -update", document)
	}
	for _, c := range all {
		answered := false
		for _, r := range known.releases {
			answered = answered || known.of[[2]string{c.name, r}] == holds
			if known.of[[2]string{c.name, r}] == fails {
				t.Errorf("%s fails in %s", c.name, r)
			}
		}
		if !answered {
			t.Errorf("%s holds nowhere", c.name)
		}
	}
}

// TestCited: each claim that is cited is in the table, and each of the table is cited.
func TestCited(t *testing.T) {
	cited := map[string]bool{}
	citation := regexp.MustCompile(`\bclaim:([a-z0-9-]+)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "claims" || d.Name() == "testdata") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if !slices.Contains([]string{".md", ".csv", ".case", ".plan", ".experiment", ".rules", ".go"}, filepath.Ext(path)) ||
			filepath.Base(path) == "claims.md" {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range citation.FindAllSubmatch(b, -1) {
			cited[string(m[1])] = true
			if !slices.ContainsFunc(claims(t), func(c claim) bool { return c.name == string(m[1]) }) {
				t.Errorf("%s cites the claim %s, which is not in claims.txt", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims(t) {
		if !cited[c.name] {
			t.Errorf("nothing cites %s", c.name)
		}
	}
}
