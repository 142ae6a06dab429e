// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/version"
	"github.com/textpoke/textpoke/results/queue"
)

// workerFlags is the flags of worker.
type workerFlags struct {
	jobs, tries, pointMemory int
	idle, silence, pointTime time.Duration
}

func workerCommand(c *common) *cobra.Command {
	var w workerFlags
	cmd := newCommand("worker", func(cmd *cobra.Command, _ []string) error {
		if c.queue == "" {
			return errors.New("--queue \"\": want the address of a queue, nats://HOST:PORT")
		}
		return c.work(cmd.Context(), &w)
	}, live)
	addQueue(cmd, c, "take points from this queue")
	return declare(cmd, "worker", &w, runtime.GOMAXPROCS(0))
}

// work does points until ctx ends, or there are none.
func (c *common) work(ctx context.Context, w *workerFlags) error {
	name := processName()
	reach, cancel := ctx, func() {}
	if w.idle > 0 {
		reach, cancel = context.WithTimeout(ctx, w.idle)
	}
	q, err := c.connect(reach, queue.Options{AckWait: w.silence, Tries: w.tries, Waiting: func() {
		fmt.Fprintf(c.streams.err, "textpoke: no server answers at %s: waiting for one\n", withoutUser(c.queue))
	}})
	cancel()
	if err != nil && ctx.Err() != nil {
		return nil // told to end before there was anything to do
	}
	if err != nil {
		return err
	}
	defer q.Close()
	fmt.Fprintf(c.streams.err, "textpoke: worker %s of textpoke %s, %d at a time\n", name, programOf(built), w.jobs)
	return q.Work(ctx, queue.Worker{
		Jobs: w.jobs, Idle: w.idle, Time: w.pointTime, Memory: uint64(w.pointMemory) << 20,
		Log: func(line string) { fmt.Fprintf(c.streams.err, "textpoke: %s\n", line) },
		Open: func(ctx context.Context, run queue.Run, files map[string]string) (queue.Points, error) {
			return openRun(ctx, run, files, max(1, runtime.GOMAXPROCS(0)/w.jobs))
		},
	})
}

// openers, by command, fill the choices of a request and make its points ready.
var openers = map[string]func(context.Context, *common, choice.Request) (queue.Points, error){
	"plan": func(ctx context.Context, c *common, asked choice.Request) (queue.Points, error) {
		p := newPlan()
		return opened(p.fields(), asked, func() (*sweep, error) { return p.sweep(ctx, c, asked) }, (*sweep).points)
	},
	"run": func(ctx context.Context, c *common, asked choice.Request) (queue.Points, error) {
		r := newRun()
		return opened(r.fields(), asked, func() (*sweep, error) { return r.sweep(ctx, c, asked) }, (*sweep).points)
	},
	"check": func(_ context.Context, c *common, asked choice.Request) (queue.Points, error) {
		k := &checkFlags{}
		return opened(k.fields(), asked, func() (*search, error) { return k.search(c, asked) }, (*search).points)
	},
}

// opened fills the fields from a request, opens the sweep that they describe, and returns its points.
func opened[S any, P queue.Points](fields []*choice.Field, asked choice.Request, open func() (S, error), points func(S) P) (
	queue.Points, error) {
	if err := choice.Complete(fields); err != nil {
		return nil, err
	}
	if _, err := asked.Config.Fill(fields); err != nil {
		return nil, err
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	return points(s), nil
}

// openRun makes the points of a run ready.
func openRun(ctx context.Context, run queue.Run, files map[string]string, cores int) (queue.Points, error) {
	open := openers[run.Request.Name]
	if open == nil {
		return nil, fmt.Errorf("%q: not one of %s", run.Request.Name,
			strings.Join(slices.Sorted(maps.Keys(openers)), ", "))
	}
	came := choice.Request{Name: run.Request.Name, Config: maps.Clone(run.Request.Config)}
	came.Config["queue"] = []string{""}
	if err := together(came); err != nil {
		return nil, err
	}
	defer inputs.Elsewhere(files)()
	c := newCommon(streams{strings.NewReader(""), io.Discard, io.Discard})
	c.cores = cores
	if _, err := run.Request.Config.Fill([]*choice.Field{seedField(c), shardField(c)}); err != nil {
		return nil, err
	}
	return open(ctx, c, run.Request)
}

// programOf names the programs whose rows are the same. Where the version does not say of
// which source a program is, its contents do.
func programOf(v version.Program) string {
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
