// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/lessons"
	"github.com/textpoke/textpoke/check/stepper"
	"github.com/textpoke/textpoke/sim/axis"
)

// TestEditor edits the plan of a page, and compares what the checker in the page answers with what the
// checker of this program does: of the plan as it is, without its second round, and with a line that is
// none. The link to an edited plan asks about it by itself. Without the checker the page says what is missing.
func TestEditor(t *testing.T) {
	Need(t)
	qs, _, err := check.Questions(axis.Choices{"arch": {"x86_64"}, "protocol": {"breakpoint"}, "sites": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := qs[0].Ask(t.Context(), explore.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := lessons.Case(&row)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := (stepper.Page{Title: "one", Chapters: []stepper.Chapter{{Cases: []stepper.Case{c}}}}).Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	told := func(tab *Tab) string {
		tab.Await(`!/^(|The checker is asked ...)$/.test(document.querySelector(".told").textContent)`)
		return Ask[string](tab, `(document.querySelector(".told .answer") || document.querySelector(".told")).textContent`)
	}
	ask := func(tab *Tab, plan string) string {
		Ask[bool](tab, `(plan => { const e = document.querySelector(".editor"); e.open = true; e.querySelector("textarea").value = plan;
			e.querySelector("textarea").dispatchEvent(new Event("input")); e.querySelector("button").click(); return true; })(`+strconv.Quote(plan)+`)`)
		return told(tab)
	}
	made := t.TempDir() // before the browser, whose time is bounded
	if out, err := exec.Command("../../.ci/checker", made).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tab := Open(t, "file://"+file, "file:")
	if got := ask(tab, c.Edit.Plan); got != "textpoke-checker.js is not beside this page: .ci/checker makes it" {
		t.Errorf("without a checker: %s", got)
	}
	if err := os.Rename(filepath.Join(made, "textpoke-checker.js"), filepath.Join(dir, "textpoke-checker.js")); err != nil {
		t.Fatal(err)
	}
	unsafe := regexp.MustCompile(`(?m)^ *Sync 2.*\n`).ReplaceAllString(c.Edit.Plan, "")
	var last string
	for _, plan := range []string{c.Edit.Plan, unsafe, "Sunc 2\n" + c.Edit.Plan} {
		want := ""
		if e, err := lessons.Edited(t.Context(), stepper.Edit{Plan: plan, Choices: c.Edit.Choices}); err != nil {
			want = err.Error()
		} else {
			want = e.Answer
		}
		if got := ask(tab, plan); got != want {
			t.Errorf("%s, want %s, of\n%s", got, want, plan)
		}
		last += want + "\n"
	}
	if !strings.HasPrefix(last, "SAFE") || !strings.Contains(last, "\nUNSAFE: torn-fetch") {
		t.Errorf("the answers are %s", last)
	}
	ask(tab, unsafe)
	link := Ask[string](tab, `document.querySelector(".editor .link").href`)
	if got := told(Open(t, link, "file:")); !strings.HasPrefix(got, "UNSAFE: torn-fetch") {
		t.Errorf("the link says %s", got)
	}
}
