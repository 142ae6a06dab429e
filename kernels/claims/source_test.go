// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The answers of a source tree to a claim.
const (
	holds      = "holds"
	absent     = "absent" // outside of the claim's releases, where it must not stand
	fails      = "fails"
	cannotTell = "cannot tell"
)

// tree is a kernel's source.
type tree struct {
	dir, release string // 7.2.13
}

var version = regexp.MustCompile(`(?m)^VERSION = (\d+)\nPATCHLEVEL = (\d+)\nSUBLEVEL = (\d+)$`)

func openTree(dir string) (tree, error) {
	b, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		return tree{}, err
	}
	v := version.FindSubmatch(b)
	if v == nil {
		return tree{}, fmt.Errorf("%s/Makefile: no VERSION, PATCHLEVEL and SUBLEVEL", dir)
	}
	return tree{dir, fmt.Sprintf("%s.%s.%s", v[1], v[2], v[3])}, nil
}

// judge says whether the claim is true of the tree, and why not.
func (c *claim) judge(t tree) (answer, why string) {
	texts, nowhere := c.place(t)
	stands, missing := false, nowhere
	for _, text := range texts {
		missing = c.missing(text)
		if stands = missing == ""; stands {
			break
		}
	}
	at, branch := number(t.release), t.release[:strings.LastIndex(t.release, ".")]
	for _, end := range []struct {
		bound
		outside bool
		said    string
	}{
		{c.from, c.from.release != "" && at < number(c.from.release), "before " + c.from.release},
		{c.to, c.to.release != "" && at >= number(c.to.release)+1, "after " + c.to.release},
	} {
		switch {
		case !end.outside || slices.Contains(c.also, branch):
		case end.open:
			return cannotTell, "we have not looked " + end.said
		case stands:
			return fails, "it stands there " + end.said + " too"
		default:
			return absent, "it does not stand there " + end.said
		}
	}
	switch {
	case nowhere != "":
		return cannotTell, nowhere
	case !stands:
		return fails, missing
	}
	return holds, ""
}

// number orders releases: what follows the second dot is behind the point, so that 6.9.7
// comes before 6.10.
func number(release string) float64 {
	parts := strings.Split(release+".0", ".")
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	patch, _ := strconv.Atoi(parts[2])
	return float64(major*1000+minor) + float64(patch)/10000
}

// place is the texts that the claim is about: the file, or every definition of the
// function in it.
func (c *claim) place(t tree) (texts []string, why string) {
	b, err := os.ReadFile(filepath.Join(t.dir, c.file))
	if err != nil {
		return nil, c.file + " is not there"
	}
	if c.function == "" {
		return []string{string(b)}, ""
	}
	head := regexp.MustCompile(`(?m)^[a-z][^;{}#]*\b` + regexp.QuoteMeta(c.function) + `\s*\([^;{}]*\)[^;{}]*\{`)
	for _, at := range head.FindAllIndex(b, -1) {
		body, _, _ := strings.Cut(string(b[at[0]:]), "\n}")
		texts = append(texts, body)
	}
	if texts == nil {
		return nil, c.function + " is not in " + c.file
	}
	return texts, ""
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	stars    = regexp.MustCompile(`(?m)^\s*\*+`)
)

// missing is what the text lacks of the claim, or has and should not.
func (c *claim) missing(text string) string {
	code, all := flat(comments.ReplaceAllString(text, " ")), flat(stars.ReplaceAllString(text, " "))
	for _, has := range c.has {
		rest := code
		for _, piece := range strings.Split(has, " .. ") {
			_, after, ok := strings.Cut(rest, flat(piece))
			if !ok {
				return fmt.Sprintf("%q does not stand there", piece)
			}
			rest = after
		}
	}
	for _, lacks := range c.lacks {
		if strings.Contains(code, lacks) {
			return fmt.Sprintf("%q stands there", lacks)
		}
	}
	for _, says := range c.comment {
		if !strings.Contains(all, says) {
			return fmt.Sprintf("no comment says %q", says)
		}
	}
	return ""
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestJudge asks a source of a few lines.
func TestJudge(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", "VERSION = 6\nPATCHLEVEL = 10\nSUBLEVEL = 3\n")
	write("a.c", "int\npoke(void) /* stop() */\n{\n\tlock();\n\tsend(a,\n\t     b); /* as long\n * as it takes */\n}\n"+
		"static void other(void)\n{\n\tpoke();\n\tstop();\n}\n")
	source, err := openTree(dir)
	if err != nil || source.release != "6.10.3" {
		t.Fatal(source, err)
	}
	for text, want := range map[string]string{
		"releases: 6.10 to\nfunction: poke\nhas: lock(); .. send(a, b);":          "holds ",
		"releases: 6.10 to\nfunction: poke\nhas: send(a, b); .. lock();":          `fails "lock();" does not stand there`,
		"releases: 6.10 to\nfunction: poke\nlacks: stop(":                         "holds ",
		"releases: 6.10 to\nfunction: other\nlacks: stop(":                        `fails "stop(" stands there`,
		"releases: 6.10 to\nfunction: poke\ncomment: as long as it takes":         "holds ",
		"releases: 6.10 to\nfunction: poke\ncomment: as short as it takes":        `fails no comment says "as short as it takes"`,
		"releases: 6.11 to\nfunction: poke\nhas: lock();":                         "fails it stands there before 6.11 too",
		"releases: 6.11 to\nalso: 6.10\nfunction: poke\nhas: lock();":             "holds ",
		"releases: ?6.11 to\nfunction: poke\nhas: lock();":                        "cannot tell we have not looked before 6.11",
		"releases: 5.0 to 6.9\nfunction: poke\nhas: lock();":                      "fails it stands there after 6.9 too",
		"releases: 5.0 to 6.9\nfunction: poke\nhas: unlock();":                    "absent it does not stand there after 6.9",
		"releases: 5.0 to 6.10\nfunction: poke\nhas: lock();":                     "holds ",
		"releases: 6.10 to\nfunction: pokes\nhas: lock();":                        "cannot tell pokes is not in a.c",
		"releases: 6.11 to\nfunction: pokes\nhas: lock();":                        "absent it does not stand there before 6.11",
		"releases: 6.10 to\nhas: stop();":                                         "holds ",
		"releases: 6.10 to\nfunction: poke\nhas: lock();\nhas: absent\nlacks: x(": `fails "absent" does not stand there`,
	} {
		all, err := parse("claim: a\nfile: a.c\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		if answer, why := all[0].judge(source); answer+" "+why != want {
			t.Errorf("%s: %s %s, want %s", text, answer, why, want)
		}
	}
}
