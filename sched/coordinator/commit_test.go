// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestConfigIsValidated: what cannot work is refused before anything runs.
func TestConfigIsValidated(t *testing.T) {
	apply := newFake(1).apply
	for want, cfg := range map[string]Config{
		"-1 records":         {Records: -1, Apply: apply},
		"no Apply":           {Records: 1},
		"queue of -1":        {Records: 1, Apply: apply, Queue: -1},
		"longest wait -1s":   {Records: 1, Apply: apply, MaxWait: -time.Second},
		"gathering for -1ns": {Records: 1, Apply: apply, Gather: -1},
	} {
		if c, err := New(t.Context(), cfg); c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", cfg, err, want)
		}
	}
}

// TestEndsInOrder: an end is committed, then shown, then told to listeners, and
// those who wait hear of it last.
func TestEndsInOrder(t *testing.T) {
	var c *Coordinator
	var ticket *Ticket
	var story []string
	note := func(what string, e End) {
		done := "waiting"
		select {
		case <-e.Tickets[0].Done():
			done = "done"
		default:
		}
		story = append(story, fmt.Sprint(what, " ", e.Wants("a"), " live ", c.Snapshot().Live(1), " ", done))
	}
	x := newFake(3)
	release := make(chan struct{})
	c = started(t, t.Context(), Config{
		Records: 3,
		Apply: func(ctx context.Context, cs []Change) error {
			<-release // by now c is set
			return x.apply(ctx, cs)
		},
		Commit:   func(e End) error { note("commit", e); return nil },
		Listener: Listener{Ended: func(e End) { note("told", e) }},
	})
	ticket, err := c.Submit(t.Context(), enable("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	<-ticket.Done()
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"commit [1] live false waiting", "told [1] live true waiting"}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Error(diff)
	}
}

// TestCommitFails: nobody is told that something is live which was not committed,
// then or later, and nothing more is applied.
func TestCommitFails(t *testing.T) {
	errDisk := errors.New("disk full")
	x := newFake(9)
	commits := 0
	var ended []error
	c := started(t, t.Context(), Config{
		Records: 9, Apply: x.apply,
		Commit: func(e End) error {
			if commits++; commits == 2 {
				return errDisk
			}
			return nil
		},
		Listener: Listener{Ended: func(e End) { ended = append(ended, e.Err) }},
	})
	if err := c.Do(t.Context(), enable("a", 1)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := c.Do(t.Context(), enable("a", 2+i)); !errors.Is(err, ErrUncommitted) || !errors.Is(err, errDisk) {
			t.Errorf("request %d after the disk is full: %v", i, err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(c.Snapshot().Records()); !slices.Equal(got, []int{1}) || c.Snapshot().Enabled() != 1 {
		t.Errorf("records %v are live, want 1 alone", got)
	}
	if len(x.calls) != 2 || commits != 2 {
		t.Errorf("%d updates and %d commits, want two of each", len(x.calls), commits)
	}
	for i, err := range ended {
		if (err == nil) != (i == 0) {
			t.Errorf("end %d was told with %v", i, err)
		}
	}
}

// TestSnapshotsStay: a snapshot is of one moment, whatever comes after it.
func TestSnapshotsStay(t *testing.T) {
	x := newFake(100)
	c := x.start(t, Config{})
	before := c.Snapshot()
	for _, r := range []Request{enable("a", 1, 64), enable("b", 64, 99), disable("a", 1)} {
		if err := c.Do(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	after := c.Snapshot()
	if after != c.Snapshot() {
		t.Error("nothing has changed, and it was copied again")
	}
	if before.Enabled() != 0 || before.Live(64) {
		t.Error("the first snapshot has changed")
	}
	if got := slices.Collect(after.Records()); !slices.Equal(got, []int{64, 99}) || after.Enabled() != 2 ||
		after.Users(64) != 2 {
		t.Errorf("records %v, %d of them, %d want the 64th", got, after.Enabled(), after.Users(64))
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.settled(t, c)
}

// TestStandsByItself: the package needs no architecture, no table, no database, no
// logger, and of this module nothing but itself.
func TestStandsByItself(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		".").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool { return !strings.HasPrefix(path, "github.com/textpoke/") })
	if want := []string{"github.com/textpoke/textpoke/sched/coordinator"}; !slices.Equal(ours, want) {
		t.Errorf("needs %q, want itself alone", ours)
	}
}
