// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/net/html"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/results"
)

// sample is the manifest of a run with one table.
func sample() results.Manifest {
	seed := uint64(7)
	return results.Manifest{
		Version:     "v1.2.3",
		Revision:    "abc",
		Args:        []string{"textpoke", "plan", "--filter=a b"},
		Seed:        &seed,
		Calibration: "vm-2,gold-6248",
		Inputs:      map[string]string{"sites.txt": "00ff"},
		Complete:    true,
		Started:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Finished:    time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC),
		Files: []results.ManifestFile{{Name: "plan.csv", Rows: 2, Columns: []results.Column{
			{Name: "arch", Doc: "instruction set"}, {Name: "update_ns", Doc: "how long"}, {Name: "skipped", Doc: "left out"}}}},
	}
}

const plan = "arch,update_ns,skipped\nx86_64,465748370,\nx86_64,12,\n"

// dir is a directory with a manifest, and files as pairs of name and contents.
func dir(t *testing.T, m results.Manifest, files ...string) fstest.MapFS {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d := fstest.MapFS{results.ManifestName: {Data: text}}
	for pair := range slices.Chunk(files, 2) {
		d[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return d
}

func written(t *testing.T, d fstest.MapFS) string {
	t.Helper()
	p, err := Read(d, strconv.Quote)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPage(t *testing.T) {
	m := sample()
	m.Documents = []string{"report.md", "p.svg", "p.png", "raw.txt", "more.csv"}
	d := dir(
		t,
		m,
		"plan.csv",
		plan,
		"p.svg",
		`<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>`,
		"raw.txt",
		"CAL: 1\n",
		"more.csv",
		"n\n9.718034473887316\n",
		"report.md",
		"# Title\n\n[web](https://kernel.org) and [file](plan.csv)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
	)
	below := sample()
	below.Complete, below.Exit, below.Seed = false, 3, nil
	below.Part = &results.Part{Index: 1, Of: 4}
	for name, f := range dir(t, below, "plan.csv", plan) {
		d["sub/"+name] = f
	}
	golden.Check(t, "testdata/page.golden", []byte(written(t, d)))
}

// TestForeignTextIsText: whatever a directory holds, the page has the elements and the
// attributes that the template and Markdown make, and no others.
func TestForeignTextIsText(t *testing.T) {
	const evil = `</style></title><script>alert(1)</script><img src=x onerror=alert(1)>"' onload="x" {{.}}`
	m := sample()
	m.Version, m.Revision, m.Calibration, m.Args = evil, evil, evil, []string{evil, evil}
	m.Inputs = map[string]string{evil: evil}
	m.Files[0].Columns = []results.Column{{Name: evil, Doc: evil}, {Name: "b", Doc: evil}}
	m.Files = append(m.Files, results.ManifestFile{Name: "../" + evil}, results.ManifestFile{Name: evil})
	m.Documents = []string{
		"report.md",
		"raw.txt",
		"evil.svg",
		"on.svg",
		"away.svg",
		"no.svg",
		"flat.png",
		"type.svg",
		"sheet.svg",
		evil + ".svg",
	}
	field := `"` + strings.ReplaceAll(evil, `"`, `""`) + `"`
	const open = `<svg xmlns="http://www.w3.org/2000/svg" `
	page := written(t, dir(
		t,
		m,
		"plan.csv",
		field+",b\n"+field+",1\n"+field+field[1:]+",2\n"+"same,"+field+"\n",
		"raw.txt",
		evil,
		"report.md",
		evil+"\n\n[a](javascript:alert(1)) ![b](javascript:alert(2)) <script>alert(3)</script>\n\n# "+evil,
		"evil.svg",
		open+`><script>alert(1)</script></svg>`,
		"on.svg",
		open+`onload="alert(1)"/>`,
		"away.svg",
		open+`><use href="https://example.com/x"/></svg>`,
		"no.svg",
		evil,
		"flat.png",
		evil,
		"type.svg",
		`<!DOCTYPE svg [<!ENTITY a "b">]>`+open+"/>",
		"sheet.svg",
		`<?xml-stylesheet href="x"?>`+open+"/>",
	))
	allowed := strings.Fields(
		"html head meta title style body header h1 h2 h3 nav main section p pre dl dt dd details summary " +
			"code div table thead tbody tr th td span b figure img figcaption",
	)
	attributes := strings.Fields("lang charset name content http-equiv id class scope title tabindex role aria-label")
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Error(z.Err())
			}
			break
		}
		token := z.Token()
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		if !slices.Contains(allowed, token.Data) {
			t.Errorf("an element got through: %s", token)
		}
		for _, a := range token.Attr {
			if !slices.Contains(attributes, a.Key) {
				t.Errorf("an attribute got through: %s", token)
			}
		}
	}
	for _, why := range []string{"evil.svg: refused: an element", "on.svg: refused: an attribute",
		"away.svg: refused: an attribute", "no.svg: it is no SVG", "flat.png: it is no PNG",
		"type.svg: refused: a document type", "sheet.svg: refused: an instruction", "is not a plain file name"} {
		if !strings.Contains(page, why) {
			t.Errorf("the page does not say %q", why)
		}
	}
}

func TestNoDirectoryOfResults(t *testing.T) {
	for name, d := range map[string]fstest.MapFS{"empty": {}, "other files": {"a.csv": {Data: []byte("a\n")}}} {
		if _, err := Read(d, strconv.Quote); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v, want %v", name, err, ErrNone)
		}
	}
	bad := fstest.MapFS{results.ManifestName: {Data: []byte("{")}}
	if _, err := Read(bad, strconv.Quote); err == nil || !strings.HasPrefix(err.Error(), "manifest.json: ") {
		t.Errorf("%v, want an error that names the manifest", err)
	}
}

// TestCutShortIsSaid: by the manifest, by its absence, and by files that are missing.
func TestCutShortIsSaid(t *testing.T) {
	whole := dir(t, sample(), "plan.csv", plan)
	if strings.Contains(written(t, whole), `class="bad"`) {
		t.Error("a whole run is called otherwise")
	}
	m := sample()
	m.Complete = false
	killed := fstest.MapFS{"a/manifest.json": whole["manifest.json"], "a/plan.csv": whole["plan.csv"]}
	for want, d := range map[string]fstest.MapFS{
		"Cut short: the tables hold":                                   dir(t, m, "plan.csv", plan),
		"Cut short: there is no manifest":                              killed,
		"Not as it must be: plan.csv: open plan.csv":                   dir(t, sample()),
		"says that it has 2 rows; the page shows the 1 that are there": dir(t, sample(), "plan.csv", "arch\nx\n"),
		"wrong number of fields":                                       dir(t, sample(), "plan.csv", "arch\nx,y\n"),
	} {
		if page := written(t, d); !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestLongTablesAreCut: to 40 rows, and the page says of how many.
func TestLongTablesAreCut(t *testing.T) {
	for _, n := range []int{40, 41} {
		var csv strings.Builder
		csv.WriteString("row\n")
		for i := range n {
			fmt.Fprintf(&csv, "%d\n", i)
		}
		m := sample()
		m.Files[0].Rows = n
		page := written(t, dir(t, m, "plan.csv", csv.String()))
		if got := strings.Count(page, `<td class="n">`); got != 40 {
			t.Errorf("%d rows: %d are shown, want 40", n, got)
		}
		if cut := strings.Contains(page, "The first 40 of 41 rows; the others are in plan.csv."); cut != (n > 40) {
			t.Errorf("%d rows: that some are left out is said: %v", n, cut)
		}
	}
}
