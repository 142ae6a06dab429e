// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestMain lets tests run this very program as a command and its workers.
func TestMain(m *testing.M) {
	switch log := os.Getenv("TEXTPOKE_TEST_LOG"); {
	case log == "":
		os.Exit(m.Run())
	case os.Args[1] == "worker":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := os.WriteFile(filepath.Join(log, fmt.Sprint("began-", os.Getpid())), nil, 0o600); err != nil {
			os.Exit(9)
		}
		<-ctx.Done()
		if err := os.WriteFile(filepath.Join(log, fmt.Sprint("ended-", os.Getpid())), nil, 0o600); err != nil {
			os.Exit(9)
		}
	default:
		for began := []string(nil); len(began) < 2; { // the workers
			began, _ = filepath.Glob(log + "/began-*")
		}
		nc, err := nats.Connect(os.Args[len(os.Args)-1])
		if err != nil {
			os.Exit(8)
		}
		nc.Close()
		fmt.Println(strings.Join(os.Args[1:len(os.Args)-1], " "))
		os.Exit(3)
	}
}

// TestCommand: a command has a queue and workers, its exit code is the program's, and nothing
// is left.
func TestCommand(t *testing.T) {
	log := t.TempDir()
	t.Setenv("TEXTPOKE_TEST_LOG", log)
	t.Setenv("TMPDIR", t.TempDir())
	var out, errs bytes.Buffer
	code := execute(t.Context(), []string{"--workers", "2", "--", os.Args[0], "plan", "--arch", "x86_64"}, &out, &errs)
	if code != 3 || out.String() != "plan --arch x86_64 --queue\n" || errs.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	if ended, err := filepath.Glob(log + "/ended-*"); err != nil || len(ended) != 2 {
		t.Errorf("%v: %d of 2 workers have ended", err, len(ended))
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v: %v is left", err, left)
	}
}

// TestWorkersOfNothing: workers without a command would have nobody's program.
func TestWorkersOfNothing(t *testing.T) {
	var out, errs bytes.Buffer
	code := execute(t.Context(), []string{"--workers", "2"}, &out, &errs)
	if code != 2 || !strings.Contains(errs.String(), "--workers goes with a COMMAND") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// stopAtLine ends a server when it has said its address.
type stopAtLine struct {
	bytes.Buffer
	stop func()
	line func(string)
}

func (s *stopAtLine) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	s.line(string(b))
	s.stop()
	return n, err
}

// TestServes: it says how workers reach it, wants the word that it was given, and keeps what it
// has in its directory.
func TestServes(t *testing.T) {
	dir, word := t.TempDir(), filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out := &stopAtLine{stop: stop, line: func(line string) {
		address := strings.TrimPrefix(strings.TrimSpace(line), "textpoke worker --queue nats://")
		if _, err := nats.Connect("nats://" + address); err == nil {
			t.Error("whoever knows no word is let in")
		}
		nc, err := nats.Connect("nats://secret@" + address)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		nc.Close()
	}}
	var errs bytes.Buffer
	args := []string{"--listen", "127.0.0.1:0", "--data", dir, "--token-file", word}
	if code := execute(ctx, args, out, &errs); code != 0 || out.Len() == 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "jetstream")); err != nil {
		t.Error(err)
	}
}

func TestWrong(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ line, want string }{
		{"--listen nowhere", `--listen "nowhere": want HOST:PORT`},
		{"--listen 127.0.0.1:99999", `want HOST:PORT`},
		{"--token-file " + empty, "it is empty"},
		{"--token-file " + empty + "-not", "--token-file: open"},
		{"--cluster 127.0.0.1:0", "--cluster goes with --name"},
		{"--cluster 127.0.0.1:0 --name a --routes b", `--routes "b": want nats://HOST:PORT`},
		{"--workers 0 -- true", "--workers 0: want 1 or more"},
		{"--workers 1 -- /no/such/program", "/no/such/program"},
		{"--nosuch", "unknown flag"},
	} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), strings.Fields(tt.line), &out, &errs)
		if code != exitWrong || !strings.Contains(errs.String(), tt.want) || out.Len() > 0 {
			t.Errorf("%s: exit code %d: %s", tt.line, code, errs.String())
		}
	}
}
