// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/textpoke/textpoke/internal/choice"
)

// TestMain lets tests run this very program as a server that they can kill.
func TestMain(m *testing.M) {
	if text := os.Getenv("TEXTPOKE_TEST_SERVER"); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// place is a server of a test.
type place struct {
	Name, Dir     string
	Port, Cluster int
	Routes        []int
}

// serve is a server until it is killed.
func serve(text string) error {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	o := &server.Options{ServerName: p.Name, Host: "127.0.0.1", Port: p.Port, StoreDir: p.Dir, JetStream: true,
		NoLog: true}
	if p.Cluster > 0 {
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: p.Cluster}
		for _, port := range p.Routes {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return errors.New("the server has ended")
}

// cluster is servers that can be killed and started again.
type cluster struct {
	t      *testing.T
	places []place
	procs  []*exec.Cmd
}

// newCluster starts servers that know each other, each with a directory that stays.
func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{t: t, procs: make([]*exec.Cmd, n)}
	for i := range n {
		p := place{Name: fmt.Sprint("s", i), Dir: t.TempDir(), Port: freePort(t)}
		if n > 1 {
			p.Cluster = freePort(t)
		}
		c.places = append(c.places, p)
	}
	t.Cleanup(func() {
		for i := range c.procs {
			c.kill(i)
		}
	})
	for i := range c.places {
		for _, p := range c.places {
			c.places[i].Routes = append(c.places[i].Routes, p.Cluster)
		}
		c.start(i)
	}
	return c
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *cluster) start(i int) {
	text, err := json.Marshal(c.places[i])
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEXTPOKE_TEST_SERVER="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.procs[i] = cmd
}

// kill ends a server with SIGKILL.
func (c *cluster) kill(i int) {
	if c.procs[i] != nil {
		_ = c.procs[i].Process.Kill()
		_ = c.procs[i].Wait()
		c.procs[i] = nil
	}
}

// url is the address of all.
func (c *cluster) url() string {
	var all []string
	for _, p := range c.places {
		all = append(all, fmt.Sprint("nats://127.0.0.1:", p.Port))
	}
	return strings.Join(all, ",")
}

// connect is a connection, as soon as somebody answers.
func (c *cluster) connect(o Options) (*Queue, error) {
	o.Program = "1.0"
	for until := time.Now().Add(30 * time.Second); ; {
		q, err := Connect(c.t.Context(), c.url(), o)
		if err == nil || time.Now().After(until) {
			return q, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// hand is a worker that can be killed: its connection goes away in the middle.
type hand struct {
	q      *Queue
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func (c *cluster) startWorker(name string, o Options, w Worker) *hand {
	o.Name = name
	h := &hand{cancel: func() {}}
	q, err := c.connect(o)
	if err != nil {
		c.t.Error(err)
		return h
	}
	h.q = q
	ctx, cancel := context.WithCancel(c.t.Context())
	h.cancel = cancel
	h.ended.Go(func() { _ = q.Work(ctx, w) }) // it may be killed before it has begun
	return h
}

func (h *hand) kill() {
	if h.q != nil {
		h.q.nc.Close()
	}
	h.cancel()
	h.ended.Wait()
}

// TestChaos kills servers, workers and who has submitted, in turn and at random moments: rows
// are those of a loop, and each is there once.
func TestChaos(t *testing.T) {
	if *long {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint("cluster", seed), func(t *testing.T) { chaos(t, 3, 3000, 30, seed) })
		}
	}
	t.Run("alone", func(t *testing.T) { chaos(t, 1, 150, 3, 1) })
}

func chaos(t *testing.T, servers, points, kills int, seed uint64) {
	rng, lifetimes := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	c := newCluster(t, servers)
	o := Options{AckWait: 300 * time.Millisecond, Tries: 1000}
	group := newTeam()
	group.Jobs, group.takes = 2, 2*time.Millisecond
	var hands []*hand
	for i := range 3 {
		hands = append(hands, c.startWorker(fmt.Sprint("w", i), o, group.Worker))
	}
	defer func() {
		for _, h := range hands {
			h.kill()
		}
	}()
	// What is killed, one after the other; who submits comes last of three.
	var killed sync.WaitGroup
	defer killed.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	killed.Go(func() {
		for i := range kills {
			if sleep(ctx, time.Duration(rng.Int64N(int64(150*time.Millisecond)))) != nil {
				return
			}
			if i%2 == 0 {
				k := rng.IntN(len(hands))
				hands[k].kill()
				hands[k] = c.startWorker(fmt.Sprint("w", k, "-", i), o, group.Worker)
				continue
			}
			k := rng.IntN(servers)
			c.kill(k)
			_ = sleep(ctx, time.Duration(rng.Int64N(int64(200*time.Millisecond))))
			c.start(k)
			_ = sleep(ctx, time.Duration(servers-1)*2*time.Second) // two of three must be there
		}
	})
	var got strings.Builder
	for lives := 0; ; lives++ {
		limit := time.Hour
		if lives < 2 { // it is killed, too
			limit = time.Duration(lifetimes.Int64N(int64(500 * time.Millisecond)))
		}
		got.Reset()
		if done := c.life(t, points, limit, &got, o); done {
			break
		}
	}
	killed.Wait()
	if got.String() != want(points, "") {
		t.Errorf("other rows:\n%.1000s", got.String())
	}
	t.Logf("%d points were done %d times", points, group.done.Load())
}

// life submits a run and waits for its rows for as long as it lives.
func (c *cluster) life(t *testing.T, points int, limit time.Duration, got *strings.Builder, o Options) (done bool) {
	q, err := c.connect(o)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := q.Submit(ctx, Submission{Request: choice.Request{Name: "square"}, Keys: keys(points)})
	if err != nil {
		return false
	}
	defer r.Close()
	text, err := collect(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			t.Fatal(err)
		}
		return false
	}
	got.WriteString(text)
	info, err := q.rows.Info(ctx)
	if err == nil && info.State.Msgs != uint64(points) {
		t.Errorf("%d rows of %d points", info.State.Msgs, points)
	}
	if err = errors.Join(err, r.Finish(ctx)); err != nil && ctx.Err() != nil {
		return false // it was killed when all rows were there
	}
	if err != nil {
		t.Error(err)
	}
	return true
}
