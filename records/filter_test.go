// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func filterTable(t testing.TB) *Table {
	t.Helper()
	var recs []Raw
	for i, n := range strings.Fields("vfs_read vfs_write tcp_ack mutex_lock lock_page page_end a.b [x] ext4_read:ext4 " +
		"ext4_lock:ext4 loop_end:loop tun:8021q") {
		sym, mod, _ := strings.Cut(n, ":")
		recs = append(recs, Raw{Addr(0x1000 + 16*i), sym, mod})
	}
	tab, err := New("x", "", recs)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestFilter(t *testing.T) {
	tab := filterTable(t)
	for _, c := range []struct{ exprs, want string }{ // expressions separated by |
		{"", "vfs_read vfs_write tcp_ack mutex_lock lock_page page_end a.b [x] ext4_read ext4_lock loop_end tun"},
		{"vfs_read", "vfs_read"},
		{"vfs_rea", ""},
		{"vfs_*", "vfs_read vfs_write"},
		{"*end", "page_end loop_end"},
		{"*lock*", "mutex_lock lock_page ext4_lock"},
		{"*", "vfs_read vfs_write tcp_ack mutex_lock lock_page page_end a.b [x] ext4_read ext4_lock loop_end tun"},
		{"v*e", "vfs_write"},
		{"?cp_ack", "tcp_ack"},
		{"[tv]*[ck]", "tcp_ack"},
		{"[!a-u]*", "vfs_read vfs_write [x]"},
		{`\[x]`, "[x]"},
		{`[[]x]`, "[x]"},
		{`[x`, ""},
		{`[x*`, "[x]"},
		{"a?b", "a.b"},
		{":mod:ext4", "ext4_read ext4_lock"},
		{":mod:*", "ext4_read ext4_lock loop_end tun"},
		{":mod:", "ext4_read ext4_lock loop_end tun"},
		{":mod:!*", "vfs_read vfs_write tcp_ack mutex_lock lock_page page_end a.b [x]"},
		{":mod:8021q", "tun"},
		{":mod:*o*", "loop_end"},
		{"*_lock:mod:ext4", "ext4_lock"},
		{"*:mod:loop", "loop_end"},
		{"*lock*:mod:!ext4", "mutex_lock lock_page"},
		{"vfs_*|!*write", "vfs_read"},
		{"vfs_* !*write", "vfs_read"},
		{"!*write|vfs_*|!:mod:*", "vfs_read vfs_write tcp_ack mutex_lock lock_page page_end a.b [x]"},
		{"!:mod:ext4|!*_*", "a.b [x] tun"},
		{"!*|tun", "tun"},
		{"tun|!tun", ""},
		{"1|3|0x9", "vfs_read tcp_ack ext4_read"},
		{"!2|999", "vfs_read tcp_ack mutex_lock lock_page page_end a.b [x] ext4_read ext4_lock loop_end tun"},
	} {
		t.Run(c.exprs, func(t *testing.T) {
			var exprs []string
			if c.exprs != "" {
				exprs = strings.Split(c.exprs, "|")
			}
			f, err := ParseFilter(exprs)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, i := range f.Match(tab) {
				got = append(got, tab.Symbol(i))
			}
			if d := cmp.Diff(strings.Fields(c.want), got); d != "" {
				t.Error(d)
			}
			if f.Empty() != (c.exprs == "") {
				t.Error("Empty is wrong")
			}
		})
	}
}

func TestFilterErrors(t *testing.T) {
	for expr, want := range map[string]string{
		"":            `filter "": empty`,
		" ":           `filter " ": empty`,
		"!":           `filter "!": names no function`,
		"a b:c":       `filter "b:c": unknown command behind the colon; only :mod:MODULE is a filter`,
		"a:traceon":   `filter "a:traceon": unknown command behind the colon; only :mod:MODULE is a filter`,
		":mod:a:b":    `filter ":mod:a:b": a module's name has no colon`,
		"0":           `filter "0": starts with a digit, but is not the number of a record, counted from 1`,
		"1a":          `filter "1a": starts with a digit, but is not the number of a record, counted from 1`,
		"1:mod:ext4":  `filter "1:mod:ext4": a record's number and a module exclude each other`,
		"99999999999": `filter "99999999999": starts with a digit, but is not the number of a record, counted from 1`,
	} {
		_, err := ParseFilter([]string{expr})
		wantError(t, err, want)
	}
}

// patternRegexp is the dumb twin of globMatch: the pattern as a regular
// expression, built from the description in the kernel's lib/glob.c.
func patternRegexp(p string) *regexp.Regexp {
	var out strings.Builder
	out.WriteString(`(?s)\A`)
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*':
			out.WriteString(".*")
		case '?':
			out.WriteString(".")
		case '\\':
			i++
			if i < len(p) {
				out.WriteString(regexp.QuoteMeta(p[i : i+1]))
			}
		case '[':
			set, n := patternClass(p[i+1:])
			if n == 0 {
				out.WriteString(`\[`)
				continue
			}
			out.WriteString(set)
			i += n
		default:
			out.WriteString(regexp.QuoteMeta(p[i : i+1]))
		}
	}
	out.WriteString(`\z`)
	return regexp.MustCompile(out.String())
}

// patternClass turns what is behind [ into alternatives. n is its length with the
// closing bracket, 0 if there is none.
func patternClass(p string) (set string, n int) {
	rest, inverted := strings.CutPrefix(p, "!")
	var member [128]bool
	for first := true; ; first = false {
		if rest == "" {
			return "", 0
		}
		if rest[0] == ']' && !first {
			break
		}
		low, high := rest[0], rest[0]
		rest = rest[1:]
		if strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]") {
			if len(rest) == 1 {
				return "", 0
			}
			high = rest[1]
			rest = rest[2:]
		}
		for c := low; c <= high; c++ {
			member[c] = true
		}
	}
	var alts []string
	for c := 1; c < 128; c++ {
		if member[c] != inverted {
			alts = append(alts, regexp.QuoteMeta(string(rune(c))))
		}
	}
	if len(alts) == 0 {
		return `[^\x00-\x{10ffff}]`, len(p) - len(rest) + 1
	}
	return "(?:" + strings.Join(alts, "|") + ")", len(p) - len(rest) + 1
}

// TestGlobCorners has what random patterns rarely meet. All of it follows from
// the kernel's lib/glob.c.
func TestGlobCorners(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string // texts separated by blanks
	}{
		{"[a-]", "a -", "b ] a-"},
		{"[a-]]", "a] -]", "a ] b]"},
		{"[]a]", "] a", "[]a] b"},
		{"[!]a]", "b [", "] a"},
		{"[]-a]", "] ^ _ ` a", "b - ["},
		{"[a-c-e]", "a b c - e", "d"},
		{"[c-a]", "", "a b c [c-a]"}, // an empty range
		{"[a", "[a", "a ["},
		{"[a-", "[a-", "a -"},
		{`a\`, "a", `a\ ab`}, // quotes the end
		{`a\*`, "a*", `ab a\ab`},
		{"**a", "a ba aa", "b ab"},
		{"a**", "a ab", "b"},
		{"*ab*ab*", "abab xabyabz", "ab aba"},
	} {
		for _, s := range strings.Fields(c.yes) {
			if !globMatch(c.pattern, s) {
				t.Errorf("%s does not match %s", c.pattern, s)
			}
		}
		for _, s := range strings.Fields(c.no) {
			if globMatch(c.pattern, s) {
				t.Errorf("%s matches %s", c.pattern, s)
			}
		}
	}
}

func TestGlobAgainstTwin(t *testing.T) {
	patterns := rapid.StringOfN(rapid.SampledFrom([]rune(`aabbc*?[]!-\`)), 0, 10, -1)
	texts := rapid.StringOfN(rapid.SampledFrom([]rune(`aabbc[]!-\*?`)), 0, 10, -1)
	rapid.Check(t, func(t *rapid.T) {
		p := patterns.Draw(t, "pattern")
		twin := patternRegexp(p)
		for range 20 {
			s := texts.Draw(t, "text")
			want := twin.MatchString(s)
			if got := globMatch(p, s); got != want {
				t.Fatalf("globMatch(%q, %q) = %v, %s says %v", p, s, got, twin, want)
			}
			if got := parseGlob(p).match(s); got != want {
				t.Fatalf("parseGlob(%q) is %+v: match(%q) = %v, %s says %v", p, parseGlob(p), s, got, twin, want)
			}
		}
	})
}

// TestFilterAgainstTwin compares a whole filter with a loop over sets of names.
func TestFilterAgainstTwin(t *testing.T) {
	tab := filterTable(t)
	exprs := []string{
		"vfs_*",
		"!*read",
		":mod:ext4",
		"!:mod:*",
		"*lock*",
		"!tcp_ack",
		"*:mod:!loop",
		"*end",
		"!*",
		"3",
		"!9",
	}
	rapid.Check(t, func(t *rapid.T) {
		seq := rapid.SliceOfN(rapid.SampledFrom(exprs), 0, 6).Draw(t, "filter")
		f, err := ParseFilter(seq)
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for i := range tab.Len() {
			in := len(seq) == 0 || seq[0][0] == '!'
			for _, e := range seq {
				one, err := ParseFilter([]string{strings.TrimPrefix(e, "!")})
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(one.Match(tab), i) {
					in = e[0] != '!'
				}
			}
			if in {
				want = append(want, i)
			}
		}
		if got := f.Match(tab); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestUnmatched: each expression is asked by itself, whatever the others match.
func TestUnmatched(t *testing.T) {
	f, err := ParseFilter([]string{"vfs_* nosuch_*", "!alsonot", "!vfs_read", ":mod:xfs", "4711", "3"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Unmatched(filterTable(t)), []string{"nosuch_*", "!alsonot", ":mod:xfs", "4711"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNames: a list of names, which is one pass over the table, chooses what its names choose one
// after the other, with what stands between them.
func TestNames(t *testing.T) {
	tab := filterTable(t)
	rapid.Check(t, func(r *rapid.T) {
		var words []string
		for range rapid.IntRange(1, 12).Draw(r, "words") {
			word := rapid.SampledFrom([]string{"vfs_read", "vfs_write", "ext4_lock", "nosuch", "v*", "2", ":mod:ext4",
				tab.Symbol(0), tab.Symbol(tab.Len() - 1)}).Draw(r, "word")
			if rapid.Bool().Draw(r, "remove") {
				word = "!" + word
			}
			words = append(words, word)
		}
		f, err := ParseFilter(words)
		if err != nil {
			r.Fatal(err)
		}
		chosen := make([]bool, tab.Len())
		var unmatched []string
		for i := range chosen {
			chosen[i] = f.terms[0].remove
		}
		for k, term := range f.terms {
			matched := false
			for i := range term.all(tab) {
				chosen[i], matched = !term.remove, true
			}
			if !matched {
				unmatched = append(unmatched, words[k])
			}
		}
		var want []int
		for i, c := range chosen {
			if c {
				want = append(want, i)
			}
		}
		if got := f.Match(tab); !slices.Equal(got, want) {
			r.Errorf("%v chooses %v, want %v", words, got, want)
		}
		if got := f.Unmatched(tab); !slices.Equal(got, unmatched) {
			r.Errorf("of %v %v match nothing, want %v", words, got, unmatched)
		}
	})
}

// lasting is a context that ends once it was looked at so many times.
type lasting struct {
	context.Context
	looks int
}

func (l *lasting) Err() error {
	if l.looks--; l.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestMatchContext: whoever has gone is not worked for beyond the expression at hand.
func TestMatchContext(t *testing.T) {
	table, err := Open(t.Context(), "gen:n=10", Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseFilter([]string{"?n1", "?n2", "?n3", "?n4"})
	if err != nil {
		t.Fatal(err)
	}
	for looks := range 6 {
		match, err := f.MatchContext(&lasting{t.Context(), looks}, table)
		if ended := looks < 4; (err != nil) != ended || !ended && len(match) != 4 {
			t.Errorf("ended at look %d: %v, %v", looks, match, err)
		}
	}
}
