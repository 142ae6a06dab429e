// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/results/budget"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/api"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// serveFlags is the flags of serve.
type serveFlags struct {
	*common
	listen, data              string
	verify, tokenFile         string
	tlsCert, tlsKey           string
	insecure                  bool
	drain, gather, maxWait    time.Duration
	queue, perClient, clients int
	rate                      service.Limit
	spans                     string
	connections, eventStreams int
	keepAge, compactEvery     time.Duration
	keepUpdates, keepMegabyte int

	on, instance, kernel string // --machine and the flags of a kernel
	release, dryRun      bool

	budget, clientBudget []service.Limit
	quiet                []service.Window
}

// serveAxes are what can be chosen about the machine that is served: one of each.
var serveAxes = func() (t axis.Table[sim.Config]) {
	for _, a := range sim.Axes.For(sim.UseLive).Only("arch", "records", "protocol", "buffer", "cpus") {
		if a.Form == axis.List {
			a.Default, _, _ = strings.Cut(a.Default, ",")
		}
		a.Form, a.Split = axis.One, nil
		t = append(t, a)
	}
	return t
}()

func (s *serveFlags) register(cmd *cobra.Command) {
	addAxes(cmd, serveAxes)
	declare(cmd, "serve", s, unixPrefix+kernelSocket)
	add(cmd,
		choice.List(&s.budget, "budget", "", "`limits` of the interrupts that a CPU may take for one update, such as isolated=3, "+
			"or for all in a time, such as isolated=500/1h: an update that does not fit is refused, or held if it asks for "+
			"that. Limits: "+serveLimits.Help(), limitKind),
		choice.List(&s.clientBudget, "client-budget", "", "`limits` for each client by itself, such as isolated=50/1h", limitKind),
		choice.List(&s.quiet, "quiet", "", "`times` of the day at which nothing is switched, such as 08:00-18:00",
			choice.Kind[service.Window]{Type: "times", Parse: service.ParseWindow, Format: service.Window.String}),
		choice.One(&s.rate, "rate", "", "`number` of requests that each token may make in a time, such as 100/s (default: any)",
			choice.Kind[service.Limit]{Type: "number", Parse: parseRate,
				Format: func(l service.Limit) string { return fmt.Sprintf("%d/%v", l.Max, l.Period) }}))
}

// check refuses what cannot be meant.
func (s *serveFlags) check(cmd *cobra.Command) error {
	switch {
	case s.verify != "" || s.release:
		return nil
	case s.data == "":
		return errors.New("--data \"\": want the directory for the data that must not be lost")
	}
	for i := range s.clientBudget {
		if s.clientBudget[i].Client = true; s.clientBudget[i].Period == 0 {
			return fmt.Errorf("--client-budget %[1]v: want a time, such as %[1]v/1h", s.clientBudget[i])
		}
	}
	if s.on == onKernel && !cmd.Flags().Changed("listen") {
		s.listen = unixPrefix + kernelSocket
	}
	return s.checkListen()
}

// serveLimits are what can be limited.
var serveLimits = append(ledger.PredictLimits(), budget.Quantity{Name: "burst", Doc: "those of a CPU in a time, such as burst=5/ms"})

// limitKind is a limit of what updates may cost.
var limitKind = choice.Kind[service.Limit]{
	Type: "limit",
	Parse: func(item string) (l service.Limit, err error) {
		number, period, timed := strings.Cut(item, "/")
		limits, err := serveLimits.Parse([]string{number})
		if err != nil {
			return l, err
		}
		l = service.Limit{Name: limits[0].Name, Max: int(limits[0].Max)}
		if timed {
			l.Period, err = parsePeriod(period)
		}
		if err != nil || timed && l.Max == 0 || l.Name == "burst" && !timed {
			return l, fmt.Errorf("budget %q: want a number from 1, and a time, such as %s=500/1h", item, l.Name)
		}
		return l, nil
	},
	Format: service.Limit.String,
}

// parsePeriod reads 10ms, and ms as 1ms.
func parsePeriod(text string) (time.Duration, error) {
	if strings.TrimLeft(text, "0123456789") == text {
		text = "1" + text
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("want more than nothing")
	}
	return d, err
}

// parseRate reads 100/s.
func parseRate(text string) (l service.Limit, err error) {
	if text == "" {
		return l, nil
	}
	number, period, _ := strings.Cut(text, "/")
	l.Max, err = strconv.Atoi(number)
	var bad error
	if l.Period, bad = parsePeriod(period); err != nil || bad != nil || l.Max < 1 {
		return l, fmt.Errorf("%q: want a number from 1 and a time, such as 100/s", text)
	}
	return l, nil
}

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// kernelSocket is where a kernel is served, and where ctl looks for a server first.
const kernelSocket = "/run/textpoke/socket"

// listener opens the port, or the socket, which root and the group of the process may use. A socket that no server
// answers at is taken over.
func (s *serveFlags) listener() (net.Listener, error) {
	path, ok := strings.CutPrefix(s.listen, unixPrefix)
	if !ok {
		return net.Listen("tcp", s.listen)
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("%s: another server answers there", s.listen), c.Close())
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// checkListen lets only those be reached from elsewhere who ask for a token and do
// not show it to everybody on the way.
func (s *serveFlags) checkListen() error {
	if path, ok := strings.CutPrefix(s.listen, unixPrefix); ok {
		if path == "" || s.tlsCert != "" {
			return fmt.Errorf("--listen %q: want unix: and a path, without --tls-cert", s.listen)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: want an address and a port, such as 127.0.0.1:7070", s.listen)
	}
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		return nil
	}
	switch {
	case s.tokenFile == "":
		return fmt.Errorf("--listen %q: others can reach it: want --token-file", s.listen)
	case s.tlsCert == "" && !s.insecure:
		return fmt.Errorf("--listen %q: others can reach it: want --tls-cert and --tls-key, or --insecure", s.listen)
	}
	return nil
}

// tokens reads the file of tokens.
func (s *serveFlags) tokens() (api.Tokens, error) {
	if s.tokenFile == "" {
		return api.Tokens{}, nil
	}
	f, err := inputs.Open(s.tokenFile)
	if err != nil {
		return api.Tokens{}, fmt.Errorf("--token-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return api.Tokens{}, fmt.Errorf("--token-file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return api.Tokens{}, fmt.Errorf("--token-file %s: others may read or write it (mode %#o): want chmod 600",
			s.tokenFile, info.Mode().Perm())
	}
	return api.ReadTokens(f, s.tokenFile)
}

// keyPair is the server's certificate with its key, as it was read last.
type keyPair struct {
	atomic.Pointer[tls.Certificate]
}

// load reads it; nil without one.
func (c *keyPair) load(s *serveFlags) (*tls.Config, error) {
	if s.tlsCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", s.tlsCert, s.tlsKey, err)
	}
	c.Store(&cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Load(), nil }}, nil
}
