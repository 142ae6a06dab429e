// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of this file are carried out in a guest, by this test program: they change the kernel that they run on.
var inside = flag.Bool("inside", false, "this is a guest, whose kernel is served by /textpoke")

// carriedOut has a test whose name begins with Inside carried out in a machine, with this test program built for it.
func carriedOut(t *testing.T, cpus string, files map[string]string, test string, flags ...any) {
	t.Helper()
	_, e := kernelToBoot(t)
	all := map[string]string{"/tests": built(t, e, "test -c", ".")}
	maps.Copy(all, files)
	for _, w := range scriptedWith(t, cpus, []string{"mkdir /tmp", "run /tests -inside -test.v -test.timeout 0 -test.run ^" + test + "$ " +
		fmt.Sprint(flags...)}, all) {
		t.Logf("%s", w.Text)
		if w.Code != 0 || !strings.Contains(w.Text, "--- PASS: "+test) {
			t.Errorf("%s: exit %d", test, w.Code)
		}
	}
}

// inGuest skips a test that is none of this machine's, and lets it use all CPUs of the guest.
func inGuest(t *testing.T) {
	t.Helper()
	if !*inside {
		t.Skip("skipped: is carried out in a guest")
	}
	var all unix.CPUSet
	for cpu := range mostCPUs {
		all.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
}

// tell says how far a test in a guest is: its console's output is kept where the machine does not come to its end.
func tell(format string, args ...any) {
	if console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0); err == nil {
		fmt.Fprintf(console, format+"\n", args...)
		console.Close()
	}
}

// server is textpoke serve in front of the guest's kernel.
type server struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	http *http.Client
}

// serve starts one, by another program that is named before it, if any.
func serve(t *testing.T, by ...string) *server {
	t.Helper()
	args := append(by, "/textpoke", "serve", "--machine", "kernel", "--data", "/data", "--log", "warn")
	s := &server{cmd: exec.Command(args[0], args[1:]...), http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", "/run/textpoke/socket")
		}}}}
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// ready waits until it takes requests. An emulator is slow.
func (s *server) ready(t *testing.T) {
	t.Helper()
	var why string
	for range 3000 {
		status, answer, err := s.ask("GET", "/readyz", nil)
		if err == nil && status == http.StatusOK {
			return
		}
		why = fmt.Sprintf("%d %s %v", status, answer, err)
		time.Sleep(20 * time.Millisecond)
	}
	s.end(syscall.SIGKILL)
	t.Fatalf("it was never ready: %s; it said %s", why, &s.said)
}

// end ends it by a signal.
func (s *server) end(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait()
	s.http.CloseIdleConnections()
}

// ask is one request.
func (s *server) ask(method, path string, body any) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	if body == nil {
		text = nil
	}
	q, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := s.http.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	return a.StatusCode, answer, err
}

// answered is a request whose answer must come.
func answered[T any](t *testing.T, s *server, path string) (v T) {
	t.Helper()
	status, answer, err := s.ask("GET", path, nil)
	if err == nil && status == http.StatusOK {
		err = json.Unmarshal(answer, &v)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d: %v: %s", path, status, err, answer)
	}
	return v
}

// choices are records that clients of these tests ask for: functions whose names are one function's each, by what their names
// begin with, and events.
func choices(t *testing.T) map[string][][]string {
	t.Helper()
	count := map[string]int{}
	for _, line := range linesOf(t, "available_filter_functions") {
		count[strings.Fields(line)[0]]++
	}
	var functions [][]string
	for _, prefix := range []string{"vfs_", "tcp_", "ip_", "do_sys", "kmem", "dev_", "sched_", "security_"} {
		var some []string
		for name, n := range count {
			if n == 1 && strings.HasPrefix(name, prefix) && !strings.ContainsAny(name, ".:") {
				some = append(some, name)
			}
		}
		slices.Sort(some)
		functions = append(functions, some)
	}
	events := map[string][]string{}
	for _, line := range linesOf(t, "available_events") {
		if group, name, ok := strings.Cut(line, ":"); ok && (group == "sched" || group == "timer" || group == "irq") {
			events[group] = append(events[group], group+"/"+name)
		}
	}
	return map[string][][]string{"function": functions, "graph": functions, "event": slices.Collect(maps.Values(events))}
}

func linesOf(t *testing.T, file string) (lines []string) {
	t.Helper()
	b, err := os.ReadFile(tracefsMount + file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		if !strings.HasPrefix(s.Text(), "#") {
			lines = append(lines, s.Text())
		}
	}
	return lines
}

// set is the records that a client wants with an ops.
type set map[string]bool

func (s set) String() string { return strings.Join(slices.Sorted(maps.Keys(s)), " ") }

// possible is what is so, if an update has happened and if it has not.
type possible struct{ before, after set }

// asker is a client, and what it wants by ops.
type asker struct {
	name    string
	rng     *rand.Rand
	known   map[string]set
	pending map[string]possible // no answer came
	id      int64               // of the update of which it was told no more than that it is accepted
	asked   int                 // with an answer
}

// next is a random update: the request's path and its body, the ops, and what is wanted after it.
func (a *asker) next(choices map[string][][]string) (method, path, ops string, body map[string]any, after set) {
	ops = []string{"function", "function", "function", "event", "graph"}[a.rng.IntN(5)]
	group := choices[ops][a.rng.IntN(len(choices[ops]))]
	from := a.rng.IntN(len(group))
	chosen := group[from : from+1+a.rng.IntN(len(group)-from)]
	if a.rng.IntN(2) == 0 {
		chosen = chosen[:1+a.rng.IntN(min(3, len(chosen)))]
	}
	body = map[string]any{"records": chosen, "wait": a.rng.IntN(2) == 0}
	after = set{}
	if a.rng.IntN(4) == 0 { // the whole wish
		for _, r := range chosen {
			after[r] = true
		}
		return "PUT", "/v1/clients/" + a.name + "/ops/" + ops, ops, body, after
	}
	maps.Copy(after, a.known[ops])
	enable := a.rng.IntN(5) < 3
	for _, r := range chosen {
		if delete(after, r); enable {
			after[r] = true
		}
	}
	if !enable && a.rng.IntN(2) == 0 {
		delete(body, "records")
		body["filter"], after = []string{"*"}, set{}
	}
	body["client"], body["ops"], body["enable"] = a.name, ops, enable
	return "POST", "/v1/updates", ops, body, after
}

// update is what the server tells of one.
type update struct {
	ID    int64
	State string
	Error string
}

// ask asks for updates until nobody answers.
func (a *asker) ask(t *testing.T, s *server, choices map[string][][]string) {
	for {
		method, path, ops, body, after := a.next(choices)
		before := a.known[ops]
		a.pending = map[string]possible{ops: {before, after}}
		status, answer, err := s.ask(method, path, body)
		if err != nil {
			return
		}
		var u update
		if err := json.Unmarshal(answer, &u); err != nil {
			t.Errorf("%s %s: %d %s", method, path, status, answer)
			return
		}
		if status == http.StatusAccepted {
			a.id = u.ID
			if status, answer, err = s.ask("GET", fmt.Sprintf("/v1/updates/%d?wait=true", u.ID), nil); err != nil {
				return
			}
			if err = json.Unmarshal(answer, &u); err != nil {
				return
			}
		}
		a.id, a.asked = 0, a.asked+1
		switch {
		case status == http.StatusServiceUnavailable: // it is stopping
			return
		case status != http.StatusOK:
			t.Errorf("%s %s %v: %d %s", method, path, body, status, answer)
			return
		case u.State == "live":
			a.known[ops] = after
		case u.State == "failed" && ops == "graph": // before Linux 6.11
		default:
			t.Errorf("%s %s: %s %s", method, path, u.State, u.Error)
		}
		a.pending = nil
	}
}

// compare holds what a server says that a client wants against what the client was told, and gives it by ops.
func (a *asker) compare(t *testing.T, s *server) {
	t.Helper()
	if a.id != 0 { // it was accepted: it has happened, or was refused by the kernel
		u := answered[update](t, s, fmt.Sprintf("/v1/updates/%d", a.id))
		for ops, p := range a.pending {
			switch {
			case u.State == "live":
				a.known[ops] = p.after
			case u.State != "failed" || ops != "graph":
				t.Errorf("%s: update %d was accepted, and is %s: %s", a.name, a.id, u.State, u.Error)
			}
		}
		a.pending, a.id = nil, 0
	}
	for _, ops := range []string{"function", "graph", "event"} {
		got := set{}
		for _, r := range answered[struct{ Records []struct{ Symbol string } }](t, s, "/v1/clients/"+a.name+"/ops/"+ops).Records {
			got[r.Symbol] = true
		}
		p, open := a.pending[ops]
		if !maps.Equal(got, a.known[ops]) && !(open && maps.Equal(got, p.after)) {
			t.Errorf("%s wants with %s\n%v, and was told\n%v; under way %v:\n%v", a.name, ops, got, a.known[ops], open, p.after)
		}
		a.known[ops] = got
	}
	a.pending = nil
}
