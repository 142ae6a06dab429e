// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal of so many rows (pty(7)), and what was written to it by the time
// that it is closed.
func terminal(t *testing.T, rows uint16) (screen *os.File, seen func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 80})
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	text := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(master) // ends with an error when nobody has the other side open
		text <- strings.ReplaceAll(string(b), "\r\n", "\n")
	}()
	t.Cleanup(func() { screen.Close(); master.Close() })
	return screen, func() string {
		screen.Close()
		return <-text
	}
}

// TestPager: what is longer than the screen goes through the program that PAGER names;
// PAGER= turns that off, and what fits, or goes elsewhere, is written as it is. Colours are
// for terminals, unless somebody says otherwise.
func TestPager(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	t.Setenv("TERM", "xterm")
	run80 := func(rows uint16, args ...string) string {
		screen, seen := terminal(t, rows)
		if code := run(t.Context(), args, streams{strings.NewReader(""), screen, io.Discard}); code > exitNo {
			t.Fatalf("%v: exit code %d", args, code)
		}
		return seen()
	}
	list := []string{"check", "--list"}
	t.Setenv("PAGER", "sed s/^/paged:/")
	if got := run80(24, list...); !strings.HasPrefix(got, "paged:") {
		t.Errorf("247 names on 24 lines: %.80q", got)
	}
	if got := run80(24, "version"); strings.Contains(got, "paged:") {
		t.Errorf("a line goes through the pager: %q", got)
	}
	if got := done(t, list...); strings.Contains(got, "paged:") {
		t.Errorf("what is no terminal goes through the pager: %.80q", got)
	}
	t.Setenv("PAGER", "")
	if got := run80(24, list...); !strings.HasPrefix(got, "2") {
		t.Errorf("PAGER=: %.80q", got)
	}
	t.Setenv("PAGER", "no-such-pager-here 2>/dev/null")
	if got := run80(24, list...); !strings.HasPrefix(got, "2") {
		t.Errorf("a pager that is not there: %.80q", got)
	}

	check := []string{"check", "--arch", "x86_64", "--sites", "1"}
	const green = "\x1b[32mSAFE\x1b[0m"
	for _, c := range []struct {
		noColor, color string
		green          bool
	}{{"", "auto", true}, {"1", "auto", false}, {"1", "always", true}, {"", "never", false}} {
		t.Setenv("NO_COLOR", c.noColor)
		if got := run80(60, append(check, "--color", c.color)...); strings.Contains(got, green) != c.green {
			t.Errorf("NO_COLOR=%s --color %s: %.80q", c.noColor, c.color, got)
		}
	}
	if got := done(t, check...); strings.Contains(got, "\x1b") {
		t.Errorf("colours in what is no terminal: %.80q", got)
	}
}

// TestScreens: what is for people fits their screen, what is read by programs stays a file, and a dumb terminal is shown no
// progress.
func TestScreens(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("PAGER", "")
	screen, seen := terminal(t, 60)
	if code := run(t.Context(), []string{"calibrate", "show", "e5-2699"}, streams{strings.NewReader(""), screen, io.Discard}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	text := seen()
	if !strings.Contains(text, "round_setup") || !strings.Contains(text, "500 ns (100 to 2000), assumed: ") {
		t.Errorf("%.300s", text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 81 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	if got := done(t, "calibrate", "show", "e5-2699"); !strings.HasPrefix(got, "quantity,value,unit,") {
		t.Errorf("%.100s", got)
	}
	for term, want := range map[string]bool{"xterm": true, "dumb": false} {
		t.Setenv("TERM", term)
		screen, seen := terminal(t, 24)
		if p := newProgress(screen); (p != nil) != want {
			t.Errorf("TERM=%s: progress %v", term, p)
		}
		seen()
	}
}
