// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
)

// Child is a Machine in a process of its own, for plans that may do anything at all. Its
// text and its threads' notes are files of this process, which reads them when it is dead.
type Child struct {
	cfg          Config
	cmd          *exec.Cmd
	in           io.Closer
	send         *gob.Encoder
	receive      *gob.Decoder
	blocks, text *os.File
	stderr       bytes.Buffer
	last         map[int32]isa.Text // of the sites of the last update
	patience     time.Duration      // with a thread that does not come back from a call
	dead         bool
}

// childOf names, in a child's environment, the process that it is the child of.
const childOf = "TEXTPOKE_HARDWARE_CHILD_OF"

// The messages to a child: its machine, its work, and then another machine or none.
type (
	// hello is a machine without what no pipe carries: its functions, and the instruction set, which is this machine's.
	hello struct {
		Config
		Texts []isa.Text // at first, by site
	}
	request struct {
		Machine *hello // in place of the one before
		Cancel  bool   // the update that is under way
		Update  *poke.Update
	}
	reply struct {
		Outcome Outcome
		Err     string
		Failed  *poke.Error // without its errors, which are in Err
		Text    []isa.Text  // of each patch's site, when all is over
		Begun   bool        // the machine is there
	}
)

// NewChild starts a process, of this program, that has the machine. Close must follow.
func NewChild(cfg Config) (*Child, error) {
	allowed, err := Allowed()
	if err != nil {
		return nil, err
	}
	if err := Fits(cfg.Roles, allowed); err != nil {
		return nil, err
	}
	c := &Child{patience: patience}
	if err = c.start(); err == nil {
		err = c.Renew(cfg)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Renew lets the process have another machine.
func (c *Child) Renew(cfg Config) error {
	if c.dead {
		return ErrDead
	}
	c.cfg, c.last = cfg, map[int32]isa.Text{}
	code := *cfg.Code
	code.Arch = nil
	h := &hello{Config: cfg}
	h.Code = &code
	for i := range code.Sites {
		h.Texts = append(h.Texts, cfg.Initial(i))
	}
	if err := c.send.Encode(request{Machine: h}); err != nil {
		return c.died(err)
	}
	var r reply
	if err := c.receive.Decode(&r); err != nil {
		return c.died(err)
	}
	if !r.Begun {
		return fmt.Errorf("%w: %s", ErrNone, r.Err)
	}
	return nil
}

// start starts the process.
func (c *Child) start() (err error) {
	if c.blocks, err = live.File("blocks"); err != nil {
		return err
	}
	if c.text, err = live.File("text"); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childOf+"="+strconv.Itoa(os.Getpid()))
	cmd.ExtraFiles = []*os.File{c.blocks, c.text}
	cmd.Stderr = &c.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a process for plans that may break: %w", err)
	}
	c.cmd, c.in, c.send, c.receive = cmd, in, gob.NewEncoder(in), gob.NewDecoder(out)
	return nil
}

// Fault has nothing to fail: stores of a child are its own.
func (c *Child) Fault(func(poke.Step, int32) error) {}

// died is the error of a process that has died.
func (c *Child) died(err error) error {
	c.dead = true
	_ = c.in.Close()
	if waited := c.cmd.Wait(); waited != nil {
		err = waited
	}
	line, _, _ := strings.Cut(c.stderr.String(), "\n")
	if line != "" {
		return fmt.Errorf("the process ended with %w: %s", err, line)
	}
	return fmt.Errorf("the process ended with %w", err)
}

// Close ends the process.
func (c *Child) Close() error {
	if c.cmd != nil && !c.dead {
		c.dead = true
		_ = c.in.Close() // which it waits for
		_ = c.cmd.Wait()
	}
	_, _ = c.blocks.Close(), c.text.Close() // which there may not be
	return nil
}

// Peek is what the last update left at one of its sites.
func (c *Child) Peek(site int) isa.Text { return c.last[int32(site)] }

// ErrDead refuses updates after one that the process has not survived.
var ErrDead = errors.New("the machine's process has died of an earlier update")

// Update is as a Machine's. That the process dies of it is a finding.
func (c *Child) Update(ctx context.Context, u *poke.Update) (Outcome, error) {
	switch {
	case c.dead:
		return Outcome{}, ErrDead
	case ctx.Err() != nil: // not begun: what the process is told comes too late for a short update
		return Outcome{}, context.Cause(ctx)
	}
	sent := *u
	sent.Shape.Entry = nil // no function goes through a pipe; who takes it back asks for none
	if err := c.send.Encode(request{Update: &sent}); err != nil {
		return c.ended(err, false)
	}
	stop := c.watch(ctx)
	var r reply
	err := c.receive.Decode(&r)
	stuck := stop()
	switch {
	case err != nil && ctx.Err() != nil: // it did not end in time, and its machine is gone
		_ = c.died(err)
		return Outcome{}, context.Cause(ctx)
	case err != nil:
		return c.ended(err, stuck)
	}
	for i, p := range u.Patches {
		c.last[p.Site] = r.Text[i]
	}
	switch {
	case r.Err == "":
		return r.Outcome, nil
	case ctx.Err() != nil:
		return r.Outcome, context.Cause(ctx)
	case r.Failed != nil:
		r.Failed.Err = errors.New(r.Err)
		return r.Outcome, r.Failed
	}
	return r.Outcome, errors.New(r.Err)
}

// ended is what an update came to whose process is dead; stuck: it was ended for that.
func (c *Child) ended(err error, stuck bool) (Outcome, error) {
	died := c.died(err)
	if !stuck && fromOutside(died) {
		return Outcome{}, fmt.Errorf("the machine's process was killed from outside: %w", died)
	}
	return c.autopsy(died, stuck), nil
}

// fromOutside tells whether a process ended as no text makes it end, however broken: by a
// signal that somebody has sent, or for want of memory.
func fromOutside(died error) bool {
	var exit *exec.ExitError
	if !errors.As(died, &exit) || strings.Contains(died.Error(), "out of memory") {
		return true
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	sent := []syscall.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT}
	return ok && status.Signaled() && slices.Contains(sent, status.Signal())
}

// autopsy tells what threads were at when the process died; stuck: one did not come back.
func (c *Child) autopsy(died error, stuck bool) Outcome {
	n, property := len(c.cfg.Roles), cpus.TornFetch
	if stuck {
		property, died = cpus.StuckCPU, errors.New("a thread did not come back from a call")
	}
	out := Outcome{Died: true, Counts: cpus.NewCounts(n), Tallies: make([]cpus.Tally, n)}
	for _, d := range live.Autopsy(c.blocks, c.text, c.cfg.Code) {
		out.Findings = append(out.Findings, cpus.Violation{
			Property: property, CPU: online(c.cfg.Roles, d.Thread), Site: d.Site, Addr: c.cfg.Code.Sites[d.Site],
			Bytes: isa.TextOf(d.Bytes[:c.cfg.Code.Len]...).Format(c.cfg.Code.Len),
			Why:   fmt.Sprintf("%v, while this CPU executed the site: %s by then", died, disassembled(d.Bytes)),
		})
	}
	if len(out.Findings) == 0 {
		out.Findings = []cpus.Violation{{Property: property, CPU: -1, Site: -1, Why: died.Error()}}
	}
	out.Total = uint64(len(out.Findings))
	return out
}

// online is the CPU that the n-th thread is on.
func online(roles []cpus.Role, n int) int {
	for cpu, r := range roles {
		if r == cpus.Offline {
			continue
		}
		if n--; n < 0 {
			return cpu
		}
	}
	return -1
}

// init makes a child of a process that NewChild has started: whatever program it is, it
// gets no further.
func init() {
	if os.Getenv(childOf) != strconv.Itoa(os.Getppid()) {
		return
	}
	signal.Ignore(unix.SIGINT, unix.SIGTERM) // the parent says when to end
	serve(os.Stdin, os.Stdout, [2]*os.File{os.NewFile(3, "blocks"), os.NewFile(4, "text")})
	os.Exit(0)
}

// serve is a child's life. It returns its last machine.
func serve(in io.Reader, out io.Writer, files [2]*os.File) (m *Machine) {
	receive, send := gob.NewDecoder(in), gob.NewEncoder(out)
	requests := make(chan request)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(requests)
		defer cancel()
		for {
			var r request
			if receive.Decode(&r) != nil {
				return
			}
			if r.Cancel {
				cancel()
			} else {
				requests <- r
			}
		}
	}()
	for q := range requests {
		var r reply
		if q.Machine != nil {
			m, r = q.Machine.machine(m, files)
		} else {
			r = m.answer(ctx, q.Update)
		}
		if send.Encode(r) != nil {
			break
		}
	}
	return m
}

// answer carries an update out.
func (m *Machine) answer(ctx context.Context, u *poke.Update) (r reply) {
	var err error
	if r.Outcome, err = m.Update(ctx, u); err != nil {
		r.Err = err.Error()
		if failed, ok := errors.AsType[*poke.Error](err); ok {
			r.Err = fmt.Sprint(failed.Err)
			r.Failed = &poke.Error{State: failed.State, Begun: failed.Begun, Step: failed.Step, Patch: failed.Patch}
		}
	}
	for i := range u.Patches {
		r.Text = append(r.Text, m.Peek(int(u.Patches[i].Site)))
	}
	return r
}

// machine makes the machine of a child, in place of the one that it had before, if any.
func (h *hello) machine(before *Machine, files [2]*os.File) (m *Machine, r reply) {
	if before != nil {
		_ = before.Close()
	}
	cfg := h.Config
	cfg.Code.Arch, cfg.Code.Traits = live.Arch, live.Arch.Traits()
	cfg.Initial = func(site int) isa.Text { return h.Texts[site] }
	cfg.Broken, cfg.blocks, cfg.text = true, files[0], files[1]
	err := cmp.Or(files[0].Truncate(0), files[1].Truncate(0)) // nothing of the one before is left
	if err == nil {
		m, err = New(cfg)
	}
	if err != nil {
		return nil, reply{Err: err.Error()}
	}
	return m, reply{Begun: true}
}
