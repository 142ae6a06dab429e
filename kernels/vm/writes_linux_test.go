// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestServeWrites: what the server opens for writing, makes, renames and removes lies in its instances, in its directory and
// where its socket is, as strace tells of all its threads: while clients change what they want, while others change its
// instance, and at its end.
func TestServeWrites(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	files := map[string]string{"/usr/bin/strace": strace}
	withLibraries(files, "")
	carriedOut(t, "idle=2", files, "TestInsideWrites")
}

// changing are the system calls that make, change or remove what has a name.
const changing = "open,openat,openat2,creat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,unlink,unlinkat,link,linkat,symlink," +
	"symlinkat,mknod,mknodat,truncate,chmod,fchmodat,chown,lchown,fchownat,setxattr,lsetxattr,mount,umount2,utimensat"

// TestInsideWrites is TestServeWrites' part in the guest.
func TestInsideWrites(t *testing.T) {
	inGuest(t)
	chosen := choices(t)
	s := serve(t, "/usr/bin/strace", "-D", "-f", "--seccomp-bpf", "-o", "/strace", "-e", "trace="+changing)
	s.ready(t)
	var all sync.WaitGroup
	clients := map[string]*asker{}
	for i, name := range []string{"a", "b", "c"} {
		c := &asker{name: name, rng: rand.New(rand.NewPCG(7, uint64(i))), known: map[string]set{}}
		clients[name] = c
		all.Go(func() { c.ask(t, s, chosen) })
	}
	time.Sleep(10 * time.Second)
	for file, text := range map[string]string{"/set_ftrace_notrace": "vfs_read", "/tracing_on": "0", "/events/sched/sched_switch/enable": "1"} {
		if err := os.WriteFile(instance+file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(5 * time.Second)
	s.end(syscall.SIGTERM)
	all.Wait()
	var told []string
	for range 100 {
		b, err := os.ReadFile("/strace")
		if err != nil {
			t.Fatal(err)
		}
		if told = strings.Split(string(b), "\n"); strings.Contains(string(b), "+++ exited with 0 +++\n") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	paths := regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	ours := regexp.MustCompile(`^"(/data|/run|/sys/kernel/tracing/instances/textpoke(\.graph)?)(/[^"]*)?"$`)
	places, calls := map[string]int{}, 0
	for _, line := range told {
		_, call, ok := strings.Cut(line, " ")
		name, args, is := strings.Cut(strings.TrimSpace(call), "(")
		if !ok || !is || strings.HasPrefix(name, "<...") {
			continue
		}
		calls++
		if strings.HasPrefix(name, "open") && strings.Contains(args, "O_RDONLY") && !strings.Contains(args, "O_CREAT") {
			continue
		}
		for arg := range strings.SplitSeq(args, ", ") {
			if path := paths.FindString(arg); path != "" {
				where := ours.FindStringSubmatch(path)
				if where == nil {
					t.Errorf("outside: %s", line)
					continue
				}
				places[where[1]]++
			}
		}
	}
	asked := 0
	for _, c := range clients {
		asked += c.asked
	}
	t.Logf("%d updates; %d calls; for writing, by the folder: %v", asked, calls, places)
	if asked == 0 || len(places) < 3 || s.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("this tried too little: %s", &s.said)
	}
}
