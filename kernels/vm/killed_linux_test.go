// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	kills = flag.Int("kills", 100, "how often TestServeKilled ends the server, some 12 s each in an emulator")
	seed  = flag.Uint64("seed", 26, "of TestServeKilled")
)

// TestServeKilled ends the server by SIGKILL at random points, also while it starts and while it writes a filter, as clients
// change what they want: the next one makes the kernel agree with what was acknowledged.
func TestServeKilled(t *testing.T) {
	carriedOut(t, "idle=2", nil, "TestInsideKilled", "-kills ", *kills, " -seed ", *seed)
}

// TestInsideKilled is TestServeKilled's part in the guest.
func TestInsideKilled(t *testing.T) {
	inGuest(t)
	rng := rand.New(rand.NewPCG(*seed, 0))
	chosen := choices(t)
	var clients []*asker
	for i := range 4 {
		clients = append(clients, &asker{name: fmt.Sprint("c", i), rng: rand.New(rand.NewPCG(*seed, uint64(i+1))), known: map[string]set{}})
	}
	began, killed, agreed, torn, most := time.Now(), 0, 0, 0, time.Duration(0)
	s := serve(t)
	s.ready(t)
	for killed < *kills && !t.Failed() {
		before := traced(t)
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() { c.ask(t, s, chosen) })
		}
		switch moment := time.Duration(rng.IntN(2000)) * time.Millisecond; rng.IntN(2) {
		case 0:
			time.Sleep(moment)
		default:
			time.Sleep(moment / 4)
			s.writes()
			time.Sleep(time.Duration(rng.IntN(20000)) * time.Microsecond)
		}
		s.end(syscall.SIGKILL)
		all.Wait()
		if now := traced(t); !maps.EqualFunc(now, before, slices.Equal) && !clientsWant(clients, now) {
			torn++ // between two updates
		}
		for killed++; ; killed++ { // some starts are killed, too
			began := time.Now()
			if s = serve(t); most == 0 || rng.IntN(3) > 0 {
				s.ready(t)
				most = max(most, time.Since(began))
				break
			}
			time.Sleep(time.Duration(rng.Int64N(int64(most))))
			s.end(syscall.SIGKILL)
		}
		for _, c := range clients {
			c.compare(t, s)
		}
		now := traced(t)
		if !clientsWant(clients, now) {
			t.Errorf("kill %d: the kernel traces\n%v, clients want\n%v", killed, now, wanted(clients))
		}
		if !t.Failed() {
			agreed++
		}
		tell("kill %d: %d starts agree, %v: %d functions, %d events", killed, agreed, time.Since(began), len(now["function"]),
			len(now["event"]))
	}
	s.end(syscall.SIGTERM)
	if now := traced(t); len(now) > 0 || s.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after SIGTERM the kernel traces %v: %s", now, &s.said)
	}
	answered := 0
	for _, c := range clients {
		answered += c.asked
	}
	t.Logf("%d kills, %d of them while starting, %d with a kernel between two updates; %d starts agree; %d updates answered; %v",
		killed, killed-agreed, torn, agreed, answered, time.Since(began).Round(time.Second))
	if answered < killed/4 || torn == 0 && killed >= 20 {
		t.Error("this tried too little")
	}
}

// writes waits until the server has a file of tracefs open for writing (proc(5), fdinfo), some seconds at most.
func (s *server) writes() {
	dir := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	for begun := time.Now(); time.Since(begun) < 5*time.Second; {
		fds, _ := os.ReadDir(dir + "fd")
		for _, fd := range fds {
			if file, _ := os.Readlink(dir + "fd/" + fd.Name()); strings.HasPrefix(file, tracefsMount) {
				info, _ := os.ReadFile(dir + "fdinfo/" + fd.Name())
				if _, flags, ok := strings.Cut(string(info), "flags:"); ok && strings.HasSuffix(strings.Fields(flags)[0], "1") { // O_WRONLY
					return
				}
			}
		}
	}
}

// wanted is what clients want together, by ops, sorted.
func wanted(clients []*asker) map[string][]string {
	out := map[string][]string{}
	for _, ops := range []string{"function", "graph", "event"} {
		all := set{}
		for _, c := range clients {
			maps.Copy(all, c.known[ops])
		}
		if len(all) > 0 {
			out[ops] = slices.Sorted(maps.Keys(all))
		}
	}
	if both := append(slices.Clone(out["function"]), out["graph"]...); len(both) > 0 {
		slices.Sort(both)
		out["enabled"] = slices.Compact(both)
	}
	return out
}

func clientsWant(clients []*asker, now map[string][]string) bool {
	return maps.EqualFunc(now, wanted(clients), slices.Equal)
}

// traced is what the kernel traces for whom, sorted: of the instances by ops, of others by their names, and all functions that
// are enabled, whoever did so.
func traced(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	add := func(name string, lines []string) {
		for _, line := range lines {
			out[name] = append(out[name], strings.Fields(line)[0])
		}
		slices.Sort(out[name])
	}
	names := map[string]string{"": "the top instance", "instances/textpoke/": "function", "instances/textpoke.graph/": "graph"}
	found, err := filepath.Glob(tracefsMount + "instances/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(found, tracefsMount) {
		rel := strings.TrimPrefix(dir+"/", tracefsMount)
		if dir == tracefsMount {
			rel = ""
		}
		name, ours := names[rel]
		if !ours {
			name = rel
		}
		tracer, err := os.ReadFile(tracefsMount + rel + "current_tracer")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err == nil && string(tracer) != "nop\n" {
			filter := linesOf(t, rel+"set_ftrace_filter")
			if add(name, filter); len(filter) == 0 {
				out[name] = []string{"every function by " + string(tracer)}
			}
		}
		events := name + " events"
		if name == "function" {
			events = "event"
		}
		for _, event := range linesOf(t, rel+"set_event") {
			add(events, []string{strings.Replace(event, ":", "/", 1)})
		}
	}
	add("enabled", linesOf(t, "enabled_functions"))
	return out
}
