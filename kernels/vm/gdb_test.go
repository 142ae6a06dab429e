// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// debugger speaks to QEMU's gdb server (gdb's manual, appendix "gdb Remote Serial Protocol"). The first error stays,
// and nothing is sent after it. A CPU's thread is its number and one.
type debugger struct {
	conn net.Conn
	in   *bufio.Reader
	err  error
}

// attach stops the machine, which the server tells by itself.
func attach(ctx context.Context, socket string) (*debugger, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	attached := &debugger{conn: conn, in: bufio.NewReader(conn)}
	attached.stopped()
	return attached, attached.err
}

// send sends a packet: $TEXT#SUM.
func (d *debugger) send(text string) {
	sum := byte(0)
	for _, b := range []byte(text) {
		sum += b
	}
	d.raw(fmt.Sprintf("$%s#%02x", text, sum))
}

func (d *debugger) raw(text string) {
	if d.err == nil {
		_, d.err = d.conn.Write([]byte(text))
	}
}

// receive waits for a packet, and acknowledges it.
func (d *debugger) receive() string {
	var text string
	if d.err == nil {
		_, d.err = d.in.ReadString('$') // acknowledgements stand before
	}
	if d.err == nil {
		text, d.err = d.in.ReadString('#')
	}
	for range 2 { // the sum of its bytes: a socket loses none
		if d.err == nil {
			_, d.err = d.in.ReadByte()
		}
	}
	d.raw("+")
	return strings.TrimSuffix(text, "#")
}

// ask sends a packet and expects an answer.
func (d *debugger) ask(text string) string {
	d.send(text)
	answer := d.receive()
	if d.err == nil && strings.HasPrefix(answer, "E") {
		d.err = fmt.Errorf("gdb server: %s: %s", text, answer)
	}
	return answer
}

// memory reads so many bytes.
func (d *debugger) memory(at uint64, n int) []byte {
	b, err := hex.DecodeString(d.ask(fmt.Sprintf("m%x,%x", at, n)))
	if d.err == nil && (err != nil || len(b) != n) {
		d.err = fmt.Errorf("gdb server: memory at %#x: %d bytes, %v", at, len(b), err)
	}
	return append(b, make([]byte, n)...)[:n]
}

// stopped waits until the machine stops, and tells which CPU did.
func (d *debugger) stopped() int {
	answer := d.receive()
	_, thread, _ := strings.Cut(answer, "thread:")
	thread, _, _ = strings.Cut(thread, ";")
	n, err := strconv.ParseInt(thread, 16, 32)
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("gdb server: %q: no CPU has stopped", answer)
	}
	return int(n) - 1
}

// goOn lets every CPU go on; only lets one.
func (d *debugger) goOn()        { d.send("vCont;c") }
func (d *debugger) only(cpu int) { d.send(fmt.Sprintf("vCont;c:%x", cpu+1)) }

// step lets a CPU execute one instruction, which may hold a breakpoint.
func (d *debugger) step(cpu int) {
	d.send(fmt.Sprintf("vCont;s:%x", cpu+1))
	d.stopped()
}

// pause lets what runs go on so long, and stops it.
func (d *debugger) pause(after time.Duration) {
	time.Sleep(after)
	d.raw("\x03")
	d.stopped()
}
