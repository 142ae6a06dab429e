// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/image"
)

var update = flag.Bool("update", false, "rewrite the table in docs/kernels.md")

// What `textpoke kernel audit --format csv` printed of distributions' kernels, and the page
// whose table follows from it.
const (
	auditFile = "../../docs/audit.csv"
	page      = "../../docs/kernels.md"
)

func audited(t *testing.T) [][]string {
	t.Helper()
	f, err := os.Open(auditFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// releases of an architecture in a run, from the first to the last.
func run(releases []string) string {
	if len(releases) == 1 {
		return releases[0]
	}
	return fmt.Sprintf("%s to %s (%d)", releases[0], releases[len(releases)-1], len(releases))
}

// table is the page's table: for each defect and architecture the releases in order, in runs
// of one verdict.
func table(rows [][]string) string {
	var b strings.Builder
	b.WriteString("| defect | architecture | has | mended | cannot-tell |\n|---|---|---|---|---|\n")
	for _, r := range Rules {
		for _, arch := range []string{"x86_64", "arm64", "riscv64"} {
			cells := map[string][]string{}
			var releases []string
			last := ""
			flush := func() {
				if len(releases) > 0 {
					cells[last] = append(cells[last], run(releases))
				}
				releases = nil
			}
			for _, row := range rows {
				if row[1] != arch || row[2] != r.Name {
					continue
				}
				if row[3] != last {
					flush()
					last = row[3]
				}
				releases = append(releases, row[0])
			}
			if flush(); last != "" {
				cell := func(v Verdict) string { return strings.Join(cells[string(v)], ", ") }
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Name, arch, cell(Has), cell(Mended), cell(CannotTell))
			}
		}
	}
	return b.String()
}

// TestPage: the page's table is that of the file.
func TestPage(t *testing.T) {
	rows := audited(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- audit -->\n", "<!-- /audit -->\n"
	before, rest, ok := strings.Cut(string(text), from)
	now, after, closed := strings.Cut(rest, to)
	if !ok || !closed {
		t.Fatalf("%s: no %q", page, from)
	}
	want := table(rows)
	if *update {
		if err := os.WriteFile(page, []byte(before+from+want+to+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != want {
		t.Errorf("%s: its table is not that of %s: go test ./kernels/audit -update", page, auditFile)
	}
}

// TestBorders: the kernel's change logs say which release mended what, and where it was carried
// over to stable kernels.
func TestBorders(t *testing.T) {
	type border struct{ defect, release string } // found in that release, the first one here that is on the other side
	has := map[border]string{}
	for _, row := range audited(t) {
		release, _, _ := strings.Cut(row[0], "-")
		has[border{row[2], row[1] + " " + release}] = row[3]
	}
	for b, want := range map[border]string{
		{"direct-functions-moved", "x86_64 6.1.0"}:          "has", // d05cb470663a is in 6.7
		{"direct-functions-moved", "x86_64 6.12.43+deb12"}:  "mended",
		{"bpf-detach-pokes-each", "x86_64 6.12.117+deb12"}:  "mended", // arch_bpf_trampoline_skip came within 7.2
		{"bpf-detach-pokes-each", "x86_64 7.2.9+deb13"}:     "mended",
		{"bpf-detach-pokes-each", "x86_64 7.2.11+deb13"}:    "has",
		{"walk-of-freed-table", "x86_64 6.12.118+deb13"}:    "mended", // cpa_collapse_large_pages is in 6.16
		{"walk-of-freed-table", "x86_64 6.16.3+deb13"}:      "has",
		{"walk-of-freed-table", "x86_64 7.2.6+deb13"}:       "has",
		{"walk-of-freed-table", "x86_64 7.2.9+deb13"}:       "mended", // init_mm's lock is held around the walk
		{"nop10-other-trampoline", "x86_64 6.12.117+deb12"}: "mended", // 554ba38456da is in 7.2
		{"nop10-other-trampoline", "x86_64 7.2.13+deb14"}:   "mended", // __uprobe_write takes the page away
		{"arm64-jump-label", "arm64 6.12.43+deb12"}:         "mended", // cfb00a357864 is in 6.11
		{"init-text-plt", "arm64 6.16.3+deb13"}:             "cannot-tell",
		{"init-text-plt", "arm64 6.17.8+deb13"}:             "mended", // a7ed7b9d0ebb is in 6.17
		{"late-store", "riscv64 7.2.13+deb14"}:              "mended", // ca358692de41 is in 6.16
	} {
		if has[b] != want {
			t.Errorf("%s of %s: %q, want %q", b.defect, b.release, has[b], want)
		}
	}
}

// TestImages holds images that lie in the environment's directory (DIR/NAME/vmlinuz) against
// the file, by their release; of others it prints the rows.
func TestImages(t *testing.T) {
	const env = "TEXTPOKE_IMAGES"
	paths, err := filepath.Glob(filepath.Join(os.Getenv(env), "*", "vmlinuz"))
	if os.Getenv(env) == "" || err != nil || len(paths) == 0 {
		t.Skipf("%s names no directory with images (NAME/vmlinuz)", env)
	}
	rows := audited(t)
	for _, path := range paths {
		k, err := image.Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		known := slices.ContainsFunc(rows, func(r []string) bool { return r[0] == k.Release && r[1] == k.Arch.Name })
		for _, f := range Of(k) {
			row := []string{f.Release, f.Arch, f.Defect, string(f.Verdict), f.Evidence}
			switch {
			case !known:
				t.Log(strings.Join(row, ","))
			case !slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, row) }):
				t.Errorf("%s is not in %s", strings.Join(row, ","), auditFile)
			}
		}
	}
}
