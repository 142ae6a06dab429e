// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments/catalogue"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/api"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/service/lab"
	"github.com/textpoke/textpoke/service/page"
	"github.com/textpoke/textpoke/service/spans"
	"github.com/textpoke/textpoke/sim"
)

func serveCommand(c *common) *cobra.Command {
	s := &serveFlags{common: c}
	cmd := newCommand("serve", func(cmd *cobra.Command, _ []string) error {
		if err := s.check(cmd); err != nil {
			return err
		}
		if s.verify != "" {
			return s.verifyData(cmd.Context())
		}
		if s.release {
			return s.releaseInstance()
		}
		if !cmd.Flags().Changed("log") {
			c.level = "info"
		}
		return s.run(cmd)
	}, live)
	c.prints(cmd, "with --verify", partColumns.Table("parts"))
	s.register(cmd)
	return cmd
}

// serving is a server and its parts.
type serving struct {
	log     *zap.Logger
	store   *journal.Store
	handler *api.Handler
	http    *http.Server
	failed  chan error // of http
	service *service.Service
	lab     *lab.Lab
	spans   *spans.Writer // nil for none
	drain   time.Duration

	certificate keyPair
}

func (s *serveFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	tokens, err := s.tokens()
	if err != nil {
		return err
	}
	v := &serving{failed: make(chan error, 1), drain: s.drain, log: s.serverLog()}
	secure, err := v.certificate.load(s)
	if err != nil {
		return err
	}
	on, err := s.machine(cmd)
	if err != nil {
		return err
	}
	boot, err := s.boot("/proc/sys/kernel/random/boot_id", on.files, v.log)
	if err != nil {
		return err
	}
	var traced *os.File
	if s.spans != "" {
		if traced, err = inputs.At(s.spans, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
			return fmt.Errorf("--spans: %w", err)
		}
		defer traced.Close()
	}
	port, err := s.listener() // whatever is refused up to here leaves no data behind
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if v.store, err = journal.Open(ctx, s.data, service.Identity(on.table)); err != nil {
		return errors.Join(fmt.Errorf("--data %s: %w", s.data, err), port.Close())
	}
	if err := boot.write(); err != nil {
		return errors.Join(err, port.Close(), v.store.Close())
	}
	v.handler = api.New(api.Config{
		Page: http.HandlerFunc(page.Serve), Tokens: tokens, Log: v.log, Limits: api.Limits{Streams: s.eventStreams, Rate: s.rate},
		Version: built,
	})
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // before anybody hears of the server
	defer signal.Stop(hangup)
	if err := v.listen(s, port, secure); err != nil {
		return errors.Join(err, v.store.Close())
	}
	if traced != nil {
		v.spans = spans.New(traced)
	}
	err = v.start(ctx, s, on)
	if err == nil && v.service != nil { // otherwise it was stopped before it was there
		err = v.serve(ctx, s, hangup)
	}
	v.tell("STOPPING=1")
	if err = errors.Join(err, v.stop()); err == nil && s.on == onKernel && s.drain > 0 && !s.dryRun {
		err = s.releaseInstance() // what clients want is in the journal, and traced again after the next start
	}
	return err
}

// serve waits until there is a reason to stop.
func (v *serving) serve(ctx context.Context, s *serveFlags, hangup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-v.failed:
			return err
		case <-v.service.Failed(): // the process ends, and its supervisor may start it again
			return v.service.Ready()
		case <-hangup:
			v.reload(s)
		}
	}
}

// reload reads the tokens and the certificate again. If one cannot be read, it changes
// neither.
func (v *serving) reload(s *serveFlags) {
	tokens, err := s.tokens()
	if err == nil {
		_, err = v.certificate.load(s)
	}
	if err != nil {
		v.log.Error("not read again: all is as it was", zap.Error(err))
		return
	}
	v.handler.SetTokens(tokens)
	v.log.Info("read again", zap.String("token_file", s.tokenFile), zap.String("tls_cert", s.tlsCert))
}

// tell tells systemd, where that started us.
func (v *serving) tell(state string) {
	if err := notify(state); err != nil {
		v.log.Warn("NOTIFY_SOCKET", zap.Error(err))
	}
}

// listen answers at the port: until the machine runs, requests are told so.
func (v *serving) listen(s *serveFlags, l net.Listener, secure *tls.Config) error {
	v.http = v.handler.Server(s.connections)
	address, accept := "http://"+l.Addr().String(), v.http.Serve
	switch {
	case l.Addr().Network() == "unix":
		address = s.listen
	case secure != nil:
		address, v.http.TLSConfig = "https://"+l.Addr().String(), secure
		accept = func(l net.Listener) error { return v.http.ServeTLS(l, "", "") }
	}
	go func() { v.failed <- accept(l) }()
	_, err := fmt.Fprintln(s.streams.out, address)
	return err
}

// start brings the machine up and lets requests in. To be stopped meanwhile is no error
// of the request.
func (v *serving) start(ctx context.Context, s *serveFlags, on *servedMachine) (err error) {
	began := time.Now()
	v.service, err = service.Start(ctx, service.Config{
		Table: on.table, Machine: on.machine, Ops: on.ops, Store: v.store, Log: v.log,
		Budget: slices.Concat(s.budget, s.clientBudget), Quiet: s.quiet,
		Queue: s.queue, PerClient: s.perClient, Clients: s.clients,
		MaxWait: s.maxWait, Gather: s.gather, Compact: s.compactEvery, Look: lookEvery,
		Keep:     journal.Keep{Age: s.keepAge, Updates: s.keepUpdates, Bytes: int64(s.keepMegabyte) << 20},
		Observer: v.observer(),
	})
	if err == nil {
		v.lab, err = lab.Start(
			ctx,
			lab.Config{Store: v.store, Log: v.log, Revision: built.Revision, Experiments: catalogue.All()},
		)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil
	default:
		return err
	}
	v.handler.Ready(v.service, v.lab)
	v.tell("READY=1")
	v.log.Info("ready", zap.Duration("after", time.Since(began)), zap.String("records", on.table.Name()),
		zap.Int("count", on.table.Len()), zap.String("cpus", on.cpus), zap.String("data", s.data))
	return nil
}

// observer feeds the metrics and, where they are asked for, the spans.
func (v *serving) observer() service.Observer {
	o := v.handler.Observer()
	if v.spans != nil {
		counted := o.Ended
		o.Ended = func(c service.Course) {
			counted(c)
			v.spans.Tell(c)
		}
	}
	return o
}

// lookEvery is the time between two looks whether the journal is there and can be
// written.
const lookEvery = time.Second

// stop ends everything in order. A second signal ends the waiting: every promised update
// is on the disk by then.
func (v *serving) stop() error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	done := make(chan error, 1)
	go func() { done <- v.close() }()
	select {
	case err := <-done:
		return err
	case <-again:
		v.log.Warn("stopped at once: the next start carries out the updates that were not answered")
		return errCut
	}
}

// close drains, says what is left, and closes.
func (v *serving) close() error {
	v.handler.Drain()
	var errs []error
	if v.service != nil {
		errs = append(errs, v.drained())
	}
	v.handler.Stop()
	answered, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	if v.http.Shutdown(answered) != nil {
		v.http.Close() // connections whose clients do not read their answers
	}
	if v.lab != nil {
		v.lab.Close()
	}
	if v.service != nil {
		errs = append(errs, v.service.Close())
	}
	if v.spans != nil { // no update ends any more
		if err := v.spans.Close(answered); err != nil {
			v.log.Warn("--spans", zap.Error(err))
		}
	}
	errs = append(errs, v.store.Close())
	v.log.Info("stopped")
	return errors.Join(errs...)
}

// lastAnswers is how long clients may take to read their last answers: a variable, as
// a test must not win by waiting.
var lastAnswers = 3 * time.Second

// drained carries out what was accepted, as far as there is time.
func (v *serving) drained() error {
	ctx, cancel := context.WithTimeout(context.Background(), v.drain)
	defer cancel()
	left, err := v.service.Drain(ctx)
	for _, u := range left {
		v.log.Warn("left for the next start", zap.Int64("update", u.ID), zap.String("client", u.Client),
			zap.String("key", u.Key))
	}
	v.log.Info("drained", zap.Int("left", len(left)), zap.Error(err))
	if sim.Stopped(err) {
		return nil // that is what left says
	}
	return err
}

// notify tells the service manager how far this process is (sd_notify(3)), if NOTIFY_SOCKET
// names a socket; a name that begins with @ is an abstract one.
func notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}
