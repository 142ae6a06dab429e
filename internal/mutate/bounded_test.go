// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBounded: what a command leaves is ended with it, also where it has left the command's group of processes, as far as
// the machine has control groups; then no more processes start than may.
func TestBounded(t *testing.T) {
	cmd := bounded(t.Context(), "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; setsid sleep 1000 >/dev/null 2>&1 & echo $!")
	out, err := cmd.Output()
	if err != nil {
		_ = endAll(cmd)
		t.Fatal(err)
	}
	grouped := false
	for _, d := range groups {
		_, err := os.Stat(d + "mutate-" + strconv.Itoa(cmd.Process.Pid))
		grouped = grouped || err == nil
	}
	_ = endAll(cmd)
	left := strings.Fields(string(out))
	if len(left) != 2 {
		t.Fatalf("%q", out)
	}
	for i, text := range left {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 && !grouped {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Skip("no control group can be made: a process that leaves its group is not ended, and their number has no bound")
		}
		for n := 0; alive(pid); n++ {
			if n > 1000 {
				t.Fatalf("process %d goes on", i)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	storm := bounded(t.Context(), "sh", "-c", "for i in $(seq 1200); do sleep 1000 >/dev/null 2>&1 & done; echo all")
	out, err = storm.CombinedOutput()
	_ = endAll(storm)
	if bad, ok := errors.AsType[*exec.ExitError](err); !ok || bad.Success() || strings.Contains(string(out), "all\n") {
		t.Errorf("1200 processes could start: %v, %.200s", err, out)
	}
}

// alive tells whether a process is there and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
