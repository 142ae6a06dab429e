// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
)

// within is a child whose life is lived in this process; end ends it and returns the machine that is left, whose CPUs
// have come to rest.
func within(t *testing.T) (c *Child, end func() *Machine) {
	t.Helper()
	c = &Child{patience: patience}
	var files [2]*os.File
	for i, what := range []string{"blocks", "text"} {
		f, err := live.File(what)
		if err != nil {
			t.Skip("skipped:", err)
		}
		t.Cleanup(func() { _ = f.Close() })
		files[i] = f
	}
	c.blocks, c.text = files[0], files[1]
	requests, in := io.Pipe()
	out, replies := io.Pipe()
	c.in, c.send, c.receive = in, gob.NewEncoder(in), gob.NewDecoder(out)
	left := make(chan *Machine)
	go func() {
		left <- serve(requests, replies, files)
		_ = replies.Close()
	}()
	return c, func() *Machine {
		_ = in.Close()
		return <-left
	}
}

// TestServes: a child carries updates out and tells what came of them, one after the other, whatever becomes of them; an
// end that is asked for ends them; another machine takes the place of the one before.
func TestServes(t *testing.T) {
	cfg, u := machineOf(t, 3)
	c, end := within(t)
	if err := c.Renew(cfg); err != nil {
		t.Fatal(err)
	}
	for _, now := range []*poke.Update{u, inverse(u)} {
		out, err := c.Update(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		sound(t, out, 3)
		for i, p := range now.Patches {
			if c.Peek(i) != p.New {
				t.Errorf("site %d: %s", i, c.Peek(i).Format(5))
			}
		}
	}
	_, err := c.Update(t.Context(), inverse(u)) // once more, though nothing is enabled
	failed, ok := errors.AsType[*poke.Error](err)
	if !ok || failed.State != poke.AllOld || c.Peek(1) != u.Patches[1].Old || strings.Count(err.Error(), "update ") != 1 {
		t.Errorf("%v", err)
	}
	if err := c.Renew(Config{Code: cfg.Code, Initial: cfg.Initial}); said(err) == "" || !errors.Is(err, ErrNone) ||
		err.Error() != "no hardware engine here: 0 CPU: want two or more, one that patches and one that calls" {
		t.Errorf("a machine of no CPUs: %v", err)
	}
	enabled := cfg
	enabled.Initial = func(i int) isa.Text { return u.Patches[i].New }
	if err := c.Renew(enabled); err != nil || c.Peek(0) != 0 {
		t.Fatal(err, c.Peek(0))
	}
	before := live.Begun(c.blocks)
	out, err := c.Update(t.Context(), inverse(u))
	if err != nil || len(before) != 2 {
		t.Fatal(err, before)
	}
	sound(t, out, 3)
	if err := c.send.Encode(request{Cancel: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), u); said(err) != context.Canceled.Error() {
		t.Error(err)
	}
	m := end()
	if m == nil || !m.cfg.Broken {
		t.Fatal("no machine is left")
	}
	for i, p := range u.Patches {
		if m.Peek(i) != p.Old && m.Peek(i) != p.New {
			t.Errorf("site %d: %s", i, m.Peek(i).Format(5))
		}
	}
	if err := m.rest(t.Context()); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestServesNoLonger: an update that waits for what never comes ends with the parent.
func TestServesNoLonger(t *testing.T) {
	cfg, u := machineOf(t, 1)
	c, end := within(t)
	if err := c.Renew(cfg); err != nil {
		t.Fatal(err)
	}
	waits := *u
	waits.Plan = []poke.Step{{Op: poke.Expect}}
	if err := c.send.Encode(request{Update: &waits}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		var r reply
		ended <- said(c.receive.Decode(&r)) + r.Err
	}()
	m := end()
	if got := <-ended; got != "context canceled" {
		t.Errorf("the update ended with %q", got)
	}
	if err := errors.Join(m.rest(t.Context()), m.Close()); err != nil {
		t.Error(err)
	}
}

// TestServesNobody: a child ends when its parent neither talks to it nor listens.
func TestServesNobody(t *testing.T) {
	_, end := within(t)
	if m := end(); m != nil {
		t.Errorf("%v", m)
	}
	cfg, _ := machineOf(t, 1)
	c, end := within(t)
	_ = c.in.(*io.PipeWriter).CloseWithError(io.ErrUnexpectedEOF)
	if err := c.send.Encode(request{}); err == nil {
		t.Error("a request to nobody")
	}
	if m := end(); m != nil {
		t.Errorf("%v", m)
	}
	c.dead = true
	if err := c.Renew(cfg); !errors.Is(err, ErrDead) {
		t.Error(err)
	}
}

// TestChildFails: what fails in a child fails as it does here.
func TestChildFails(t *testing.T) {
	cfg, u := machineOf(t, 2)
	c := child(t, cfg)
	back := inverse(u)
	_, err := c.Update(t.Context(), back)
	_, want := machine(t, cfg).Update(t.Context(), back)
	failed, ok := errors.AsType[*poke.Error](err)
	if said(err) != said(want) || said(want) == "" || !ok {
		t.Errorf("%v, want %v", err, want)
	} else if here, _ := errors.AsType[*poke.Error](want); failed.State != here.State || failed.Step != here.Step ||
		failed.Patch != here.Patch || failed.Begun != here.Begun {
		t.Errorf("%+v, want %+v", failed, here)
	}
	if _, err := NewChild(Config{Code: cfg.Code, Roles: make([]cpus.Role, 1)}); said(err) !=
		"1 CPU: want two or more, one that patches and one that calls" {
		t.Error(err)
	}
	none := cfg
	none.Code = &cpus.Code{Traits: cfg.Code.Traits, Len: 5, Entry: 1 << 40, Sites: cfg.Code.Sites[:1]} // which lies out of reach
	if c, err := NewChild(none); !errors.Is(err, ErrNone) || c != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// TestFromOutside: a process ends of itself by its exit and by what its text brings it; by what is sent to it, and
// without memory, it ends from outside.
func TestFromOutside(t *testing.T) {
	for command, want := range map[string]string{"exit 3": "exit status 3", "kill -9 $$": "killed from outside",
		"kill -15 $$": "killed from outside", "kill -1 $$": "killed from outside", "kill -2 $$": "killed from outside",
		"kill -4 $$":                            "signal: illegal instruction",
		"exit 9":                                "exit status 9",
		"echo panic: x >&2; echo y >&2; exit 2": "exit status 2: panic: x",
		"echo fatal error: out of memory >&2; exit 2": "killed from outside",
	} {
		cmd := exec.Command("sh", "-c", command)
		c := &Child{cmd: cmd, in: io.NopCloser(strings.NewReader(""))}
		cmd.Stderr = &c.stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		err := c.died(io.EOF)
		if fromOutside(err) != (want == "killed from outside") || !c.dead {
			t.Errorf("%s: %v is from outside %v", command, err, fromOutside(err))
		} else if !fromOutside(err) && err.Error() != "the process ended with "+want {
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
	if !fromOutside(io.EOF) {
		t.Error("of an end that nobody knows")
	}
	c := &Child{cmd: exec.Command("sh", "-c", "exit 0"), in: io.NopCloser(strings.NewReader(""))}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.died(io.EOF); err.Error() != "the process ended with EOF" || !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestAutopsy: each thread that was at a site when its process died is a finding, with the site's bytes of then; of a
// process that died elsewhere it is told how.
func TestAutopsy(t *testing.T) {
	cfg, u := machineOf(t, 2)
	c, end := within(t)
	defer end()
	c.cfg = cfg
	c.cfg.Roles = []cpus.Role{cpus.Offline, cpus.Busy, cpus.Busy}
	died := errors.New("the process ended with this")
	for stuck, want := range map[bool]cpus.Violation{false: {Property: cpus.TornFetch, Why: "the process ended with this"},
		true: {Property: cpus.StuckCPU, Why: "a thread did not come back from a call"}} {
		want.CPU, want.Site = -1, -1
		out := Outcome{Died: true, Total: 1, Counts: cpus.NewCounts(3), Tallies: make([]cpus.Tally, 3),
			Findings: []cpus.Violation{want}}
		if d := cmp.Diff(out, c.autopsy(died, stuck)); d != "" {
			t.Error(d)
		}
	}
	// Two threads, of which the second is at the second site: see live's Autopsy.
	m := machine(t, Config{Code: cfg.Code, Initial: cfg.Initial, Roles: make([]cpus.Role, 2), blocks: c.blocks, text: c.text})
	m.cpus[1].Stretch(1, m.live.List([]int32{1}))
	blocks := make([]byte, 1024)
	if _, err := c.blocks.ReadAt(blocks, 0); err != nil {
		t.Fatal(err)
	}
	blocks[512] = 1 // in a call
	if _, err := c.blocks.WriteAt(blocks, 0); err != nil {
		t.Fatal(err)
	}
	want := cpus.Violation{Property: cpus.TornFetch, CPU: 2, Site: 1, Addr: u.Patches[1].Addr, Bytes: "0f 1f 44 00 00",
		Why: "the process ended with this, while this CPU executed the site: nopl (%rax,%rax) by then"}
	got := c.autopsy(died, false)
	blocks[512] = 0
	if _, err := c.blocks.WriteAt(blocks[:513], 0); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]cpus.Violation{want}, got.Findings); d != "" || got.Total != 1 || !got.Died {
		t.Error(d)
	}
}

// TestUsed: a process has used what the kernel charges it with, to hundredths of a second; one that is gone uses nothing.
func TestUsed(t *testing.T) {
	rusage := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	c := &Child{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	for rusage() < 100*time.Millisecond {
	}
	const tick = 10 * time.Millisecond
	before := rusage()
	if used := c.used(); used < before-2*tick || used > rusage() {
		t.Errorf("%v, between %v and %v", used, before, rusage())
	}
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/self/comm", []byte("a) b c d)"), 0); err != nil {
		t.Fatal(err)
	}
	before = rusage()
	used := c.used()
	if err := os.WriteFile("/proc/self/comm", bytes.TrimSpace(name), 0); err != nil {
		t.Error(err)
	}
	if used < before-2*tick || used > rusage() {
		t.Errorf("of another name: %v, between %v and %v", used, before, rusage())
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if used := (&Child{cmd: gone}).used(); used != 0 {
		t.Errorf("what is gone used %v", used)
	}
}

// TestClosed: a child that is closed is gone, with its files, and twice is as good as once; what was never started can
// be closed.
func TestClosed(t *testing.T) {
	cfg, u := machineOf(t, 1)
	c := child(t, cfg)
	process, files := c.cmd.Process, []*os.File{c.blocks, c.text}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the process goes on: %v", err)
	}
	if slices.ContainsFunc(files, func(f *os.File) bool { return !errors.Is(f.Close(), os.ErrClosed) }) {
		t.Error("a file stays open")
	}
	if _, err := c.Update(t.Context(), u); !errors.Is(err, ErrDead) {
		t.Error(err)
	}
	if err := (&Child{}).Close(); err != nil {
		t.Error(err)
	}
}
