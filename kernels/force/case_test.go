// SPDX-License-Identifier: Apache-2.0

package force

import (
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/internal/release"
)

// valid is a schedule to spoil.
const valid = "name: a\naction: idle\ncpus: 2\n\nall to f|g when cpu 1 and online 1 # why\ngo\n"

func TestRead(t *testing.T) {
	c, err := Read("a.schedule", "# about it\nbreaks: CPU: 1\n"+valid)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "a" || c.CPUs != 2 || len(c.Breaks) != 1 || c.Breaks[0] != "CPU: 1" || len(c.Steps) != 2 {
		t.Errorf("%+v", c)
	}
	if st := c.Steps[0]; st.Note != "why" || st.who != everybody || strings.Join(st.place, " ") != "f g" ||
		len(st.when) != 2 {
		t.Errorf("%+v", st)
	}
	st, err := ParseStep("cpu 0 while cpu 1 answers to write of slot when no-page within 5s unless waited-for text_mutex or again")
	if err != nil || st.who != 0 || st.answers != 1 || st.access != slotWrite || st.limit != 5*time.Second || !st.again ||
		len(st.unless) != 1 || st.unless[0].arg != "text_mutex" {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, wrong := range []struct{ old, new, want string }{
		{"name: a", "name:", "want a name"},
		{"cpus: 2", "cpus: two", `a.schedule:3: "cpus: two"`},
		{"cpus: 2", "cpus: 1", "2 CPUs or more"},
		{"cpus: 2", "cpus: 2\nsince: new", `release "new": want two or three numbers, such as 6.18 or 7.1.9`},
		{"go\n", "", `end with "go"`},
		{"go\n", "go on\n", `"on": not understood`},
		{"all to", "everyone to", `a.schedule:5: "everyone to`},
		{"all to f|g", "cpu x to f", "want the number of a CPU"},
		{"all to f|g", "cpu 0 while cpu 1 sleeps to f", `want "answers"`},
		{"all to f|g", "all to", "not understood"},
		{"all to f|g when", "cpu 0 at f when", `want "to" and a place`},
		{"online 1", "onlin 1", "did you mean online?"},
		{"online 1", "online", "want a cpu"},
		{"online 1", "online one", "want a number"},
		{"online 1", "online 1 within 5h", "up to a minute"},
		{"all to f|g when cpu 1 and online 1", "cpu 0 for -1s", "up to a minute"},
	} {
		text := strings.Replace(valid, wrong.old, wrong.new, 1)
		if _, err := Read("a.schedule", text); err == nil || !strings.Contains(err.Error(), wrong.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q: %v; want %q", wrong.new, wrong.old, err, wrong.want)
		}
	}
}

// TestSince: a case that shows since a release is refused for older ones.
func TestSince(t *testing.T) {
	c, err := Read("a.schedule", strings.Replace(valid, "cpus: 2", "cpus: 2\nsince: 6.3", 1))
	if err != nil {
		t.Fatal(err)
	}
	for release, older := range map[string]bool{"6.1.0-56-cloud-amd64": true, "5.10.0": true, "6.3.0": false,
		"6.12.107": false, "7.2": false} {
		if err := c.shows(release); (err != nil) != older {
			t.Errorf("%s: %v", release, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(valid)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := Read("a.schedule", text); err == nil && c.Steps[len(c.Steps)-1].kind != letGo {
			t.Errorf("%q has no end", text)
		}
	})
}

// TestOops: what a console says is wrong, without what came before and without the time.
func TestOops(t *testing.T) {
	const console = "[    1.0] hello\r\n[    2.0] Oops: int3: 0000 [#1]\r\n[    2.1] CPU: 1\r\n[    2.2] Kernel panic\r\n"
	if got, want := firstLine(console), "Oops: int3: 0000 [#1]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := oops(console); strings.Contains(got, "hello") || !strings.Contains(got, "CPU: 1\n") ||
		!strings.HasPrefix(got, "[    2.0]") {
		t.Errorf("%q", got)
	}
	if got := oops("nothing\n"); strings.Contains(got, "Oops") {
		t.Errorf("%q", got)
	}
}

// TestSitesOfCases: the call site of a function lies in its first 16 bytes; a case fits where all that it names is
// there, and since the release that shows it.
func TestSitesOfCases(t *testing.T) {
	m, _ := stands(t)
	for name, want := range map[string]string{"traced": "", "untraced": "untraced cannot be traced in this image",
		"nobody": "the image has no nobody"} {
		c := &Case{Site: name}
		at, err := c.site(m.image)
		if (err != nil) != (want != "") || err != nil && err.Error() != want || err == nil && at != siteAt {
			t.Errorf("%s: %#x, %v, want %s", name, at, err, want)
		}
		if fits := c.Fits(m.image); (fits != nil) != (want != "") {
			t.Errorf("%s: %v", name, fits)
		}
	}
	if at, err := (&Case{Site: "at_once"}).site(m.image); at != siteAt-100 || err != nil {
		t.Errorf("a site at the first byte: %#x, %v", at, err)
	}
	if at, err := (&Case{Site: "too_early"}).site(m.image); err == nil {
		t.Errorf("a site 16 bytes behind: %#x", at)
	}
	for text, want := range map[string]string{
		"all to f|g when from g unless waited-for text_mutex": "", "all to nobody|f when set a_word": "",
		"all to nobody|no_one":              "step 1: all to nobody|no_one: the image has no nobody nor no_one",
		"all to f when from nobody":         "step 1: all to f when from nobody: the image has no nobody",
		"all to f unless waited-for no_one": "step 1: all to f unless waited-for no_one: the image has no no_one",
		"cpu 0 to f+4 when cpu 0 and tail":  "", "cpu 0 to write of slot when split 1": "",
	} {
		st, err := ParseStep(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Case{Steps: []Step{st}}).Fits(m.image); (err != nil) != (want != "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	m.image.Release = "6.1.0"
	if err := (&Case{Name: "x", Since: release.Numbers{6, 3}}).Fits(m.image); err == nil ||
		err.Error() != "x shows on releases since 6.3, and not on 6.1.0" {
		t.Error(err)
	}
	for place, want := range map[string]uint64{"f": fAt, "f+10": fAt + 10, "f+x": 0, "0x200000000005": 1<<45 + 5} {
		if at, err := symbol(m.image, []string{place}); at != want || (err != nil) != (want == 0) {
			t.Errorf("%s: %#x, %v", place, at, err)
		}
	}
}
