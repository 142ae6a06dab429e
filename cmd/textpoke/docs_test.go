// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// least is how many commands of each document must be carried out and compared
// with what the document says of them, so that nothing is left out unnoticed.
var least = map[string]int{
	"README.md": 7, "checking.md": 6, "checking-reference.md": 3, "plan-files.md": 3, "interrupts.md": 6, "fetch-models.md": 1,
	"findings.md": 19, "hardware.md": 2, "sweeps.md": 2, "tutorial.md": 8, "questions.md": 3,
	"experiment-files.md": 1, "recordings.md": 2, "outside.md": 27,
}

// TestDocs types the commands behind "$ " in the blocks of every document and compares
// what they print. A line "..." stands for any lines, but not for the first, which is the
// answer; a comment behind the command names words that are printed. What runs on real
// CPUs is different each time: there the first line is compared, whatever its numbers are.
// Each document has a folder of its own, in which "results" and "kernels" are the repository's, and which
// holds the files that the document shows.
func TestDocs(t *testing.T) {
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(docs, "../../README.md") {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, folder := range []string{"/results", "/kernels"} {
				if err := os.Symlink(root+folder, dir+folder); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range regexp.MustCompile("(?s)```experiment\n(name: (\\S+)\n.*?)```").FindAllStringSubmatch(string(b), -1) {
				if err := os.WriteFile(filepath.Join(dir, m[2]+formEnding), []byte(m[1]), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			compared := 0
			for _, c := range typed(string(b)) {
				t.Run(c.line, func(t *testing.T) {
					if len(c.output) > 0 && c.output[0] == "..." {
						t.Error("the document hides the first line of the answer")
					}
					if why := leftOut.FindString(c.line); why != "" {
						t.Skipf("%q: a server, or another program", why)
					}
					if c.says() {
						compared++
					}
					c.check(t, dir)
				})
			}
			if compared < least[name] {
				t.Errorf("%d commands were compared with what %s says, want %d", compared, name, least[name])
			}
		})
	}
}

var (
	// leftOut tells the commands that are not carried out.
	leftOut = regexp.MustCompile(`textpoke (serve|ctl|backup|restore)\b|^spin |openssl| \.\.\.|--engine hardware`)
	onCPUs  = regexp.MustCompile(`textpoke run\b`)
	digits  = regexp.MustCompile(`[0-9]+`)
)

// A command is a line of a document with what is said of it.
type command struct {
	line, comment string
	output        []string // nil: nothing is shown
}

func (c command) says() bool { return c.comment != "" || len(c.output) > 0 }

// typed are the commands of all fenced blocks of a document that begin with "$ ".
func typed(doc string) []command {
	var all []command
	for i, block := range strings.Split(doc, "```") {
		_, block, _ = strings.Cut(block, "\n")
		if i%2 == 0 || !strings.HasPrefix(block, "$ ") {
			continue
		}
		for l := range strings.Lines(block) {
			l = strings.TrimRight(l, "\n")
			if line, is := strings.CutPrefix(l, "$ "); is {
				line, comment, _ := strings.Cut(line, " # ")
				all = append(all, command{line: strings.TrimSpace(line), comment: comment})
				continue
			}
			c := &all[len(all)-1]
			c.output = append(c.output, l)
		}
	}
	return all
}

// check types the command. An answer may be no, and a search cut short where the comment says so.
func (c command) check(t *testing.T, dir string) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", c.line)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	want, _, _ := strings.Cut(c.comment, ":")
	meant := map[string]int{"safe": exitDone, "unsafe": exitNo, "incomplete": exitCut}
	if m, is := meant[want]; is && code != m || !is && code != exitDone && code != exitNo {
		t.Errorf("exit code %d: %v", code, err)
	}
	got := trimmed(string(out))
	for word := range strings.FieldsSeq(c.comment) {
		if word = strings.Trim(word, ",:"); !strings.Contains(got, word) {
			t.Errorf("%q is not in\n%s", word, got)
		}
	}
	if onCPUs.MatchString(c.line) && !strings.Contains(c.line, "--engine timed") {
		c.checkFirst(t, got)
		return
	}
	if pattern := c.pattern(); !pattern.MatchString(got) {
		t.Errorf("prints\n%s\nand the document has\n%s", got, strings.Join(c.output, "\n"))
	}
}

// checkFirst compares the first line, whatever its numbers are.
func (c command) checkFirst(t *testing.T, got string) {
	if len(c.output) == 0 {
		return
	}
	first, _, _ := strings.Cut(got, "\n")
	if digits.ReplaceAllString(first, "N") != digits.ReplaceAllString(c.output[0], "N") {
		t.Errorf("prints first\n%s\nand the document has\n%s", first, c.output[0])
	}
}

// pattern is what the shown lines match.
func (c command) pattern() *regexp.Regexp {
	if len(c.output) == 0 {
		return regexp.MustCompile("")
	}
	lines := make([]string, len(c.output))
	for i, l := range c.output {
		if lines[i] = regexp.QuoteMeta(l + "\n"); l == "..." {
			lines[i] = `(?s:.*\n)?`
		}
	}
	return regexp.MustCompile("^" + strings.Join(lines, "") + "$")
}

// trimmed is text without spaces at the ends of lines, and with one line feed at its end.
func trimmed(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestDocsName: a command that a document names without carrying it out has flags that there
// are, and a link leads to a file that is there.
func TestDocsName(t *testing.T) {
	named, linked := 0, 0
	t.Setenv("SLURM_ARRAY_TASK_ID", "1")
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(docs, "../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			linked++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: a link to %s: %v", filepath.Base(file), m[1], err)
			}
		}
		for i, block := range strings.Split(string(b), "```") {
			for line := range strings.Lines(block) {
				if i%2 == 0 || !strings.HasPrefix(line, "textpoke ") || strings.Contains(line, " ... ") {
					continue
				}
				named++
				line, _, _ = strings.Cut(strings.TrimSpace(line), " # ")
				line, _, _ = strings.Cut(line, " | ")
				line, _, _ = strings.Cut(line, " -- ")
				line, _, _ = strings.Cut(line, " >") // help is no file of the tree
				out, err := exec.CommandContext(t.Context(), "sh", "-c", line+" --help").CombinedOutput()
				if err != nil {
					t.Errorf("%s: %s: %s", filepath.Base(file), line, out)
				}
			}
		}
	}
	if named < 35 || linked < 100 {
		t.Errorf("%d commands and %d links: want more", named, linked)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
