// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptFree names an address that nobody listens on, in an environment variable.
func scriptFree(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "free NAME")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

// scriptAnswers waits until a URL is answered with 200.
func scriptAnswers(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "answers URL")
	for range 1000 {
		if resp, err := http.Get(args[0]); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s is not answered", args[0])
}

// served is a server in this process.
type served struct {
	url  string
	log  *safeBuffer // so far
	stop func() (code int, log string)
}

// serve starts one and waits until it says where.
func serve(t *testing.T, args ...string) served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var log safeBuffer
	code := make(chan int, 1)
	go func() {
		defer in.Close()
		code <- run(ctx, append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--records", "gen:n=100",
			"--cpus", "2"}, args...), streams{strings.NewReader(""), in, &log})
	}()
	s := served{log: &log, stop: sync.OnceValues(func() (int, string) { cancel(); return <-code, log.String() })}
	t.Cleanup(func() { s.stop() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_, text := s.stop()
		t.Fatalf("%v: %s", err, text)
	}
	s.url = strings.TrimSpace(line)
	return s
}

// safeBuffer may be written by a server that goes on when its test reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// certificate makes a self-signed one for this machine.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// TestServeTLS: with a certificate and tokens, who has none is refused, who may
// read reads, and events come over HTTP/2 too.
func TestServeTLS(t *testing.T) {
	cert, key := certificate(t)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	both := file("tokens", "full 0123456789abcdef\nread fedcba9876543210\n")
	reads := file("read", "fedcba9876543210\n")
	s := serve(t, "--tls-cert", cert, "--tls-key", key, "--token-file", both)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatal(s.url)
	}
	ctl := func(args ...string) result {
		return textpoke(t, append([]string{"ctl", "--server", s.url}, args...)...)
	}
	awaitReady(t, func() bool { return ctl("--tls-ca", cert, "--token-file", both, "status").code == exitDone })
	for _, c := range []struct {
		code int
		err  string
		args []string
	}{
		{exitWrong, "certificate", []string{"status"}},
		{exitWrong, "want Bearer and a token", []string{"--tls-ca", cert, "status"}},
		{exitWrong, "may only read", []string{"--tls-ca", cert, "--token-file", reads, "enable"}},
		{exitDone, "", []string{"--tls-ca", cert, "--token-file", reads, "status"}},
		{exitDone, "", []string{"--tls-ca", cert, "--token-file", both, "enable"}},
		{exitWrong, "If-Match", []string{"--tls-ca", cert, "--token-file", both, "enable", "--only", "--filter", "*",
			"--etag", `"other"`}},
		{exitDone, "", []string{"--tls-ca", cert, "--token-file", both, "enable", "--only", "--filter", "*"}},
	} {
		if r := ctl(c.args...); r.code != c.code || !strings.Contains(r.err, c.err) {
			t.Errorf("ctl %v: %d %s", c.args, r.code, r.err)
		}
	}
	ctx, w := cancelled(t, 3)
	code := run(ctx, []string{"ctl", "--server", s.url, "--tls-ca", cert, "--token-file", reads, "watch", "--kind",
		"update"}, streams{strings.NewReader(""), w, io.Discard})
	if code != exitCut || !strings.Contains(w.String(), "update 1 of ") {
		t.Errorf("watch: %d %s", code, w)
	}
	code, log := s.stop()
	if code != exitDone || strings.Contains(log, "0123456789abcdef") || strings.Contains(log, "fedcba9876543210") {
		t.Errorf("serve: %d %s", code, log)
	}
}

func awaitReady(t *testing.T, ready func() bool) {
	t.Helper()
	for range 500 {
		if ready() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server does not become ready")
}

// TestServeStops: a signal in the middle of a stream ends it, and what it follows.
func TestServeStops(t *testing.T) {
	s := serve(t)
	awaitReady(t, func() bool { return textpoke(t, "ctl", "--server", s.url, "enable").code == exitDone })
	watched := make(chan result, 1)
	go func() { watched <- textpoke(t, "ctl", "--server", s.url, "watch", "--format", "json") }()
	time.Sleep(50 * time.Millisecond)
	code, log := s.stop()
	if code != exitDone || !strings.Contains(log, `"msg":"drained","left":0`) {
		t.Errorf("%d %s", code, log)
	}
	if r := <-watched; r.code != exitDone && !strings.Contains(r.err, s.url) {
		t.Errorf("watch: %+v", r)
	}
	if r := textpoke(t, "ctl", "--server", s.url, "status"); r.code != exitAlone {
		t.Errorf("it still answers: %+v", r)
	}
}

// TestServeSecondSignal: one who waits for a client's last answer waits no more when
// it is told to stop again. What was accepted is in the journal.
func TestServeSecondSignal(t *testing.T) {
	defer func(d time.Duration) { lastAnswers = d }(lastAnswers)
	lastAnswers = time.Hour
	s := serve(t)
	awaitReady(t, func() bool { return textpoke(t, "ctl", "--server", s.url, "enable").code == exitDone })
	address := strings.TrimPrefix(s.url, "http://")
	slow, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	// Half a request. The server asks for the rest when its handler begins to read: from
	// then on it waits. Stopped before that, it would refuse the request and be done.
	if _, err := io.WriteString(slow,
		"POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(slow).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	ended := make(chan int, 1)
	go func() { code, _ := s.stop(); ended <- code }()
	awaitReady(t, func() bool { // the port is closed after what was accepted is carried out
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil { // to the server: it is in this process
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code != exitCut {
			t.Errorf("exit code %d, want %d", code, exitCut)
		}
	case <-time.After(time.Minute):
		t.Error("it still waits")
	}
}

// TestServeReload: SIGHUP reads the tokens again and ends nothing; a file that is wrong
// leaves those that were.
func TestServeReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s := serve(t, "--token-file", write("full 0123456789abcdef\n"))
	status := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/stats", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	hangup := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	awaitReady(t, func() bool { return status("0123456789abcdef") == 200 })
	write("full fedcba9876543210\n")
	hangup()
	awaitReady(t, func() bool { return status("fedcba9876543210") == 200 })
	if got := status("0123456789abcdef"); got != 401 {
		t.Errorf("the old token: %d", got)
	}
	write("nonsense\n")
	hangup() // another thread may take it, and late: a server that no longer waits for it is ended by it
	awaitReady(t, func() bool { return strings.Contains(s.log.String(), "not read again") })
	if code, log := s.stop(); code != exitDone && code != exitCut || strings.Count(log, `"msg":"read again"`) != 1 {
		t.Errorf("%d %s", code, log)
	}
}

// TestServeNotifies: systemd is told when requests are taken, and when no more.
func TestServeNotifies(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	s := serve(t)
	told := func() string {
		b := make([]byte, 100)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := told(); got != "READY=1" {
		t.Error(got)
	}
	s.stop()
	if got := told(); got != "STOPPING=1" {
		t.Error(got)
	}
}

// TestServeSpansUnread: a pipe whose reader has stopped to read holds up no update, and no server that is told to stop.
func TestServeSpansUnread(t *testing.T) {
	defer func(d time.Duration) { lastAnswers = d }(lastAnswers)
	lastAnswers = 50 * time.Millisecond
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s := serve(t, "--spans", pipe)
	awaitReady(t, func() bool { return textpoke(t, "ctl", "--server", s.url, "enable").code == exitDone })
	for range 60 { // a pipe has room for 64 KiB, and a span takes more than one
		for _, what := range []string{"disable", "enable"} {
			if r := textpoke(t, "ctl", "--server", s.url, what); r.code != exitDone {
				t.Fatal(r)
			}
		}
	}
	if code, log := s.stop(); code != exitDone || !strings.Contains(log, "updates were left out") {
		t.Errorf("exit %d: %s", code, log)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v, %v", info.Mode(), err)
	}
}
