// SPDX-License-Identifier: Apache-2.0

package gdb

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrGone is a machine that has ended, or whose server has.
var ErrGone = errors.New("the machine is gone")

// Client is a connection to a gdb server.
type Client struct {
	ctx      context.Context
	forget   func() bool // takes the context's hold of the connection back
	conn     net.Conn
	in       *bufio.Reader
	layout   *Layout
	selected int // the CPU that the server reads for; -1 where it is not known
}

// Stop tells where a machine stands still.
type Stop struct {
	CPU         int    // which caused it
	Interrupted bool   // by WaitFor, and not by a breakpoint or a step
	Watched     uint64 // the address that is watched, and that it has stored to or loaded; 0 for none
}

// sigINT is gdb's number of the signal that a stop by request tells (include/gdb/signals.def); a breakpoint and a step
// tell another.
const sigINT = 2

// Dial connects to a server: network is "unix" or "tcp", the address a file or a loopback address with a port. The
// server stops the machine. When ctx ends the connection does, and every call fails with the context's error.
func Dial(ctx context.Context, network, address string, layout *Layout) (*Client, Stop, error) {
	if layout == nil {
		return nil, Stop{}, fmt.Errorf("gdb server at %s: no layout of registers", address)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, Stop{}, fmt.Errorf("gdb server: %w", err)
	}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		conn.Close()
		return nil, Stop{}, fmt.Errorf("gdb server at %s: want a loopback address", address)
	}
	c := &Client{ctx: ctx, conn: conn, in: bufio.NewReader(conn), layout: layout, selected: -1}
	c.forget = context.AfterFunc(ctx, func() { conn.Close() })
	stop, err := c.first()
	if err != nil {
		c.Close()
		return nil, Stop{}, err
	}
	return c, stop, nil
}

// first asks where the machine stands. QEMU before 8.1 tells by itself, too, that it has stopped one that ran: whatever
// comes before the answer to a second question is about that.
func (c *Client) first() (stop Stop, err error) {
	for _, text := range []string{"?", "qC"} {
		if err := c.send(text); err != nil {
			return stop, err
		}
	}
	for {
		answer, err := c.receive("qC")
		if err != nil || strings.HasPrefix(answer, "QC") {
			return stop, err
		}
		if stop, err = readStop(answer); err != nil {
			return stop, err
		}
	}
}

// Detach ends the connection to a machine that stands still: it goes on, without breakpoints.
func (c *Client) Detach() error { return errors.Join(c.tell("D"), c.Close()) }

// Close ends the connection. A machine that stands still stays so until it is ended, or somebody dials again.
func (c *Client) Close() error {
	c.forget()
	return c.conn.Close()
}

// Point is where a CPU stops: before the instruction at an address, which no memory shows, or behind one that stores to, or
// loads, so many bytes. A CPU's own walks of page tables are no loads.
type Point struct {
	kind  int // as the protocol numbers them
	at    uint64
	bytes int
}

// Breakpoint, Stores and Loads are the kinds of points.
func Breakpoint(at uint64) Point        { return Point{1, at, 1} }
func Stores(at uint64, bytes int) Point { return Point{2, at, bytes} }
func Loads(at uint64, bytes int) Point  { return Point{3, at, bytes} }

// Insert has CPUs stop at a point, and Remove takes that away.
func (c *Client) Insert(p Point) error {
	return c.tell(fmt.Sprintf("Z%d,%x,%x", p.kind, p.at, p.bytes))
}
func (c *Client) Remove(p Point) error {
	return c.tell(fmt.Sprintf("z%d,%x,%x", p.kind, p.at, p.bytes))
}

// mostRead bounds one read or write; QEMU's packets have at most 4,096 bytes.
const mostRead = 1024

// Read reads n bytes as a CPU sees them.
func (c *Client) Read(cpu int, at uint64, n int) ([]byte, error) {
	if err := c.look(cpu); err != nil {
		return nil, err
	}
	var out []byte
	for len(out) < n {
		more := min(n-len(out), mostRead)
		asked := fmt.Sprintf("m%x,%x", at+uint64(len(out)), more)
		answer, err := c.ask(asked)
		if err != nil {
			return nil, err
		}
		b, err := hex.DecodeString(answer)
		if err != nil || len(b) != more {
			return nil, fmt.Errorf("gdb server: %s: %q: want %d bytes", asked, answer, more)
		}
		out = append(out, b...)
	}
	return out, nil
}

// Word reads eight bytes.
func (c *Client) Word(cpu int, at uint64) (uint64, error) {
	b, err := c.Read(cpu, at, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// Write writes bytes where a CPU sees them, also to memory that is read-only for the CPU.
func (c *Client) Write(cpu int, at uint64, b []byte) error {
	if err := c.look(cpu); err != nil {
		return err
	}
	for len(b) > 0 {
		n := min(len(b), mostRead)
		if err := c.tell(fmt.Sprintf("M%x,%x:%x", at, n, b[:n])); err != nil {
			return err
		}
		at, b = at+uint64(n), b[n:]
	}
	return nil
}

// Registers reads those of a CPU.
func (c *Client) Registers(cpu int) (Registers, error) {
	if err := c.look(cpu); err != nil {
		return Registers{}, err
	}
	answer, err := c.ask("g")
	if err != nil {
		return Registers{}, err
	}
	// Registers that a server cannot tell are xx; they come behind those of the layout.
	raw, err := hex.DecodeString(strings.ReplaceAll(answer, "x", "0"))
	if err != nil || len(raw) < 8*len(c.layout.Names) {
		return Registers{}, fmt.Errorf("gdb server: g: %d digits: want %d registers", len(answer), len(c.layout.Names))
	}
	return Registers{c.layout, raw}, nil
}

// SetRegisters gives a CPU registers that were read of it before: those of the layout, for a server leaves alone what it is
// not sent.
func (c *Client) SetRegisters(cpu int, r Registers) error {
	if err := c.look(cpu); err != nil {
		return err
	}
	return c.tell("G" + hex.EncodeToString(r.raw[:8*len(r.layout.Names)]))
}

// Skip has a CPU go on behind an instruction that does nothing. Unlike Step it does not run the machine: QEMU forgets all
// code that it has translated at every stop that is no watch's (gdb_vm_state_change, gdbstub.c, 7.2).
func (c *Client) Skip(cpu int, r Registers, insn int) error {
	r.raw = bytes.Clone(r.raw)
	binary.LittleEndian.PutUint64(r.raw[8*slices.Index(r.layout.Names, r.layout.PC):], r.PC()+uint64(insn))
	return c.SetRegisters(cpu, r)
}

// look has the server read for a CPU. A CPU's thread is its number and one.
func (c *Client) look(cpu int) error {
	if cpu == c.selected {
		return nil
	}
	if err := c.tell(fmt.Sprintf("Hg%x", cpu+1)); err != nil {
		return err
	}
	c.selected = cpu
	return nil
}

// Continue lets every CPU go on.
func (c *Client) Continue() error { return c.run("vCont;c") }

// Only lets one CPU go on; the others stand still.
func (c *Client) Only(cpu int) error { return c.run(fmt.Sprintf("vCont;c:%x", cpu+1)) }

// Step has one CPU execute one instruction, also one that has a breakpoint, and waits for it; the others stand still.
// QEMU takes no interrupts meanwhile.
func (c *Client) Step(cpu int) error {
	if err := c.run(fmt.Sprintf("vCont;s:%x", cpu+1)); err != nil {
		return err
	}
	_, err := c.Wait()
	return err
}

// WaitFor waits, and stops the machine when it has run for so long.
func (c *Client) WaitFor(limit time.Duration) (Stop, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(limit))
	err := c.silence()
	_ = c.conn.SetReadDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// A machine that has just stopped does not heed it.
		_, err = c.conn.Write([]byte{3})
	}
	if err != nil {
		return Stop{}, c.failed("wait", err)
	}
	return c.Wait()
}

// silence reads acknowledgements until something else comes.
func (c *Client) silence() error {
	for {
		b, err := c.in.Peek(1)
		if err != nil || b[0] != '+' {
			return err
		}
		_, _ = c.in.Discard(1)
	}
}

// Wait waits until the machine stops by itself.
func (c *Client) Wait() (Stop, error) {
	answer, err := c.receive("wait")
	if err != nil {
		return Stop{}, err
	}
	stop, err := readStop(answer)
	if err == nil && !stop.Interrupted { // the server reads for the CPU that has stopped it (gdb_set_stop_cpu)
		c.selected = stop.CPU
	}
	return stop, err
}

// readStop reads T, a signal, and pairs; one of them names the thread.
func readStop(answer string) (Stop, error) {
	bad := fmt.Errorf("gdb server: %q: no CPU has stopped", answer)
	if len(answer) < 3 || answer[0] != 'T' {
		return Stop{}, bad
	}
	signal, err := strconv.ParseUint(answer[1:3], 16, 8)
	if err != nil {
		return Stop{}, bad
	}
	stop := Stop{CPU: -1, Interrupted: signal == sigINT}
	for pair := range strings.SplitSeq(answer[3:], ";") {
		name, value, _ := strings.Cut(pair, ":")
		switch name {
		case "thread":
			value = value[strings.LastIndexByte(value, '.')+1:] // pPROCESS.THREAD
			n, err := strconv.ParseInt(value, 16, 32)
			if err != nil || n < 1 {
				return Stop{}, bad
			}
			stop.CPU = int(n) - 1
		case "watch", "rwatch":
			if stop.Watched, err = strconv.ParseUint(value, 16, 64); err != nil {
				return Stop{}, bad
			}
		}
	}
	if stop.CPU < 0 {
		return Stop{}, bad
	}
	return stop, nil
}

// run sends what lets CPUs go on, which is answered when they stop.
func (c *Client) run(text string) error {
	c.selected = -1
	return c.send(text)
}

// tell asks for something that is done or not.
func (c *Client) tell(text string) error {
	answer, err := c.ask(text)
	if err == nil && answer != "OK" {
		err = fmt.Errorf("gdb server: %s: %q: want OK", short(text), answer)
	}
	return err
}

// ask sends a packet and waits for the answer.
func (c *Client) ask(text string) (string, error) {
	if err := c.send(text); err != nil {
		return "", err
	}
	answer, err := c.receive(text)
	if err == nil && strings.HasPrefix(answer, "E") {
		err = fmt.Errorf("gdb server: %s: it answers %s", short(text), answer)
	}
	return answer, err
}

func (c *Client) send(text string) error {
	_, err := c.conn.Write(appendPacket(nil, text))
	return c.failed(text, err)
}

// receive waits for a packet and acknowledges it. A server that still runs takes any byte for an interrupt, and one
// that sends packets does not run.
func (c *Client) receive(asked string) (string, error) {
	text, err := readPacket(c.in)
	if err == nil {
		_, err = c.conn.Write([]byte("+"))
	}
	if strings.HasPrefix(text, "W") || strings.HasPrefix(text, "X") { // it has ended, whatever was asked
		err = fmt.Errorf("%s: %w", text, ErrGone)
	}
	return text, c.failed(asked, err)
}

// failed is an error of the connection, with the request.
func (c *Client) failed(asked string, err error) error {
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		err = context.Cause(c.ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return fmt.Errorf("gdb server: %s: %w", short(asked), err)
}

// short keeps an error on one line of bearable length.
func short(text string) string { return text[:min(len(text), 60)] }
