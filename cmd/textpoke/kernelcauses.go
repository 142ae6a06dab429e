// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/kernels/watch"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/service/api"
)

// listen has causes heard. The function that ends it tells what hearing them cost.
func (l *watching) listen(ctx context.Context) (end func() error, err error) {
	dir, err := tracefs.Mount()
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	before, err := interrupts.Read(interrupts.ProcFile)
	if err != nil {
		return nil, err
	}
	var by string
	if l.causes, by, err = watch.Listen(tracefs.At(dir), l.Isolated, l.flags.by); err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	after, err := interrupts.Read(interrupts.ProcFile)
	if err != nil {
		return nil, err
	}
	l.server.since = time.Now()
	l.causes.Who = func(task string, pid int) string { return l.server.of(ctx, l.c, task, pid) }
	begun := time.Now()
	return func() error {
		var used unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
			return err
		}
		cpu := time.Duration(used.Utime.Nano()+used.Stime.Nano()) + l.causes.Ran()
		fmt.Fprintf(l.c.streams.err, "watching by %s cost each CPU up to %d function calls to begin, and %.1f %% of one CPU; "+
			"%d events were lost\n",
			by, mostCalls(before, after), 100*cpu.Seconds()/time.Since(begun).Seconds(), l.causes.Lost())
		return l.causes.Close()
	}, nil
}

// top shows the causes of the last interval, those that interrupted most first, as far as there is room: on a terminal in
// place of those before.
func (l *watching) top(at time.Duration) error {
	tallies := slices.DeleteFunc(l.causes.Tallies(), func(t *watch.Tally) bool { return t.Now == 0 })
	slices.SortStableFunc(tallies, func(a, b *watch.Tally) int { return cmp.Compare(b.Now, a.Now) })
	sum := spelling.Sum(spelling.Each(tallies, func(t *watch.Tally) int64 { return t.Now }))
	table, err := watch.TopColumns.Fill("top", tallies[:min(len(tallies), l.c.height()-topLines)])
	if err != nil {
		return err
	}
	if l.c.screen != nil {
		fmt.Fprint(l.c.streams.out, "\x1b[H\x1b[J") // ECMA-48: the cursor to the first line, and all below it erased
	}
	fmt.Fprintf(l.c.streams.out, "%.3f s: interrupts %d, causes %d\n\n", at.Seconds(), sum, len(tallies))
	return l.c.look("top").Write(l.c.streams.out, results.FormatTable, table)
}

// topLines are the lines of a screen that are not rows of top.
const topLines = 5

// mostCalls is the most that rows of function calls grew on one CPU.
func mostCalls(before, after interrupts.Snapshot) (most int64) {
	rows, _ := interrupts.Compare(interrupts.Pair{Before: before, After: after}, interrupts.Options{}) // 0 where CPUs came
	for _, r := range rows {
		if r.Explained && len(r.Delta) > 0 {
			most = max(most, slices.Max(r.Delta))
		}
	}
	return most
}

// expose writes the file of --metrics anew.
func (l *watching) expose() error {
	if l.flags.metrics == "" {
		return nil
	}
	r := prometheus.NewRegistry()
	labels := []string{"cause", "function", "sender", "pid"}
	times := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "textpoke_watch_interrupts",
		Help: "interrupts of any CPU since the watch began"}, labels)
	isolated := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "textpoke_watch_isolated_interrupts",
		Help: "those of isolated CPUs"}, labels)
	r.MustRegister(times, isolated)
	for _, t := range l.causes.Tallies() {
		of := []string{t.Kind, t.Function, strings.ToValidUTF8(t.Task, "?"), strconv.Itoa(t.PID)}
		times.WithLabelValues(of...).Set(float64(t.Times))
		isolated.WithLabelValues(of...).Set(float64(t.Isolated))
	}
	all, err := r.Gather()
	if err == nil {
		err = files.Write(l.flags.metrics, 0o644, func(w io.Writer) error {
			for _, family := range all {
				if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

// serverName names threads of the server of this machine's kernel.
type serverName struct {
	since   time.Time // of the last reading
	clients string    // whose updates the server has carried out since; "" while nothing asked for it
}

// of is a task's name; of a thread of the server it says for which clients.
func (n *serverName) of(ctx context.Context, c *common, task string, pid int) string {
	own := fmt.Sprintf("/proc/self/task/%d", pid)
	if _, err := os.Stat(own); task != "textpoke" || err == nil || defaultServer() != unixPrefix+kernelSocket {
		return task
	}
	if n.clients == "" {
		n.clients = n.ask(ctx, c)
	}
	return n.clients
}

func (n *serverName) ask(ctx context.Context, c *common) string {
	var page api.Updates
	s, err := (&ctlFlags{common: c, server: defaultServer()}).open()
	if err == nil {
		err = s.ask(ctx, http.MethodGet, "/v1/updates?newest=true&limit=100", nil, &page)
	}
	if err != nil {
		c.logger().Warn("the server does not say for which clients it works", zap.Error(err))
		return "textpoke"
	}
	var clients []string
	for _, u := range page.Updates {
		if !u.Began.IsZero() && (u.Ended.IsZero() || u.Ended.After(n.since)) {
			clients = append(clients, u.Client)
		}
	}
	slices.Sort(clients)
	return strings.TrimSuffix("textpoke for "+strings.Join(slices.Compact(clients), ", "), " for ")
}
