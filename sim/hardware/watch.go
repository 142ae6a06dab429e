// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/textpoke/textpoke/poke/live"
)

const (
	// lastWords is how long a child may take to leave every site whole when it is to end.
	lastWords = 500 * time.Millisecond
	// looks is how often one looks whether its threads get on while patience lasts.
	looks = 20
	// patience is how much of the CPUs a child may use while a thread stays in one call:
	// a call takes microseconds.
	patience = 20 * time.Second
)

// watch ends a child that does not end an update: some time after ctx is done, or when a thread
// does not come back from a call. stop ends the watch, and tells whether the child was ended.
func (c *Child) watch(ctx context.Context) (stop func() (stuck bool)) {
	over, watched := make(chan struct{}), make(chan bool)
	go func() {
		tick := time.NewTicker(c.patience / looks)
		defer tick.Stop()
		done := ctx.Done()
		var kill <-chan time.Time
		var calls []uint64
		var since time.Duration
		for {
			select {
			case <-over:
				watched <- false
				return
			case <-done:
				_ = c.send.Encode(request{Cancel: true})
				done, kill = nil, time.After(lastWords)
			case <-kill:
				_ = c.cmd.Process.Kill()
				kill = nil
			case <-tick.C:
				now, used := live.Begun(c.blocks), c.used()
				if !stays(calls, now) {
					calls, since = now, used
				} else if used-since > c.patience {
					_ = c.cmd.Process.Kill()
					<-over
					watched <- true
					return
				}
			}
		}
	}()
	return func() bool {
		close(over)
		return <-watched
	}
}

// stays tells whether a thread is in the call that it was in before.
func stays(before, now []uint64) bool {
	for i := range now {
		if i < len(before) && now[i] != 0 && now[i] == before[i] {
			return true
		}
	}
	return false
}

// used is what the child has used of the CPUs.
func (c *Child) used() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	// Behind the name: state is the 3rd field, utime and stime are the 14th and 15th, in
	// hundredths of a second (proc_pid_stat(5); USER_HZ is 100 on x86).
	fields := strings.Fields(string(text)[bytes.LastIndexByte(text, ')')+1:])
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// queued is how long the calling thread could have run, so far, while its CPU had others: the
// second field of schedstat (Documentation/scheduler/sched-stats.rst, Linux 6.12); false where
// the kernel does not say.
func queued() (time.Duration, bool) {
	text, _ := os.ReadFile("/proc/thread-self/schedstat")
	return queuedBy(string(text))
}

func queuedBy(schedstat string) (time.Duration, bool) {
	var ran, waited int64
	_, err := fmt.Sscan(schedstat, &ran, &waited)
	return time.Duration(waited), err == nil && ran > 0
}
