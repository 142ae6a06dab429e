// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// says compares the whole text of an error; "" is none.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := fmt.Sprint(err); err != nil && got != want || err == nil && want != "" {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// TestFilterFile: one pattern a line, of a kernel's own list too; whatever else stands there is named.
func TestFilterFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	for text, want := range map[string]struct{ filter, wrong string }{
		"vfs_read\n":                            {"vfs_read", ""},
		"# all\n\n  vfs_*\n!vfs_read\nlast":     {"vfs_* !vfs_read last", ""},
		"ext4_read [ext4]\n#x y z\nmount [a b]": {"", `: "mount [a b]": want one pattern a line`},
		"ext4_read [ext4]\ntcp_ack\n":           {"ext4_read tcp_ack", ""},
		" a b \n":                               {"", `: "a b": want one pattern a line`},
		"# nothing\n\n":                         {"", ": no pattern in it"},
		"":                                      {"", ": no pattern in it"},
		strings.Repeat("a\n", maxPatterns):      {strings.Repeat(" a", maxPatterns)[1:], ""},
		strings.Repeat("a\n", maxPatterns) + "b ": {"", fmt.Sprintf(": more than %d patterns", maxPatterns)},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		name := text[:min(len(text), 40)]
		if want.wrong != "" {
			want.wrong = "@" + path + want.wrong
		}
		got, err := splitFilters([]string{"@" + path, "b,c"})
		says(t, name, err, want.wrong)
		if err == nil && !slices.Equal(got, []string{want.filter + " b", want.filter + " c"}) {
			t.Errorf("%q: %d filters, %.80q", name, len(got), got)
		}
	}
	if _, err := splitFilters([]string{"@" + path + ".not"}); err == nil {
		t.Error("a file that there is not")
	}
}

// TestSeveralFilters: a request may be of as many filters as the limit says, of no more, and of none that is empty.
func TestSeveralFilters(t *testing.T) {
	many := strings.Repeat(",a", maxFilters)[1:]
	if got, err := splitFilters([]string{many}); err != nil || len(got) != maxFilters {
		t.Errorf("%d filters: %v", len(got), err)
	}
	_, err := splitFilters([]string{"a,b", strings.Repeat(",c", maxFilters/2+1)[1:]})
	if err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf(": more than %d filters", maxFilters)) {
		t.Errorf("%.80v", err)
	}
	_, err = splitFilters([]string{"a,,b"})
	says(t, "a,,b", err, `filter "": empty`)
}

// TestParseMachine: a wrong machine is named with its wrong part, and the role that was meant.
func TestParseMachine(t *testing.T) {
	const roles = "busy, idle, isolated, irqsoff, offline"
	for text, want := range map[string]string{
		"busy=1,isolated=2": "",
		"0":                 fmt.Sprintf(`"0": want 1 to %d`, cpus.MaxCPUs),
		"isolated=2":        `"isolated=2": at least one CPU must be busy, idle or irqsoff, for the patcher to run on`,
		"idle=1,ofline=1": `"idle=1,ofline=1": "ofline=1": no role "ofline"; there are ` + roles +
			`; did you mean offline?`,
		"busi=1":        `"busi=1": no role "busi"; there are ` + roles + `; did you mean busy?`,
		"busy=1,idle=x": `"busy=1,idle=x": "idle=x": the number of CPUs must be a whole number, 0 or more`,
		"busy=1,idle":   `"busy=1,idle": "idle": want a number of CPUs or ROLE=NUMBER`,
	} {
		_, err := parseRoles(text)
		says(t, text, err, want)
	}
	got, err := splitMachines([]string{"2,8", "busy=1,idle=1", "4"})
	if want := []string{"2", "8", "busy=1,idle=1", "4"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestParseRate: from nothing to once a nanosecond, both included; no rate is the calibration's.
func TestParseRate(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "1e9": "1e+09", "2.5": "2.5", "-1": "", "1000000001": "",
		"NaN": "", "x": "", "": ""} {
		rate, err := parseRate(text)
		if want == "" {
			says(t, text, err, fmt.Sprintf("%q: want a number a second, from 0 to 1000000000", text))
		}
		if got := formatRate(rate); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestOtherValues: words that are hardly wrong are told what was meant, and lists that are one value stay one.
func TestOtherValues(t *testing.T) {
	_, err := parseBuffer("dynamc")
	if err == nil || !strings.HasSuffix(err.Error(), "; did you mean dynamic?") {
		t.Errorf("%v", err)
	}
	_, err = OpenPlan("")
	says(t, "a plan without a name", err, `"": want a name`)
	if _, err := OpenPlan(filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("a plan that there is not")
	}
	got, err := together([]string{"a", "b"})
	if err != nil || !slices.Equal(got, []string{"a,b"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got := ReplayNames(); !slices.Equal(got, []string{"live", "timed"}) {
		t.Errorf("%q follow a counterexample", got)
	}
}
