// SPDX-License-Identifier: Apache-2.0

// Command textpoke-queue is a server that keeps the points of sweeps for workers: NATS with
// JetStream, as one file that needs no other. Any nats-server will do as well.
//
// It is a program of its own because few need it, and because it would add a fifth to the
// size of textpoke.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	inputs.Until(ctx)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes are those of textpoke.
const exitWrong = 2

func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	cmd := command(out, errs)
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errs)
	err := cmd.ExecuteContext(ctx)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.ExitCode() >= 0:
		return ended.ExitCode() // the command has said why
	}
	fmt.Fprintf(errs, "textpoke-queue: %v\n", err)
	return exitWrong
}

// flags are those of the program.
type flags struct {
	listen, data, tokenFile, name, cluster string
	tlsCert, tlsKey, tlsCA                 string
	routes                                 []string
	workers                                int
	out, errs                              io.Writer
}

func command(out, errs io.Writer) *cobra.Command {
	o := flags{out: out, errs: errs}
	cmd := &cobra.Command{
		Use:   "textpoke-queue [-- COMMAND]",
		Short: "a queue of points for textpoke worker",
		Long: "textpoke-queue keeps the points of sweeps (textpoke plan|run|check --queue) until workers have\n" +
			"done them (textpoke worker), and what they came to until it was fetched. SIGTERM or an interrupt\n" +
			"ends it; with --data it goes on at the next start where it was.\n\n" +
			"With a COMMAND it carries that out on this machine: it starts --workers workers, runs the command\n" +
			"with --queue behind it, and ends with its exit code.",
		Example: "  textpoke-queue --data /var/lib/textpoke-queue --listen 0.0.0.0:4222 --token-file token\n" +
			"  textpoke-queue --name a --listen 0.0.0.0:4222 --cluster 0.0.0.0:6222 --routes nats://b:6222,nats://c:6222\n" +
			"  textpoke-queue --workers 2 -- textpoke plan --arch x86_64 --cpus 8,64",
		SilenceErrors: true, SilenceUsage: true, Version: version.Built().Version,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.Flags().Changed("workers"))
		},
	}
	cmd.SetVersionTemplate(version.Built().Line("textpoke-queue"))
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:4222", "`address` that it listens on; port 0 is a free one")
	f.StringVar(&o.data, "data", "", "`directory` that everything is kept in (default: a temporary one)")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` with a word that clients must know (their --token-file)")
	f.StringVar(&o.tlsCert, "tls-cert", "", "`file` with the server's certificate (PEM)")
	f.StringVar(&o.tlsKey, "tls-key", "", "`file` with its key (PEM)")
	f.StringVar(&o.tlsCA, "tls-ca", "", "`file` with the authorities that clients' certificates must be of (PEM); without it "+
		"clients need none")
	f.StringVar(&o.name, "name", "", "`name` of the server in a cluster")
	f.StringVar(&o.cluster, "cluster", "", "`address` for the other servers of a cluster")
	f.StringSliceVar(&o.routes, "routes", nil, "`addresses` of the other servers, nats://HOST:PORT")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "with a COMMAND: `number` of workers")
	return cmd
}

// run runs a server until ctx ends, or a command has.
func (o *flags) run(ctx context.Context, args []string, counted bool) error {
	if counted && len(args) == 0 {
		return errors.New("--workers goes with a COMMAND, such as: -- textpoke plan")
	}
	if o.data == "" {
		dir, err := os.MkdirTemp("", "textpoke-queue-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.data = dir
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if o.workers < 1 {
			return fmt.Errorf("--workers %d: want 1 or more", o.workers)
		}
		options.Port, options.TLSConfig = server.RANDOM_PORT, nil // only its own workers connect
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.SetLogger(logger{o.errs}, false, false)
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(10*time.Second) || !s.JetStreamEnabled() {
		return fmt.Errorf("--listen %s, --data %s: the server did not start", o.listen, o.data)
	}
	address := "nats://" + s.Addr().String()
	if len(args) > 0 {
		return o.carryOut(ctx, args, address)
	}
	fmt.Fprintf(o.out, "textpoke worker --queue %s\n", address)
	<-ctx.Done()
	return nil
}

// options are those of the server.
func (o *flags) options() (*server.Options, error) {
	host, port, err := hostPort("listen", o.listen)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s := &server.Options{ServerName: o.name, Host: host, Port: port, JetStream: true, StoreDir: o.data, NoSigs: true,
		SyncInterval: time.Second} // what a machine loses that loses power
	if o.tokenFile != "" {
		text, err := inputs.Read(o.tokenFile, 4096)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if s.Authorization = strings.TrimSpace(string(text)); s.Authorization == "" {
			return nil, fmt.Errorf("--token-file %s: it is empty", o.tokenFile)
		}
	} else if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fmt.Fprintf(o.errs, "textpoke-queue: --listen %s without --token-file: everybody who reaches it can give workers work\n",
			o.listen)
	}
	if o.tlsCert != "" || o.tlsKey != "" || o.tlsCA != "" {
		s.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: o.tlsCert, KeyFile: o.tlsKey, CaFile: o.tlsCA,
			Verify: o.tlsCA != ""})
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key, --tls-ca: %w", err)
		}
	}
	if o.cluster == "" {
		return s, nil
	}
	if s.Cluster.Host, s.Cluster.Port, err = hostPort("cluster", o.cluster); err != nil {
		return nil, err
	}
	if s.Cluster.Name = "textpoke"; o.name == "" {
		return nil, errors.New("--cluster goes with --name, which no other server of it has")
	}
	for _, route := range o.routes {
		u, err := url.Parse(route)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("--routes %q: want nats://HOST:PORT", route)
		}
		s.Routes = append(s.Routes, u)
	}
	return s, nil
}

func hostPort(flag, text string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("--%s %q: want HOST:PORT", flag, text)
	}
	return host, port, nil
}

// carryOut runs a command and its workers.
func (o *flags) carryOut(ctx context.Context, args []string, address string) error {
	queue := []string{"--queue", address}
	if o.tokenFile != "" {
		queue = append(queue, "--token-file", o.tokenFile)
	}
	working, stop := context.WithCancel(ctx)
	var workers []*exec.Cmd
	defer func() {
		stop()
		for _, w := range workers {
			_ = w.Wait() // they end because they were told so
		}
	}()
	for range o.workers {
		w := exec.CommandContext(working, args[0], append([]string{"worker", "--jobs", "1"}, queue...)...)
		w.Cancel = func() error { return w.Process.Signal(syscall.SIGTERM) }
		w.WaitDelay = 10 * time.Second
		w.Stderr = quiet{}
		if err := w.Start(); err != nil {
			return err
		}
		workers = append(workers, w)
	}
	cmd := exec.CommandContext(ctx, args[0], append(args[1:], queue...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, o.out, o.errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.Run()
}

// quiet drops the output of workers: the command that submits prints what matters.
type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

// logger shows the server's errors alone.
type logger struct{ w io.Writer }

func (l logger) say(kind, format string, v ...any) {
	fmt.Fprintf(l.w, "textpoke-queue: %s%s\n", kind, fmt.Sprintf(format, v...))
}

func (l logger) Noticef(string, ...any)         {}
func (l logger) Debugf(string, ...any)          {}
func (l logger) Tracef(string, ...any)          {}
func (l logger) Warnf(format string, v ...any)  { l.say("warning: ", format, v...) }
func (l logger) Errorf(format string, v ...any) { l.say("", format, v...) }
func (l logger) Fatalf(format string, v ...any) { l.say("", format, v...) }
