// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/service/api"
)

// server is a textpoke serve that ctl talks to.
type server struct {
	url   string // without a slash at its end
	name  string // as the user wrote it
	token string
	match string // the ETag that what is changed must have, "" for any
	http  *http.Client
}

// ctlFlags say which server, and who asks.
type ctlFlags struct {
	*common
	server, tokenFile, tlsCA string
}

// newCommand is a command that asks its server.
func (f *ctlFlags) newCommand(
	use string, ask func(ctx context.Context, s *server, args []string) error, marks ...string,
) *cobra.Command {
	return newCommand(use, func(cmd *cobra.Command, args []string) error {
		s, err := f.open()
		if err != nil {
			return err
		}
		return ask(cmd.Context(), s, args)
	}, marks...)
}

// defaultServer is a kernel's, where one is served.
func defaultServer() string {
	if _, err := os.Stat(kernelSocket); err == nil {
		return unixPrefix + kernelSocket
	}
	return "http://127.0.0.1:7070"
}

// open checks the flags. Nothing is sent yet.
func (f *ctlFlags) open() (*server, error) {
	address := f.server
	path, local := strings.CutPrefix(f.server, unixPrefix)
	if local {
		address = "http://localhost"
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("--server %q: want a URL such as http://127.0.0.1:7070, or unix: and a path", f.server)
	}
	s := &server{url: strings.TrimSuffix(u.String(), "/"), name: f.server}
	if s.token, err = f.token(); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if local {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	if f.tlsCA != "" {
		pem, err := inputs.Read(f.tlsCA, maxSmall)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca %s: no certificate in it", f.tlsCA)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	s.http = &http.Client{Transport: transport}
	return s, nil
}

// token is the first line's token: it is alone there, or the second word, as in the
// server's own file.
func (f *ctlFlags) token() (string, error) {
	if f.tokenFile == "" {
		return "", nil
	}
	b, err := inputs.Read(f.tokenFile, maxSmall)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return words[min(1, len(words)-1)], nil
		}
	}
	return "", fmt.Errorf("--token-file %s: there is no token in it", f.tokenFile)
}

// send asks and returns the answer, whose body the caller closes. A refusal by the
// server is an *api.Problem.
func (s *server) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, in)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.match != "" {
		req.Header.Set("If-Match", s.match)
	}
	if trace := os.Getenv("TRACEPARENT"); trace != "" { // of the program that has called this one
		req.Header.Set("Traceparent", trace)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		var about *url.Error
		if ctx.Err() == nil && errors.As(err, &about) { // it says the method and the whole path
			err = fmt.Errorf("--server %s: %w", s.name, about.Err)
			if untrusted := (*tls.CertificateVerificationError)(nil); !errors.As(err, &untrusted) {
				err = noServer{fmt.Errorf("%w; textpoke serve --data DIR starts one", err)}
			}
		}
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, fmt.Errorf("%s: %w", s.name, refusal(resp))
}

// refusal reads a problem, or makes one of what something in between has sent.
func refusal(resp *http.Response) *api.Problem {
	p := &api.Problem{Title: resp.Status, Status: resp.StatusCode}
	// A problem that cannot be read still has its status.
	_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(p)
	return p
}

// ask asks and reads JSON.
func (s *server) ask(ctx context.Context, method, path string, body, into any) error {
	resp, err := s.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("%s: answer to %s %s: %w", s.name, method, path, err)
	}
	return nil
}

// lines hands the lines of an answer over as they come.
func lines(resp *http.Response, take func(line []byte) error) error {
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := take(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
