// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/service/lab"
	"github.com/textpoke/textpoke/sim"
)

var (
	long     = flag.Bool("long", false, "run slow tests")
	watching = flag.String("watch", "", "be what BenchmarkWatched starts, and watch the server of that `URL`")
)

func TestMain(m *testing.M) {
	lab.Serve(known, zap.NewNop())
	if flag.Parse(); *watching != "" {
		watch(*watching)
		return
	}
	goleak.VerifyTestMain(m)
}

// world is a real service behind a real server, and a client that holds every
// answer against the document.
type world struct {
	t       testing.TB
	handler *Handler
	http    *httptest.Server
	client  *http.Client
	service *service.Service
	lab     *lab.Lab
	store   *journal.Store
	log     bytes.Buffer
	token   string
}

// small is a small machine with CPUs of these roles.
func small(t testing.TB, cpuRoles string) service.Config {
	t.Helper()
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	roles, err := cpus.ParseRoles(cpuRoles)
	if err != nil {
		t.Fatal(err)
	}
	table, err := records.Open(context.Background(), "gen:n=100,groups=4", records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return service.Config{
		Table: table, Log: zap.NewNop(), Machine: service.Simulated(sim.Config{
			Arch: arch, Protocol: "breakpoint", Table: table, Roles: roles, Buffer: sched.Buffer{Slots: 16}, Seed: 1,
		}, nil),
	}
}

// newWorld starts one; the functions change what it is made of.
func newWorld(t testing.TB, change ...func(*service.Config, *Config)) *world {
	t.Helper()
	w := &world{t: t}
	sc, hc := small(t, "busy=2,idle=1"), Config{Version: Version{Version: "0", Revision: "abc", Go: "go", Platform: "os/arch"}}
	hc.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		zapcore.Lock(zapcore.AddSync(&w.log)), zap.InfoLevel))
	hc.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html>")
	})
	for _, f := range change {
		f(&sc, &hc)
	}
	st, err := journal.Open(t.Context(), t.TempDir(), service.Identity(sc.Table))
	if err != nil {
		t.Fatal(err)
	}
	sc.Store, w.store = st, st
	w.handler = New(hc)
	sc.Observer = w.handler.Observer()
	if w.service, err = service.Start(t.Context(), sc); err != nil {
		t.Fatal(err)
	}
	if w.lab, err = lab.Start(t.Context(), lab.Config{Store: st, Log: zap.NewNop(), Queue: 2,
		Experiments: known()}); err != nil {
		t.Fatal(err)
	}
	w.http = httptest.NewUnstartedServer(nil)
	w.http.Config = w.handler.Server(64)
	known := w.http.Config.ConnContext
	w.http.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4096); err != nil { // slow readers show sooner
			t.Error(err)
		}
		return known(ctx, c)
	}
	w.http.Start()
	transport := w.http.Client().Transport.(*http.Transport)
	w.client = &http.Client{Transport: &contract{t, transport}}
	t.Cleanup(func() {
		w.handler.Stop()
		transport.CloseIdleConnections()
		w.http.Close()
		w.lab.Close()
		if err := errors.Join(w.service.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// ready is newWorld with everything let in.
func ready(t testing.TB, change ...func(*service.Config, *Config)) *world {
	w := newWorld(t, change...)
	w.handler.Ready(w.service, w.lab)
	return w
}

// known are experiments: one that answers, one that fails, one that panics, and one that waits.
func known() []*experiments.Experiment {
	make := func(name string, run func(context.Context, experiments.Lab) (*experiments.Answer,
		error)) *experiments.Experiment {
		return &experiments.Experiment{
			Name: name, Question: "what does it " + name + "?", Short: name,
			Table: func() results.Table {
				return results.Table{Name: name, Columns: []results.Column{{Name: "n", Kind: results.Integer, Doc: "a number"}}}
			},
			New: func() *experiments.Request {
				var numbers []int
				var file string
				return &experiments.Request{Run: run, Fields: []*choice.Field{
					choice.Counts(&numbers, "some-numbers", "1,2", "`list` of numbers", 1, 9), choice.File(&file,
						"published", "`file`"),
				}}
			},
		}
	}
	return []*experiments.Experiment{
		make("answer", func(_ context.Context, l experiments.Lab) (*experiments.Answer, error) {
			err := l.Add(int64(l.Seed))
			return &experiments.Answer{Headline: "it is so", No: errors.New("but not quite"), Documents: []results.Document{
				{Name: "answer.svg", Write: func(w io.Writer) error { _, err := io.WriteString(w, "<svg/>"); return err }},
			}}, err
		}),
		make("fail", func(context.Context, experiments.Lab) (*experiments.Answer, error) { return nil, errors.New("no") }),
		make("panic", func(context.Context, experiments.Lab) (*experiments.Answer, error) { panic("ouch") }),
		make("wait", func(ctx context.Context, _ experiments.Lab) (*experiments.Answer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
	}
}

// reply is an answer that was read.
type reply struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// do asks. A body is JSON, where it is not a string. Names and values of headers may follow.
func (w *world) do(method, path string, body any, header ...string) reply {
	w.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return w.send(req)
}

func (w *world) send(req *http.Request) reply {
	w.t.Helper()
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply{w.t, resp.StatusCode, resp.Header, string(b)}
}

// is checks the status and reads the body.
func is[T any](r reply, status int) (v T) {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		r.t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

// request is a body for updates.
func request(client string, enable bool, more string) string {
	return fmt.Sprintf(`{"client":%q,"enable":%v%s}`, client, enable, more)
}
