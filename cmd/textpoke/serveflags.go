// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/service/api"
	"github.com/textpoke/textpoke/service/journal"
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
	arch, protocol, records   string
	buffer, cpus              string
	drain, gather, maxWait    time.Duration
	queue, perClient, clients int
	connections, eventStreams int
	keepAge, compactEvery     time.Duration
	keepUpdates, keepMegabyte int
}

func (s *serveFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:7070",
		"`address` and port; port 0 takes a free one. Other than loopback needs --token-file, and TLS or --insecure")
	f.StringVar(&s.data, "data", "", "`directory` for what must not be lost")
	f.StringVar(&s.verify, "verify", "", "say what is sound in a server's `directory`, and change nothing; "+
		"what is not, and the exit code is 1")
	f.StringVar(
		&s.tokenFile,
		"token-file",
		"",
		"`file` with who may do what: lines \"full TOKEN\", \"read TOKEN\" and \"own TOKEN CLIENT...\" (default: "+
			"everybody on this "+
			"machine may do everything)",
	)
	f.StringVar(&s.tlsCert, "tls-cert", "", "`file` with the certificate (PEM)")
	f.StringVar(&s.tlsKey, "tls-key", "", "`file` with its key (PEM)")
	f.BoolVar(&s.insecure, "insecure", false, "listen beyond loopback without TLS: tokens can be read on the way")
	f.StringVar(&s.arch, "arch", cpus.ArchNames()[0], "instruction `set`: "+strings.Join(cpus.ArchNames(), ", "))
	f.StringVar(&s.protocol, "protocol", poke.Native, "`protocol`: "+strings.Join(poke.Names(), ", "))
	f.StringVar(&s.records, "records", "",
		"`table` of records: a built-in one, a file, or gen:n=40000,... (default: the architecture's own kernel)")
	f.StringVar(&s.buffer, "buffer", "256", "`slots` of the vector, or dynamic")
	f.StringVar(&s.cpus, "cpus", "8", "`machine`: a number of CPUs, or roles such as busy=6,isolated=2")
	f.DurationVar(&s.drain, "drain", 10*time.Second,
		"how `long` to carry out what was accepted when told to stop; the rest stays in the journal")
	f.DurationVar(&s.gather, "gather", 0, "how `long` an update waits for company")
	f.DurationVar(&s.maxWait, "max-wait", 0,
		"how `long` an update may wait until it expires (default: as long as it takes)")
	f.IntVar(&s.queue, "queue", 1024, "`number` of updates that may be on their way")
	f.IntVar(&s.perClient, "per-client", 256, "`number` of them that may be of one client")
	f.IntVar(&s.clients, "clients", 100_000, "`number` of pairs of client and ops that may want something")
	f.IntVar(&s.connections, "connections", 4096, "`number` of connections; with more, the longest idle is closed")
	f.IntVar(&s.eventStreams, "streams", 64, "`number` of streams of events at a time")
	f.DurationVar(&s.keepAge, "keep-age", 30*24*time.Hour, "how `long` ended updates and results are kept; 0: always")
	f.IntVar(&s.keepUpdates, "keep-updates", 1_000_000, "`number` of ended updates that are kept; 0: all")
	f.DurationVar(&s.compactEvery, "compact-every", 10*time.Second,
		"the `time` between two looks at what is not to be kept any more")
	f.IntVar(&s.keepMegabyte, "keep-results", 1024, "`MiB` of results that are kept; 0: all")
	offer(cmd, "arch", cpus.ArchNames())
	offer(cmd, "protocol", poke.Names())
}

// check refuses what cannot be meant.
func (s *serveFlags) check(cmd *cobra.Command) error {
	if s.verify != "" && cmd.Flags().NFlag() > 1 && s.data != "" {
		return errors.New("--verify goes without --data")
	}
	if s.verify != "" {
		return nil
	}
	if err := refuseEmpty(cmd, "listen", "token-file", "tls-cert", "tls-key", "records"); err != nil {
		return err
	}
	if s.data == "" {
		return errors.New("--data \"\": want the directory for what must not be lost")
	}
	for _, n := range []struct {
		flag       string
		value, low int
	}{{"queue", s.queue, 1}, {"per-client", s.perClient, 1}, {"clients", s.clients, 1},
		{"connections", s.connections, 1}, {"streams", s.eventStreams,
			1}, {"keep-updates", s.keepUpdates, 0}, {"keep-results", s.keepMegabyte, 0}} {
		if n.value < n.low {
			return fmt.Errorf("--%s %d: want at least %d", n.flag, n.value, n.low)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"drain", s.drain}, {"gather", s.gather}, {"max-wait", s.maxWait}, {"keep-age", s.keepAge}} {
		if d.value < 0 {
			return fmt.Errorf("--%s %v: want a time that is not negative", d.flag, d.value)
		}
	}
	if s.compactEvery <= 0 {
		return fmt.Errorf("--compact-every %v: want a time above 0", s.compactEvery)
	}
	if (s.tlsCert == "") != (s.tlsKey == "") {
		return errors.New("--tls-cert goes with --tls-key")
	}
	return s.checkListen()
}

// checkListen lets only those be reached from elsewhere who ask for a token and do
// not show it to everybody on the way.
func (s *serveFlags) checkListen() error {
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
	f, err := os.Open(s.tokenFile)
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

// machine is what the service runs. A table says which architecture it is of; one
// that does not is of the first.
func (s *serveFlags) machine(cmd *cobra.Command) (sim.Config, error) {
	choices := axis.Choices{"protocol": {s.protocol}, "buffer": {s.buffer}, "cpus": {s.cpus}, "seed": {fmt.Sprint(s.seed)}}
	if s.records != "" {
		choices["records"] = []string{s.records}
	}
	if s.records == "" || cmd.Flags().Changed("arch") {
		choices["arch"] = []string{s.arch}
	}
	grid, err := sim.NewGrid(sim.UseLive, choices, records.Options{})
	if err != nil {
		return sim.Config{}, err
	}
	s.note(grid.Files()...)
	if several := grid.Several(); several["cpus"] || several["table"] {
		return sim.Config{}, fmt.Errorf("--records %q, --cpus %q: want one table and one machine", s.records, s.cpus)
	}
	configs, err := s.combinations(cmd.Context(), grid)
	if err != nil {
		return sim.Config{}, err
	}
	return configs[0], nil
}

// keep is what compaction leaves.
func (s *serveFlags) keep() journal.Keep {
	return journal.Keep{Age: s.keepAge, Updates: s.keepUpdates, Bytes: int64(s.keepMegabyte) << 20}
}
