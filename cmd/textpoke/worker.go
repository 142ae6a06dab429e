// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/results/queue"
	"github.com/textpoke/textpoke/service/api"
)

// addressFlag is addresses of a queue. What is shown of it holds no password.
type addressFlag struct{ url *string }

func (a addressFlag) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(one)
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("want nats://HOST:PORT")
		}
	}
	*a.url = text
	return nil
}

func (a addressFlag) String() string {
	if a.url == nil { // the flag package asks the zero value
		return ""
	}
	all := strings.Split(*a.url, ",")
	for i, one := range all {
		if u, err := url.Parse(one); err == nil {
			all[i] = u.Redacted()
		}
	}
	return strings.Join(all, ",")
}

func (addressFlag) Type() string { return "address" }

func workerCommand(c *common) *cobra.Command {
	var jobs int
	var idle time.Duration
	cmd := &cobra.Command{
		Use: "worker", Annotations: map[string]string{live: ""},
		Short: "do points of sweeps that others put into a queue",
		Long: "worker takes points from a queue that plan, run and check fill with --queue, and puts what they\n" +
			"come to back. It takes those of its own version alone. Killed at any moment it loses nothing:\n" +
			"another worker does what it was at. SIGTERM or an interrupt gives that back at once, and the\n" +
			"exit code is 0. See docs/queue.md.",
		Example: "  textpoke worker --queue nats://queue.example:4222\n" +
			"  textpoke worker --queue nats://127.0.0.1:4222 --jobs 1 --idle 1m",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.queue == "":
				return errors.New("--queue \"\": want the address of a queue, nats://HOST:PORT")
			case jobs < 1:
				return fmt.Errorf("--jobs %d: want 1 or more", jobs)
			case idle < 0:
				return fmt.Errorf("--idle %v: want a time above 0, or 0 for never", idle)
			}
			return c.work(cmd.Context(), jobs, idle)
		},
	}
	f := cmd.Flags()
	f.Var(addressFlag{&c.queue}, "queue",
		"take points from this queue: `nats://HOST:PORT`, or several with commas between them")
	f.IntVar(&jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of points that are worked on at a time")
	f.DurationVar(&idle, "idle", 0, "end when there was nothing to do for this `time`, such as 1m; 0 for never")
	return cmd
}

// work does points until somebody wants an end, or there are none.
func (c *common) work(ctx context.Context, jobs int, idle time.Duration) error {
	name := processName()
	q, err := queue.Connect(ctx, c.queue, queue.Options{Program: programOf(built), Name: name})
	if errors.Is(err, queue.ErrNoServer) {
		return noServer{fmt.Errorf("--queue: %w", err)}
	}
	if err != nil {
		return fmt.Errorf("--queue: %w", err)
	}
	defer q.Close()
	fmt.Fprintf(c.streams.err, "textpoke: worker %s of textpoke %s, %d at a time\n", name, programOf(built), jobs)
	return q.Work(ctx, queue.Worker{
		Jobs: jobs, Idle: idle, Log: func(line string) { fmt.Fprintf(c.streams.err, "textpoke: %s\n", line) },
		Open: func(ctx context.Context, run queue.Run, files map[string]string) (queue.Points, error) {
			return employed(ctx, run, files, max(1, runtime.GOMAXPROCS(0)/jobs))
		},
	})
}

// employers are the commands whose points workers do.
var employers = []string{"plan", "run", "check"}

// employed carries a command line out up to where its points would be done.
func employed(ctx context.Context, run queue.Run, files map[string]string, cores int) (queue.Points, error) {
	if len(run.Args) < 2 || !slices.Contains(employers, run.Args[1]) {
		return nil, fmt.Errorf("%q: not one of %s", strings.Join(run.Args, " "), strings.Join(employers, ", "))
	}
	defer inputs.Elsewhere(files)()
	own := newCommon(streams{strings.NewReader(""), io.Discard, io.Discard})
	var points *employee
	own.cores, own.employ = cores, func(w work) { points = &employee{w} }
	root := rootCommand(own)
	root.SetArgs(run.Args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		return nil, err
	}
	if points == nil {
		return nil, fmt.Errorf("%q: it has no points", strings.Join(run.Args, " "))
	}
	if n := len(points.keys); n != run.Points {
		return nil, fmt.Errorf("%d points, and %d here", run.Points, n)
	}
	return points, nil
}

// employee does the points of a command.
type employee struct{ work }

// Key implements queue.Points; so do the others.
func (e *employee) Key(n int) (string, error) {
	if n < 0 || n >= len(e.keys) {
		return "", fmt.Errorf("point %d of %d", n, len(e.keys))
	}
	return e.keys[n], nil
}

func (e *employee) Alone() bool { return e.alone }

func (e *employee) Do(ctx context.Context, n int) ([]byte, error) { return e.do(ctx, n) }

func (e *employee) Close() {}

// programOf names the programs whose rows are the same. Where the version does not say of
// which source a program is, its contents do.
func programOf(v api.Version) string {
	name := v.Version + " " + v.Revision
	if v.Revision != "" && !strings.HasSuffix(v.Revision, "+") {
		return name
	}
	sum := sha256.New()
	path, err := os.Executable()
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			_, err = io.Copy(sum, f)
			f.Close()
		}
	}
	if err != nil {
		return name
	}
	return strings.TrimSpace(name) + " (program " + hex.EncodeToString(sum.Sum(nil)[:6]) + ")"
}
