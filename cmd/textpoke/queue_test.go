// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// queueServer is a queue for one test, which may ask for a token.
func queueServer(t *testing.T, token ...string) (address string) {
	t.Helper()
	s, err := nats.NewServer(&nats.Options{Host: "127.0.0.1", Port: nats.RANDOM_PORT, JetStream: true,
		StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Authorization: strings.Join(token, "")})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the queue does not start")
	}
	return s.ClientURL()
}

// startWorker lets a worker take points until the test ends.
func startWorker(t *testing.T, address string, flags ...string) {
	t.Helper()
	ctx, dismiss := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		var out, errs bytes.Buffer
		args := append([]string{"worker", "--queue", address, "--jobs", "2"}, flags...)
		if code := run(ctx, args, streams{strings.NewReader(""), &out, &errs}); code != exitDone || out.Len() > 0 {
			t.Errorf("exit code %d, stderr: %s", code, errs.String())
		}
	})
	t.Cleanup(func() { dismiss(); working.Wait() })
}

// TestQueue: what workers do is what this process does, byte for byte, whatever it comes to.
func TestQueue(t *testing.T) {
	address := queueServer(t)
	startWorker(t, address)
	dir := t.TempDir()
	table, plan, filter := filepath.Join(dir, "my table.csv"), filepath.Join(dir, "my.plan"), filepath.Join(dir, "list")
	for name, text := range map[string]string{
		table:  done(t, "records", "convert", "gen:n=300,groups=3", "--to", "csv"),
		plan:   done(t, "plan", "--show", "breakpoint"),
		filter: "*1*\n*2*\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"plan --arch x86_64,arm64 --records gen:n=2000 --order random --seed 1,2,3 --cpus 8,64",
		"plan --arch x86_64 --records @ --buffer 8 --plan @plan --filter @@list",
		"plan --arch x86_64 --records gen:n=20 --buffer 8 --cpus 2,4 --budget ipis=1 --format json",
		"plan --arch x86_64 --records gen:n=20 --buffer 8 --seed 1,2,3,4,5 --shard 1/2",
		"run --engine timed --calibration e5-2699 --arch x86_64 --records gen:n=100 --cpus busy=2,isolated=1 --seed 1,2 " +
			"--interrupts",
		"run --engine timed --calibration e5-2699 --arch x86_64 --records gen:n=40 --cpus 2 --buffer 8 --mutate drop-sync-1",
		"check --arch x86_64 --sites 1 --mutate all",
		"check --arch x86_64 --sites 1 --cpus 3 --limit-states 50 --reduce none",
		"check --bug lost-text-mutex --format csv",
		"check --arch x86_64 --sites 1,2 --mutate drop-sync-1 --swarm 3 --limit-states 1000",
	} {
		var args []string
		for word := range strings.FieldsSeq(line) {
			args = append(args, strings.NewReplacer("@plan", plan, "@@list", "@"+filter, "@", table).Replace(word))
		}
		mine, theirs := filepath.Join(dir, "mine"), filepath.Join(dir, "theirs")
		want := textpoke(t, append(args, "--out", mine)...)
		got := textpoke(t, append(args, "--out", theirs, "--queue", address)...)
		if got.code != want.code || got.out != want.out {
			t.Errorf("%s: exit code %d, not %d: %s\n%s\nwithout a queue\n%s", args, got.code, want.code, got.err, got.out,
				want.out)
		}
		files, err := filepath.Glob(mine + "/*.csv")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v: no files: %s", args, err, want.err)
		}
		for _, file := range files {
			a, _ := os.ReadFile(file)
			if b, _ := os.ReadFile(filepath.Join(theirs, filepath.Base(file))); len(a) == 0 || !bytes.Equal(a, b) {
				t.Errorf("%s: %s is another one", args, filepath.Base(file))
			}
		}
		if !strings.Contains(got.err, "points by 1 workers") {
			t.Errorf("%s: %s", args, got.err)
		}
		if err := os.RemoveAll(mine); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(theirs); err != nil {
			t.Fatal(err)
		}
	}
}

// TestQueueLive: counts of the live engine are those of this process, too.
func TestQueueLive(t *testing.T) {
	address := queueServer(t)
	startWorker(t, address)
	args := []string{"run", "--engine", "live", "--arch", "x86_64", "--records", "gen:n=20", "--cpus", "2", "--buffer",
		"8", "--format", "csv", "--columns", "records,rounds,ipis"}
	want := done(t, args...)
	if r := textpoke(t, append(args, "--queue", address)...); r.code != exitDone || r.out != want {
		t.Errorf("exit code %d: %s\n%s", r.code, r.err, r.out)
	}
}

// TestQueueGoesOn: who has submitted may be interrupted, and finds the rows again.
func TestQueueGoesOn(t *testing.T) {
	address := queueServer(t)
	args := []string{"plan", "--records", "gen:n=500", "--arch", "x86_64", "--format", "csv", "--seed", manySeeds(60)}
	want := done(t, args...)
	startWorker(t, address)
	args = append(args, "--queue", address)
	ctx, out := cancelled(t, 40)
	if code := run(ctx, args, streams{nil, out, io.Discard}); code != exitCut {
		t.Fatalf("exit code %d", code)
	}
	r := textpoke(t, args...)
	if r.code != exitDone || r.out != want || !strings.Contains(r.err, "of them from before") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// TestQueueSecret: the word that a queue asks for stands in no file that is written, and in nothing that is printed.
func TestQueueSecret(t *testing.T) {
	const word = "hushword"
	address := queueServer(t, word)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(word+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	startWorker(t, address, "--token-file", file)
	for _, how := range [][]string{{"--queue", strings.Replace(address, "//", "//"+word+"@", 1)},
		{"--queue", address, "--token-file", file}} {
		out := t.TempDir()
		r := textpoke(t, append(how, "plan", "--arch", "x86_64", "--records", "gen:n=9", "--out", out)...)
		if r.code != exitDone || strings.Contains(r.out+r.err, word) {
			t.Errorf("%v: exit code %d: %s%s", how, r.code, r.out, r.err)
		}
		files, err := filepath.Glob(out + "/*")
		if err != nil || len(files) < 2 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, name := range files {
			if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte(word)) {
				t.Errorf("%v: the word stands in %s: %v", how, name, err)
			}
		}
	}
	if r := textpoke(t, "plan", "--records", "gen:n=9", "--queue", address); r.code != exitWrong {
		t.Errorf("without the word: exit code %d: %s", r.code, r.err)
	}
}

// TestQueueMarks: points that take too long are marked and listed, and the answer is no.
func TestQueueMarks(t *testing.T) {
	address := queueServer(t)
	startWorker(t, address, "--point-time", "1ns")
	out := t.TempDir()
	r := textpoke(t, "check", "--arch", "x86_64", "--sites", "2", "--cpus", "3", "--fetch", "weak,coherent", "--reduce", "none",
		"--queue", address, "--out", out)
	if r.code != exitNo || strings.Count(r.err, "it took longer than 1ns\n") != 2 ||
		!strings.Contains(r.err, "2 of 2 points were not done") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// TestQueueRefuses are command lines that do not go together, and servers that are not there.
func TestQueueRefuses(t *testing.T) {
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{"plan --queue localhost", exitWrong, `--queue "localhost": want nats://HOST:PORT`},
		{"plan --queue nats://127.0.0.1:1 --arch x86_64 --records gen:n=9", exitAlone, "no server of a queue answers"},
		{"plan --queue nats://127.0.0.1:1 --steps", exitWrong, "--steps goes without --queue"},
		{"plan --queue nats://127.0.0.1:1 --jobs 2", exitWrong, "--jobs goes without --queue"},
		{"run --queue nats://127.0.0.1:1 --trace x", exitWrong, "--trace goes without --queue"},
		{"check --queue nats://127.0.0.1:1 --record x", exitWrong, "--record goes without --queue"},
		{"check --swarm 0", exitWrong, `--swarm "0": want whole numbers from 1 to`},
		{"check --swarm 2 --limit-time 1s", exitWrong, "--limit-time goes without --swarm"},
		{"experiment pareto --shard 0/2", exitWrong, "its report is made of all of its rows"},
		{"worker", exitWrong, `--queue "": want the address`},
		{"plan --queue nats://127.0.0.1:1 --token-file /nowhere", exitWrong, "--token-file: open /nowhere: no such file"},
		{"plan --queue nats://127.0.0.1:1 --token-file /dev/null", exitWrong, "--token-file /dev/null: it is empty"},
		{"plan --queue nats://127.0.0.1:1 --tls-cert x", exitWrong, "--tls-cert goes with --tls-key"},
		{"worker --queue nats://127.0.0.1:1 --jobs 0", exitWrong, `--jobs "0": want whole numbers from 1 to 65536`},
	} {
		r := textpoke(t, strings.Fields(tt.line)...)
		if r.code != tt.code || !strings.Contains(r.err, tt.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", tt.line, r.code, r.err)
		}
	}
}
