// SPDX-License-Identifier: Apache-2.0

// Package gdbtest stands in for a machine behind a gdb server, in tests of what debugs kernels.
package gdbtest

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// Machine is one that stands still.
type Machine struct {
	Registers func(cpu int) []byte
	Memory    func(at uint64) (b byte, ok bool)
	CPU       int // that requests are about, from 0
}

// Answer is what its server says to a request. CPUs have the numbers from 1 there.
func (m *Machine) Answer(asked string) string {
	switch {
	case asked == "?":
		return "T05thread:01;"
	case asked == "qC":
		return "QC1"
	case asked == "g":
		return hex.EncodeToString(m.Registers(m.CPU))
	case strings.HasPrefix(asked, "Hg"):
		_, _ = fmt.Sscanf(asked, "Hg%x", &m.CPU)
		m.CPU--
	case strings.HasPrefix(asked, "m"):
		var at uint64
		var n int
		_, _ = fmt.Sscanf(asked, "m%x,%x", &at, &n)
		b := make([]byte, n)
		for i := range b {
			var ok bool
			if b[i], ok = m.Memory(at + uint64(i)); !ok {
				return "E14"
			}
		}
		return hex.EncodeToString(b)
	case strings.HasPrefix(asked, "vCont;s:"):
		return "T05thread:0" + asked[len("vCont;s:"):] + ";"
	}
	return "OK"
}

// Listen serves one client at a socket. A request that answer has nothing to say to lets the machine go, until the client
// interrupts it.
func Listen(t testing.TB, answer func(asked string) (text string, now bool)) (socket string) {
	socket = filepath.Join(t.TempDir(), "gdb")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer l.Close()
		if conn, err := l.Accept(); err == nil {
			defer conn.Close()
			serve(conn, answer)
		}
	}()
	return socket
}

func serve(conn net.Conn, answer func(asked string) (string, bool)) {
	runs := false
	for in := bufio.NewReader(conn); ; {
		c, err := in.ReadByte()
		text, now := "T02thread:01;", c == 3 && runs // one that has just stopped does not heed it
		switch {
		case err != nil:
			return
		case c == '$':
			asked, err := in.ReadString('#')
			if err != nil {
				return
			}
			_, _ = in.Discard(2)
			text, now = answer(strings.TrimSuffix(asked, "#"))
			runs = !now
			fmt.Fprint(conn, "+")
		}
		if now {
			runs = false
			sum := byte(0)
			for _, c := range []byte(text) {
				sum += c
			}
			fmt.Fprintf(conn, "$%s#%02x", text, sum)
		}
	}
}
