// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// wish is an update as a client of this test asks for it, and what it was told.
type wish struct {
	Client  string   `json:"client"`
	Key     string   `json:"key"`
	Enable  bool     `json:"enable"`
	Records []string `json:"records"`
	Wait    bool     `json:"wait"`

	id    int64  // 0: not acknowledged
	state string // "": not known to have ended
}

// wishes is all that was asked for, by key.
type wishes struct {
	sync.Mutex
	all map[string]*wish
}

// TestServeKill ends "textpoke serve" with SIGKILL while clients talk to it, starts
// it again, and holds what it says against what they were told. The points at
// which a crash is of interest are TestKill's, in service.
func TestServeKill(t *testing.T) {
	kills := 3
	if *long {
		kills = 60
	}
	w := &wishes{all: map[string]*wish{}}
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	for n := range kills {
		s := doomed(t, "--data", dir, "--records", "gen:n=24", "--cpus", "busy=2,idle=1")
		w.compare(t, s.url)
		var clients sync.WaitGroup
		for c := range 3 {
			clients.Go(func() { w.ask(s.url, fmt.Sprint("client", c), n) })
		}
		time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
		s.kill()
		clients.Wait()
	}
	s := doomed(t, "--data", dir, "--records", "gen:n=24", "--cpus", "busy=2,idle=1")
	w.compare(t, s.url)
	accepted := 0
	for _, x := range w.all {
		if x.id != 0 {
			accepted++
		}
	}
	t.Logf("%d kills; %d updates were asked for, %d accepted", kills, len(w.all), accepted)
	if accepted < kills {
		t.Error("this tried too little")
	}
}

// mortal is "textpoke serve" in a process of its own.
type mortal struct {
	cmd *exec.Cmd
	url string
}

// doomed starts one, and returns once it is ready.
func doomed(t *testing.T, args ...string) *mortal {
	t.Helper()
	s := &mortal{cmd: exec.Command("textpoke", append([]string{"serve", "--listen", "127.0.0.1:0", "--log", "error"},
		args...)...)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSpace(line)
	for {
		answer, err := http.Get(s.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return s
		}
		time.Sleep(time.Millisecond)
	}
}

// kill ends it with SIGKILL.
func (s *mortal) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// pages reads a list to its end. Each answer has it under a name, and "next" where
// there is more.
func pages[T any](t *testing.T, url, name string) (all []T) {
	t.Helper()
	for after := ""; ; {
		answer, err := http.Get(url + after)
		if err != nil {
			t.Fatal(err)
		}
		page := map[string]json.RawMessage{}
		err = json.NewDecoder(answer.Body).Decode(&page)
		_ = answer.Body.Close()
		var items []T
		if err == nil {
			err = json.Unmarshal(page[name], &items)
		}
		if err != nil {
			t.Fatalf("%s%s: %s: %v", url, after, answer.Status, err)
		}
		all = append(all, items...)
		if page["next"] == nil {
			return all
		}
		after = "?after=" + string(page["next"])
	}
}

// ask asks for one update after the other until nobody answers.
func (w *wishes) ask(url, client string, life int) {
	rng := rand.New(rand.NewPCG(uint64(life), uint64(len(client))))
	for n := 0; ; n++ {
		x := &wish{Client: client, Key: fmt.Sprintf("%s-%d-%d", client, life, n), Enable: rng.IntN(2) == 0, Wait: n%2 == 0}
		for range 1 + rng.IntN(4) {
			x.Records = append(x.Records, fmt.Sprintf("fn%d", rng.IntN(24)))
		}
		w.Lock()
		w.all[x.Key] = x
		w.Unlock()
		body, _ := json.Marshal(x)
		answer, err := http.Post(url+"/v1/updates", "application/json", bytes.NewReader(body))
		if err != nil {
			return
		}
		var u struct {
			ID    int64
			State string
		}
		err = json.NewDecoder(answer.Body).Decode(&u)
		_ = answer.Body.Close()
		if err != nil {
			return
		}
		w.Lock()
		if x.id = u.ID; answer.StatusCode == http.StatusOK {
			x.state = u.State
		}
		w.Unlock()
	}
}

// compare holds what a server says against what is known, and takes in what only
// it knows.
func (w *wishes) compare(t *testing.T, url string) {
	t.Helper()
	list := pages[struct {
		ID                 int64
		Client, Key, State string
	}](t, url+"/v1/updates", "updates")
	there, wants := map[string]bool{}, map[string]map[string]bool{}
	for _, u := range list {
		x := w.all[u.Key]
		switch {
		case x == nil:
			t.Fatalf("update %d, %q: nobody asked for it", u.ID, u.Key)
		case there[u.Key]:
			t.Errorf("%s: there are two of it", u.Key)
		case x.id != 0 && x.id != u.ID:
			t.Errorf("%s: update %d, it was acknowledged as %d", u.Key, u.ID, x.id)
		case x.state != "" && x.state != u.State:
			t.Errorf("%s: %s, it was answered as %s", u.Key, u.State, x.state)
		case u.State == "queued" || u.State == "running":
			t.Errorf("%s: still %s", u.Key, u.State)
		}
		there[u.Key], x.id, x.state = true, u.ID, u.State
		if u.State == "live" {
			if wants[u.Client] == nil {
				wants[u.Client] = map[string]bool{}
			}
			for _, r := range x.Records {
				wants[u.Client][r] = x.Enable
			}
		}
	}
	for key, x := range w.all {
		if x.id != 0 && !there[key] {
			t.Errorf("%s: it was acknowledged, and is lost", key)
		}
	}
	want := map[string]bool{}
	for _, rs := range wants {
		for r, on := range rs {
			if on {
				want[r] = true
			}
		}
	}
	got := map[string]bool{}
	for _, r := range pages[struct {
		Symbol  string
		Enabled bool
	}](t, url+"/v1/records", "records") {
		if r.Enabled {
			got[r.Symbol] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("enabled are %q, and %q were made live", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}
