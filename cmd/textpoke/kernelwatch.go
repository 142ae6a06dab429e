// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/kernels/watch"
	"github.com/textpoke/textpoke/results/budget"
	"github.com/textpoke/textpoke/results/interrupts"
)

// watchFlags is the flags of watch.
type watchFlags struct {
	interval, length time.Duration
	rows, budget     []string
	isolated, trace  string
	metrics, by      string
	names, causes    bool
	top              bool
}

func kernelWatch(c *common) *cobra.Command {
	var w watchFlags
	cmd := newCommand("watch [READING...]", func(cmd *cobra.Command, args []string) error {
		return w.watch(cmd, c, args)
	}, live)
	c.prints(cmd, "", watch.Columns.Table("watch"))
	c.prints(cmd, "with --causes", watch.CauseColumns.Table("causes"))
	return declare(cmd, "kernel watch", &w, strings.Join(watch.Sources, "|"), watch.Limits.Help())
}

// watch watches, and says at the end what was over the budget.
func (w *watchFlags) watch(cmd *cobra.Command, c *common, saved []string) (err error) {
	var limits []budget.Limit
	if cmd.Flags().Changed("budget") {
		if limits, err = watch.Limits.Parse(w.budget); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	watcher := watch.Watcher{Options: interrupts.Options{Rows: w.rows}, Isolated: watch.IsolatedCPUs(watch.IsolatedFile)}
	if cmd.Flags().Changed("isolated") {
		if watcher.Isolated, err = watch.ParseCPUs(w.isolated); err != nil {
			return fmt.Errorf("--isolated: %w", err)
		}
	}
	switch {
	case cmd.Flags().Changed("for") && w.length < w.interval:
		return fmt.Errorf("--for %v: want an interval of %v or more", w.length, w.interval)
	case (w.names || w.causes) && len(saved) > 0:
		return errors.New("--names and --causes go with this machine, and not with saved readings")
	case w.by != "" && !w.names && !w.causes:
		return errors.New("--by goes with --names or --causes")
	}
	l := &watching{flags: w, c: c, Watcher: watcher, budget: limits, out: &output{table: watch.Columns.Table("watch")}}
	if w.trace != "" {
		f, failed := files.Create(w.trace, 0o666)
		if failed != nil {
			return fmt.Errorf("--trace: %w", failed)
		}
		l.timeline = watch.NewTimeline(f)
		defer func() { err = keepTrace(f, l.timeline.Close, err) }()
	}
	if w.names || w.causes {
		var end func() error
		if end, err = l.listen(cmd.Context()); err != nil {
			return fmt.Errorf("--%w", err)
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if w.causes {
		l.out.table = watch.CauseColumns.Table("causes")
	}
	return l.look(cmd.Context(), saved)
}

// watching is one watch in progress.
type watching struct {
	watch.Watcher
	flags    *watchFlags
	c        *common
	out      *output
	budget   []budget.Limit
	over     []string // lines about the first intervals over the budget
	more     int      // how many came behind these
	timeline *watch.Timeline
	causes   *watch.Causes
	server   serverName
}

// mostOver bounds the lines about intervals over the budget, however long the watch.
const mostOver = 1000

// look takes all readings and writes their rows.
func (l *watching) look(ctx context.Context, saved []string) error {
	l.c.note(saved...)
	f, err := l.c.openFiles()
	if err != nil {
		return err
	}
	l.out.c, l.out.keep = l.c, f != nil
	if l.out.hidden = l.c.people(); !l.out.hidden {
		if err := l.out.begin(); err != nil {
			return err
		}
	}
	if len(saved) > 0 {
		err = l.replay(saved)
	} else {
		err = l.machine(ctx)
	}
	if l.flags.causes && err == nil {
		for _, t := range l.causes.Tallies() {
			if err = l.out.add(watch.CauseColumns.Cells(t)...); err != nil {
				break
			}
		}
	}
	if err := l.out.finish(f, err); err != nil {
		return err
	}
	if len(l.over) == 0 {
		return nil
	}
	w := l.c.beside()
	fmt.Fprintln(w, "over the budget")
	for _, line := range l.over {
		fmt.Fprintln(w, " ", line)
	}
	if l.more > 0 {
		fmt.Fprintf(w, "  and %d more\n", l.more)
	}
	return errNo
}

// replay takes saved readings, one an interval.
func (l *watching) replay(saved []string) error {
	for i, file := range saved {
		s, err := interrupts.Read(file)
		if err == nil {
			err = l.take(s, time.Duration(i)*l.flags.interval, l.flags.interval)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// machine reads this one until its time is over. That is how a watch ends, and nothing is cut short by it.
func (l *watching) machine(ctx context.Context) error {
	if l.flags.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.flags.length+l.flags.interval/2)
		defer cancel()
	}
	tick := time.NewTicker(l.flags.interval)
	defer tick.Stop()
	start := time.Now()
	last := start
	for {
		s, err := interrupts.Read(interrupts.ProcFile)
		if err != nil {
			return err
		}
		now := time.Now()
		if err := l.take(s, now.Sub(start), now.Sub(last)); err != nil {
			return err
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// take takes one reading.
func (l *watching) take(s interrupts.Snapshot, at, interval time.Duration) error {
	rows, err := l.Next(s, at, interval)
	if lost, ok := errors.AsType[*watch.Lost](err); ok {
		l.c.logger().Warn("interval lost", zap.Duration("at", at), zap.String("why", lost.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	calls := ""
	if l.causes != nil {
		l.server.clients = ""
		if calls, err = l.causes.Take(); err != nil {
			return err
		}
		l.server.since = time.Now()
		err = l.expose()
		if err == nil && l.flags.top && l.c.people() && interval > 0 {
			err = l.top(at)
		}
		if err != nil {
			return err
		}
	}
	for i := range rows {
		r := &rows[i]
		r.Calls = calls
		if l.timeline != nil {
			l.timeline.Add(r)
		}
		if l.c.people() && !l.flags.top {
			fmt.Fprintln(l.c.streams.out, r.Sentence())
		}
		cells, err := watch.Columns.Row(r)
		if err == nil {
			if over, _ := budget.Exceeded(l.budget, watch.Columns.Table("watch").Columns, cells); len(over) > 0 {
				if len(l.over) < mostOver {
					l.over = append(l.over, fmt.Sprintf("%.3f s, %s: %s", at.Seconds(), r.Name, budget.Say(over)))
				} else {
					l.more++
				}
			}
			if !l.flags.causes {
				err = l.out.addRow(cells)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
