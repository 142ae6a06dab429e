// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestMain is also the programs that tests start: one that is probed, which notes for each byte whether probes are
// on, and answers it, and the guest itself,
// which notes what it was started for.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "probed-program":
		for b := make([]byte, 1); ; {
			if _, err := os.Stdin.Read(b); err != nil {
				return
			}
			_ = add("/hits", field(tracing+"events/vm/enable"))
			_, _ = os.Stdout.WriteString("!")
		}
	case "init":
		f, err := os.OpenFile("/started", os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, _ = fmt.Fprintln(f, strings.Join(os.Args[1:], " "))
		}
		select {}
	}
	os.Exit(m.Run())
}

// root is a folder that a test has as its root, with the files of a kernel in it.
type root string

// inRoot does something in a thread whose root is a new folder with these files.
func inRoot(t *testing.T, files map[string]string, do func(r root)) {
	t.Helper()
	r := root(t.TempDir())
	for name, text := range files {
		r.write(t, name, text)
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and ends with it
		err := syscall.Unshare(syscall.CLONE_FS)
		if err == nil {
			err = syscall.Chroot(string(r))
		}
		if err == nil {
			err = syscall.Chdir("/")
		}
		defer func() { done <- err }()
		if err == nil {
			do("/")
		}
	}()
	if err := <-done; err != nil {
		t.Skipf("skipped: a root of one's own: %v", err)
	}
}

func (r root) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(string(r), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holds is what a file holds.
func (r root) holds(name string) string {
	b, err := os.ReadFile(filepath.Join(string(r), name))
	if err != nil {
		return "?"
	}
	return string(b)
}

// heard is all that the guest tells on the console meanwhile, each line's text; the checksums are right.
func heard(t *testing.T, do func()) (lines []string) {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string)
	go func() {
		b, _ := io.ReadAll(from)
		said <- string(b)
	}()
	was := os.Stdout
	os.Stdout = to
	do()
	os.Stdout = was
	_ = to.Close()
	text := <-said
	for part := range strings.SplitSeq(text, "\n@vm ") {
		if part == "" {
			continue
		}
		sum, line, _ := strings.Cut(strings.TrimSuffix(part, "\n"), " ")
		if want := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(line))); sum != want || !json.Valid([]byte(line)) {
			t.Errorf("%q has the checksum %s, want %s", line, sum, want)
		}
		lines = append(lines, line)
	}
	return lines
}
