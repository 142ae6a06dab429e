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
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// server is a machine of one CPU register file and some memory, which heeds what it is asked. What it was sent stands
// in asked.
type server struct {
	t       *testing.T
	conn    net.Conn
	in      *bufio.Reader
	asked   []string
	answers map[string][]string // by packet, one after the other; the last one stays
}

// serve starts a server at a socket and has it answer until the client is gone.
func serve(t *testing.T, answers map[string][]string) (socket string, s *server, done chan struct{}) {
	socket = filepath.Join(t.TempDir(), "gdb")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s, done = &server{t: t, answers: answers}, make(chan struct{})
	go func() {
		defer close(done)
		if s.conn, err = l.Accept(); err == nil {
			s.in = bufio.NewReader(s.conn)
			s.loop()
			s.conn.Close()
		}
	}()
	return socket, s, done
}

func (s *server) loop() {
	for {
		c, err := s.in.Peek(1)
		if err != nil {
			return
		}
		if c[0] == 3 {
			_, _ = s.in.Discard(1)
			s.reply("\x03")
			continue
		}
		if c[0] == '+' {
			_, _ = s.in.Discard(1)
			continue
		}
		text, err := readPacket(s.in)
		if err != nil {
			return
		}
		_, _ = s.conn.Write([]byte("+"))
		s.reply(text)
	}
}

func (s *server) reply(text string) {
	s.asked = append(s.asked, text)
	queue := s.answers[text]
	if len(queue) == 0 || queue[0] == "silence" {
		return
	}
	if len(queue) > 1 {
		s.answers[text] = queue[1:]
	}
	if queue[0] == "EOF" {
		s.conn.Close()
		return
	}
	for packet := range strings.SplitSeq(queue[0], "|") {
		_, _ = s.conn.Write(appendPacket(nil, packet))
	}
}

// hello is what a server of a running machine answers first: QEMU 7.2 tells of the stop by itself.
func hello(more map[string][]string) map[string][]string {
	more["?"] = []string{"T02thread:01;|T05thread:01;"}
	more["qC"] = []string{"QC01"}
	return more
}

func dial(t *testing.T, ctx context.Context, answers map[string][]string) (*Client, *server, chan struct{}) {
	t.Helper()
	socket, s, done := serve(t, hello(answers))
	c, stop, err := Dial(ctx, "unix", socket, LayoutOf("x86_64"))
	if err != nil {
		t.Fatal(err)
	}
	if stop != (Stop{}) {
		t.Errorf("%+v at first", stop)
	}
	return c, s, done
}

// TestClientSpeaks: what each call sends, and what it makes of the answer.
func TestClientSpeaks(t *testing.T) {
	raw := make([]byte, 17*8+4)
	for i := range 17 {
		binary.LittleEndian.PutUint64(raw[8*i:], uint64(i+1))
	}
	c, s, done := dial(t, t.Context(), map[string][]string{
		"Z1,1000,1": {"OK"}, "z1,1000,1": {"OK"}, "Hg3": {"OK"}, "Hg1": {"OK"},
		"g":          {hex.EncodeToString(raw) + "xxxxxxxx"},
		"vCont;c":    {"T05thread:03;", "T05thread:03;watch:80;", "T05thread:03;rwatch:90;", "silence"},
		"vCont;c:2":  {"T05core:1;thread:p1.02;"},
		"vCont;s:3":  {"T05thread:03;"},
		"m40,400":    {strings.Repeat("0* ", 512)}, // each a digit and three more
		"m440,1":     {"cc"},
		"M40,2:cc90": {"OK"},
		"Z2,80,4":    {"OK"}, "z2,80,4": {"OK"}, "Z3,90,8": {"OK"}, "z3,90,8": {"OK"}, "D": {"OK"},
		"\x03":                               {"T02thread:01;"},
		"G" + hex.EncodeToString(raw[:17*8]): {"OK"}, "G" + hex.EncodeToString(raw[:16*8]) + "1600000000000000": {"OK"},
	})
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("insert", c.Insert(Breakpoint(0x1000)))
	check("continue", c.Continue())
	stop, err := c.Wait()
	check("wait", err)
	if stop != (Stop{CPU: 2}) {
		t.Errorf("%+v", stop)
	}
	r, err := c.Registers(stop.CPU)
	check("registers", err)
	if rcx, ok := r.Get("rcx"); r.PC() != 17 || r.SP() != 8 || r.Arg(0) != 6 || r.Arg(3) != 3 || !ok || rcx != 3 {
		t.Errorf("%+v", r)
	}
	if _, ok := r.Link(); ok {
		t.Error("x86 keeps where it returns to on the stack")
	}
	b, err := c.Read(2, 0x40, 1025)
	check("read", err)
	if want := append(make([]byte, 1024), 0xcc); !bytes.Equal(b, want) {
		t.Errorf("% x", b)
	}
	check("write", c.Write(2, 0x40, []byte{0xcc, 0x90}))
	check("watch", c.Insert(Stores(0x80, 4)))
	check("continue", c.Continue())
	if stop, err := c.Wait(); err != nil || stop != (Stop{CPU: 2, Watched: 0x80}) {
		t.Errorf("%+v, %v", stop, err)
	}
	check("watch no more", c.Remove(Stores(0x80, 4)))
	check("watch loads", c.Insert(Loads(0x90, 8)))
	check("continue", c.Continue())
	if stop, err := c.Wait(); err != nil || stop != (Stop{CPU: 2, Watched: 0x90}) {
		t.Errorf("%+v, %v", stop, err)
	}
	check("watch no more", c.Remove(Loads(0x90, 8)))
	check("set registers", c.SetRegisters(2, r))
	check("skip", c.Skip(2, r, 5)) // from 17
	check("step", c.Step(2))
	if _, err := c.Registers(0); err != nil {
		t.Error(err)
	}
	check("remove", c.Remove(Breakpoint(0x1000)))
	check("only", c.Only(1))
	if stop, err := c.Wait(); err != nil || stop.CPU != 1 {
		t.Errorf("%+v, %v", stop, err)
	}
	check("continue", c.Continue())
	if stop, err = c.WaitFor(time.Millisecond); err != nil || stop != (Stop{Interrupted: true}) {
		t.Errorf("%+v, %v", stop, err)
	}
	check("detach", c.Detach())
	<-done
	const want = "? qC Z1,1000,1 vCont;c g m40,400 m440,1 M40,2:cc90 Z2,80,4 vCont;c z2,80,4 Z3,90,8 vCont;c z3,90,8 G G vCont;s:3 Hg1 g z1,1000,1 vCont;c:2 " +
		"vCont;c \x03 D"
	for i, a := range s.asked {
		if a[0] == 'G' {
			s.asked[i] = "G"
		}
	}
	if got := strings.Join(s.asked, " "); got != want {
		t.Errorf("sent %q\nwant %q", got, want)
	}
}

// TestWaitForSeesBreakpoints: what stops by itself in time is not interrupted.
func TestWaitForSeesBreakpoints(t *testing.T) {
	c, s, done := dial(t, t.Context(), map[string][]string{"vCont;c": {"T05thread:02;"}})
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	if stop, err := c.WaitFor(time.Hour); err != nil || stop != (Stop{CPU: 1}) {
		t.Errorf("%+v, %v", stop, err)
	}
	c.Close()
	if <-done; s.asked[len(s.asked)-1] == "\x03" {
		t.Error("it was interrupted")
	}
}

// TestErrorsSayWhatWasAsked: a refusal, nonsense, and a machine that ends.
func TestErrorsSayWhatWasAsked(t *testing.T) {
	c, _, _ := dial(t, t.Context(), map[string][]string{"Z1,10,1": {"E22"}, "z1,10,1": {""}, "Hg1": {"OK"},
		"m10,4": {"cc"}, "m20,4": {"W00"}, "g": {"00"}, "vCont;c": {"T05", "W00", "hello", "EOF"}})
	defer c.Close()
	_, few := c.Read(0, 16, 4)
	_, ended := c.Read(0, 32, 4)
	_, short := c.Registers(0)
	stop := func() error {
		if err := c.Continue(); err != nil {
			return err
		}
		_, err := c.Wait()
		return err
	}
	for i, got := range []struct {
		err  error
		want string
		gone bool
	}{
		{c.Insert(Breakpoint(16)), "gdb server: Z1,10,1: it answers E22", false},
		{c.Remove(Breakpoint(16)), `gdb server: z1,10,1: "": want OK`, false},
		{few, `gdb server: m10,4: "cc": want 4 bytes`, false},
		{ended, "gdb server: m20,4: W00: the machine is gone", true},
		{short, "gdb server: g: 2 digits: want 17 registers", false},
		{stop(), `gdb server: "T05": no CPU has stopped`, false},
		{stop(), "gdb server: wait: W00: the machine is gone", true},
		{stop(), `gdb server: "hello": no CPU has stopped`, false},
		{stop(), "gdb server: wait: the machine is gone: EOF", true},
	} {
		if got.err == nil || got.err.Error() != got.want || errors.Is(got.err, ErrGone) != got.gone {
			t.Errorf("%d: %v, want %s", i, got.err, got.want)
		}
	}
}

// TestContextEndsWaiting: a machine that never stops again.
func TestContextEndsWaiting(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	c, _, done := dial(t, ctx, map[string][]string{})
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	go cancel(why)
	if _, err := c.Wait(); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if err := c.Continue(); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	<-done
	c.Close()
}

// TestDialRefuses: nobody there, no layout, and another machine's server.
func TestDialRefuses(t *testing.T) {
	if _, _, err := Dial(t.Context(), "unix", filepath.Join(t.TempDir(), "none"), LayoutOf("arm64")); err == nil {
		t.Error("nothing listens")
	}
	if _, _, err := Dial(t.Context(), "unix", "x", LayoutOf("s390x")); err == nil ||
		!strings.Contains(err.Error(), "no layout") {
		t.Errorf("%v", err)
	}
	socket, _, _ := serve(t, map[string][]string{"qC": {"QC01"}, "?": {"E01"}})
	if _, _, err := Dial(t.Context(), "unix", socket, LayoutOf("riscv64")); err == nil {
		t.Error("no stop was told")
	}
}

// TestLayouts: the registers that gdb's descriptions name, at their places.
func TestLayouts(t *testing.T) {
	for arch, want := range map[string]struct{ pc, sp, second, link int }{
		"x86_64": {16, 7, 4, -1}, "arm64": {32, 31, 1, 30}, "riscv64": {32, 2, 11, 1},
	} {
		l := LayoutOf(arch)
		r := Registers{l, make([]byte, 8*len(l.Names))}
		for i := range l.Names {
			binary.LittleEndian.PutUint64(r.raw[8*i:], uint64(i))
		}
		if r.PC() != uint64(want.pc) || r.SP() != uint64(want.sp) || r.Arg(1) != uint64(want.second) {
			t.Errorf("%s: %d %d %d", arch, r.PC(), r.SP(), r.Arg(1))
		}
		if link, ok := r.Link(); ok != (want.link >= 0) || ok && link != uint64(want.link) {
			t.Errorf("%s: link %d, %v", arch, link, ok)
		}
	}
}

// TestPackets: what is framed is read back, and what is damaged is refused.
func TestPackets(t *testing.T) {
	for in, want := range map[string]string{
		"$#00": "", "+++$OK#9a": "OK", "$a}\x03#%": "a#", "$0*\"#%": "000000", "$0* 7#%": "00007",
	} {
		if text, ok := strings.CutSuffix(in, "%"); ok {
			_, inner, _ := strings.Cut(text, "$")
			in = fmt.Sprintf("%s%02x", text, sumOf(strings.TrimSuffix(inner, "#")))
		}
		if got, err := readPacket(bufio.NewReader(strings.NewReader(in))); got != want || err != nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"$OK#9b", "$OK#zz", "OK", "-", "$*a#8b", "$}#7d", "$a*#8b", "$a*\x05#90"} {
		if got, err := readPacket(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, errPacket) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"$OK", "$OK#", "$OK#9"} {
		if got, err := readPacket(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if _, err := readPacket(bufio.NewReader(strings.NewReader("$" + strings.Repeat("a", maxPacket+1)))); err == nil {
		t.Error("a packet without an end")
	}
}

// FuzzPacket: whatever a server sends is a packet, or an error of one line; it never grows without bound.
func FuzzPacket(f *testing.F) {
	f.Add([]byte("+$T05thread:01;#07"))
	f.Add([]byte("$0*~#d8"))
	f.Add([]byte("$a}]#%"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := readPacket(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		if len(text) > maxPacket {
			t.Errorf("%d bytes", len(text))
		}
		if stop, err := readStop(text); err == nil && stop.CPU < 0 {
			t.Errorf("%q: %+v", text, stop)
		}
		if strings.ContainsAny(text, "$#}*") {
			return
		}
		again, err := readPacket(bufio.NewReader(bytes.NewReader(appendPacket(nil, text))))
		if again != text || err != nil {
			t.Errorf("%q is read back as %q, %v", text, again, err)
		}
	})
}
