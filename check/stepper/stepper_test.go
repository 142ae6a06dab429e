// SPDX-License-Identifier: Apache-2.0

package stepper

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// shown is a page of two chapters: one with steps and a plan, and one of words alone.
var shown = Page{Title: "A <b>title", Lead: "what it is about", Chapters: []Chapter{
	{Title: "first", Paragraphs: []string{"one", "two & three"}, Cases: []Case{{
		Command: "textpoke check --arch x86_64", Answer: "UNSAFE: torn-fetch", Outline: "a line\n",
		Trace: &explore.Trace{Steps: []explore.Step{{Who: "cpu 0", What: "fetches </script>"}, {Who: "patcher 0", What: "writes"}},
			Violation: cpus.Violation{Property: cpus.TornFetch, CPU: 3, Why: "mixes versions"}},
		Edit: &Edit{Plan: "name: mine\n", Choices: map[string][]string{"arch": {"x86_64"}}},
	}}},
	{Title: "second", Cases: []Case{{Command: "textpoke prove", Answer: "PROVED"}}},
}}

func written(t *testing.T, p Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage: all that a page is given stands in it, escaped, chapters numbered from 1.
func TestPage(t *testing.T) {
	text := written(t, shown)
	for _, want := range []string{
		"<title>A &lt;b&gt;title</title>", "<p>what it is about</p>", `<a href="#chapter-2">second</a>`, "<h2>1. first</h2>",
		`<p class="prose">two &amp; three</p>`, "$ textpoke check --arch x86_64<", "UNSAFE: torn-fetch", "<pre>a line\n</pre>",
		"all 2 steps", "<b>cpu 0</b> fetches &lt;/script&gt;", "<b>patcher 0</b> writes", broken[cpus.TornFetch],
		"CPU 3: mixes versions", ">name: mine\n</textarea>", `{"arch":["x86_64"]}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	alone := written(t, Page{Title: "one", Chapters: shown.Chapters[1:]})
	for _, other := range []string{"<nav", "class=\"stepper\"", "<textarea", "<details class=\"outline\""} {
		if !strings.Contains(text, other) || strings.Contains(strings.ReplaceAll(alone, script, ""), other) {
			t.Errorf("%q: want it in the page that has it, and not in one of a single answer", other)
		}
	}
}

// TestCaseAlone: a case stands in its page as it is written alone.
func TestCaseAlone(t *testing.T) {
	var b bytes.Buffer
	if err := shown.Chapters[0].Cases[0].Write(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() == 0 || !strings.Contains(written(t, shown), b.String()) {
		t.Errorf("%s is not in the page", b.String())
	}
}

// TestPolicy: the policy names the hashes of just the style and the script that the page has.
func TestPolicy(t *testing.T) {
	text := written(t, shown)
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)
	if policy == nil {
		t.Fatal("no policy")
	}
	unescaped := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1])
	for what, within := range map[string]*regexp.Regexp{"style": regexp.MustCompile(`(?s)<style>(.*?)</style>`),
		"script": regexp.MustCompile(`(?s)<script>(.*?)</script>`)} {
		sum := sha256.Sum256([]byte(within.FindStringSubmatch(text)[1]))
		if want := what + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(unescaped, want) {
			t.Errorf("%s: want %s", unescaped, want)
		}
	}
}

// TestEachProperty: each property that package cpus declares has its sentence.
func TestEachProperty(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../cpus/listener.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if ok && len(v.Values) == 1 {
			if of, is := v.Type.(*ast.Ident); is && of.Name == "Property" {
				found++
				name := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
				if broken[cpus.Property(name)] == "" {
					t.Errorf("%s has no sentence", name)
				}
			}
		}
		return true
	})
	if found != len(broken) {
		t.Errorf("%d properties are declared, %d have sentences", found, len(broken))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestFull: a page that cannot be written is told.
func TestFull(t *testing.T) {
	if err := shown.Write(full{}); err == nil || err.Error() != "write page: no room" {
		t.Errorf("%v", err)
	}
	if err := shown.Chapters[0].Cases[0].Write(full{}); err == nil {
		t.Error("a case was written")
	}
}
