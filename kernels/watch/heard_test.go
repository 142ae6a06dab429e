// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/tracefs"
)

// traced is a tracefs that has some events, and notes its uses.
type traced struct {
	tracefs.Files
	has         []string // files that can be written, as their names end
	fails       map[string]error
	done        []string
	pipe        pipe
	openedFirst int // how many things were done before the pipe was opened
}

func (f *traced) note(format string, args ...any) error {
	what := strings.ReplaceAll(fmt.Sprintf(format, args...), fmt.Sprint("textpoke-", os.Getpid()), "own")
	f.done = append(f.done, what)
	return f.fails[strings.Fields(what)[0]]
}

func (f *traced) Mkdir(name string) (bool, error) {
	err := f.note("mkdir %s", name)
	return err == nil, err
}
func (f *traced) Remove(name string) error { return f.note("remove %s", name) }
func (f *traced) Open(name string) (io.ReadCloser, error) {
	if err := f.note("open %s", name); err != nil {
		return nil, err
	}
	f.openedFirst = len(f.done)
	return &f.pipe, nil
}

func (f *traced) Write(name, text string, trunc bool) error {
	if !trunc || !slices.ContainsFunc(f.has, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return os.ErrNotExist
	}
	return f.note("write %s %s", name, text)
}

// pipe gives its texts, one a reading, and then an error.
type pipe struct {
	texts  []string
	last   error
	closed int
}

func (p *pipe) Read(b []byte) (int, error) {
	if len(p.texts) == 0 {
		return 0, p.last
	}
	n := copy(b, p.texts[0])
	p.texts = p.texts[1:]
	return n, nil
}

func (p *pipe) Close() error { p.closed++; return nil }

// TestHears: both senders are switched on where they are there, flushes where neither is; timers on isolated CPUs
// alone, and only behind their filters; the instance goes when it is over, and when nothing can be heard.
func TestHears(t *testing.T) {
	const dir = "instances/own"
	enable := func(name string) string { return "write " + dir + "/events/" + name + "/enable 1" }
	csd, ipi, tlb := enable("csd/csd_queue_cpu"), enable("ipi/ipi_send_cpu"), enable("tlb/tlb_flush")
	timer, hr := "timer/timer_expire_entry", "timer/hrtimer_expire_entry"
	filter := func(name, where string) string { return "write " + dir + "/events/" + name + "/filter " + where }
	made, opened, gone := "mkdir "+dir, "open "+dir+"/trace_pipe", "remove "+dir
	for _, c := range []struct {
		name     string
		has      []string
		isolated []int
		fails    map[string]error
		want     []string
		err      string
	}{
		{name: "both", has: []string{"enable"}, want: []string{made, csd, ipi, opened}},
		{name: "one", has: []string{"csd_queue_cpu/enable", "tlb_flush/enable"}, want: []string{made, csd, opened}},
		{name: "the other", has: []string{"ipi_send_cpu/enable", "tlb_flush/enable"}, want: []string{made, ipi, opened}},
		{name: "flushes", has: []string{"tlb_flush/enable"}, want: []string{made, tlb, opened}},
		{name: "none", want: []string{made, gone}, err: errNoEvents.Error()},
		{name: "timers", has: []string{"csd_queue_cpu/enable", "filter", "expire_entry/enable"}, isolated: []int{2, 5},
			want: []string{made, csd, opened, filter(timer, "CPU == 2 || CPU == 5"), enable(timer), filter(hr,
				"CPU == 2 || CPU == 5"),
				enable(hr)}},
		{name: "timers without filters", has: []string{"enable"}, isolated: []int{2}, want: []string{made, csd, ipi, opened}},
		{name: "nobody isolated", has: []string{"enable", "filter"}, want: []string{made, csd, ipi, opened}},
		{name: "no folder", fails: map[string]error{"mkdir": os.ErrPermission}, want: []string{made},
			err: "permission denied (root can, where tracefs is mounted)"},
		{name: "no pipe", has: []string{"enable"}, fails: map[string]error{"open": os.ErrPermission},
			want: []string{made, csd, ipi, opened, gone},
			err:  "permission denied"},
		{name: "it stays", fails: map[string]error{"remove": errors.New("busy")}, want: []string{made, gone},
			err: errNoEvents.Error() + "\nbusy"},
	} {
		f := &traced{has: c.has, fails: c.fails}
		s, err := hear(f, c.isolated)
		if d := cmp.Diff(c.want, f.done); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if (err != nil) != (c.err != "") || err != nil && err.Error() != c.err || (s == nil) != (err != nil) {
			t.Errorf("%s: %v, %v, want %s", c.name, s, err, c.err)
		}
		if err != nil {
			continue
		}
		if err := s.Close(); err != nil || f.pipe.closed != 1 || f.done[len(f.done)-1] != gone {
			t.Errorf("%s: %v, closed %d times, %q", c.name, err, f.pipe.closed, f.done)
		}
	}
}

// TestListen: the first source that the kernel allows is used, or the one that was asked for; where none is, one line
// says of each why.
func TestListen(t *testing.T) {
	symbolsAre(t, "0000000000000000 A fixed\n") // no programs
	f := &traced{has: []string{"csd_queue_cpu/enable"}}
	for _, by := range []string{"", "events"} {
		c, used, err := Listen(f, nil, by)
		if err != nil || used != "events" || c == nil {
			t.Errorf("by %q: %q, %v", by, used, err)
			continue
		}
		if c.Lost() != 0 || c.Ran() != 0 {
			t.Errorf("%d lost, ran for %v", c.Lost(), c.Ran())
		}
	}
	none := symbolFile + " tells no addresses (kernel.kptr_restrict)"
	for by, want := range map[string]string{"": "by bpf: " + none + "; by events: " + errNoEvents.Error(),
		"bpf":    "by bpf: " + none,
		"events": "by events: " + errNoEvents.Error(), "guesses": `by "guesses": want one of bpf, events`} {
		if c, used, err := Listen(&traced{}, nil, by); c != nil || used != "" || err == nil || err.Error() != want {
			t.Errorf("by %q: %q, %v, want %s", by, used, err, want)
		}
	}
}

// TestTakeEnds: what a pipe gives is read until nothing is there; an error of another kind is told.
func TestTakeEnds(t *testing.T) {
	const line = "             app-13      [001] d..1. 1.000002: csd_queue_cpu: cpu=2 callsite=x func=ipi_mb csd=1\n"
	broken := errors.New("broken")
	for _, c := range []struct {
		last, want error
	}{{tracefs.ErrNothing, nil}, {io.EOF, nil}, {fmt.Errorf("all read: %w", io.EOF), nil}, {fmt.Errorf("now: %w",
		tracefs.ErrNothing), nil},
		{broken, broken}} {
		p := &pipe{texts: []string{line, "", line[:30], line[30:]}, last: c.last}
		got := &Causes{source: &events{pipe: p}}
		calls, err := got.Take()
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || calls != "ipi_mb 3" && calls != "ipi_mb 2" {
			t.Errorf("%v: %q, %v", c.last, calls, err)
		}
		if n := got.Tallies()[0].Times; n != 2 {
			t.Errorf("%v: %d times", c.last, n)
		}
	}
}

// TestLineWithoutEnd: one of up to 65536 bytes is waited for, a longer one forgotten.
func TestLineWithoutEnd(t *testing.T) {
	const tail = ": csd_queue_cpu: cpu=2 callsite=x func=ipi_mb csd=1\n"
	head := "             app-13      [001] d..1. 1.000002"
	for n, want := range map[int]int{1 << 16: 1 << 16, 1<<16 + 1: 0} {
		e := &events{}
		e.read([]byte(strings.Repeat("x", n)), nil)
		if len(e.rest) != want {
			t.Errorf("of a line of %d bytes so far %d are kept, want %d", n, len(e.rest), want)
		}
	}
	e, times := &events{}, 0
	add := func(Cause, int64, int64) { times++ }
	e.read([]byte(head), add)
	e.read([]byte(tail+head), add)
	if times != 1 || string(e.rest) != head {
		t.Errorf("%d times, %q is left", times, e.rest)
	}
}

// TestCausesOfLines: which CPU is interrupted, why, and by whom; a line that does not say is none.
func TestCausesOfLines(t *testing.T) {
	for _, c := range []struct {
		name, detail string
		cpu          int
		want         Cause
		ok           bool
	}{
		{"csd_queue_cpu", "cpu=3 func=ipi_mb callback=other", 3, Cause{"membarrier", "ipi_mb", "app", 13}, true},
		{"ipi_send_cpu", "cpu=3 callback=nohz_full_kick_func+0x0/0x10", 3, Cause{"timer", "nohz_full_kick_func", "app", 13},
			true},
		{"ipi_send_cpu", "cpu=3 callback=0x0", 3, Cause{"reschedule", "", "app", 13}, true},
		{"ipi_send_cpu", "cpu=x callback=ipi_mb", 0, Cause{}, false},
		{"ipi_send_cpu", "cpu=3 callback=generic_smp_call_function_single_interrupt", 0, Cause{}, false},
		{"tlb_flush", "pages:1 reason:remote shootdown (1)", 1, Cause{Kind: "tlb"}, true},
		{"tlb_flush", "pages:1 reason:local shootdown (2)", 1, Cause{}, false},
		{"timer_expire_entry", "timer=1 function=f now=2", 1, Cause{Kind: "timer", Function: "f"}, true},
		{"sched_switch", "cpu=3", 0, Cause{}, false},
	} {
		got, cpu, ok := causeOf(&tracefs.Line{Task: "app", PID: 13, CPU: 1, Name: c.name, Detail: c.detail})
		if ok != c.ok || ok && (got != c.want || cpu != c.cpu) {
			t.Errorf("%s %s: %+v, CPU %d, %v", c.name, c.detail, got, cpu, ok)
		}
	}
}

// TestKindsOfFunctions: by the names that the kernel has for them.
func TestKindsOfFunctions(t *testing.T) {
	for function, want := range map[string]string{"": "reschedule", "do_sync_core": "text", "ftrace_sync_ipi": "text",
		"ipi_remote_fence_i": "text",
		"do_sync_cores":      "function-call", "flush_tlb_func": "tlb", "__cpa_flush_all": "tlb",
		"tlb_remove_table_smp_sync": "tlb", "ipi_mb": "membarrier",
		"sched_ttwu_pending": "reschedule", "nohz_full_kick_func": "timer", "hrtimer_x": "timer",
		"rcu_barrier_handler": "function-call"} {
		if got := kindOf(function); got != want {
			t.Errorf("%s: %s, want %s", function, got, want)
		}
	}
}

// TestMostOf: the four with most calls, those with as many by their names, and the sum of all others.
func TestMostOf(t *testing.T) {
	for want, count := range map[string]map[string]int64{
		"": {}, "a 2": {"a": 2}, "b 3, a 1, c 1": {"a": 1, "b": 3, "c": 1}, "e 9, a 2, b 2, c 2": {"a": 2, "b": 2, "c": 2,
			"e": 9},
		"e 9, a 2, b 2, c 2, others 3": {"a": 2, "b": 2, "c": 2, "e": 9, "f": 1, "d": 2},
	} {
		if got := mostOf(count); got != want {
			t.Errorf("%v: %q, want %q", count, got, want)
		}
	}
}

// TestWho: a service's threads are one sender, by its name and without a number; a sender without a name stays without
// one. What comes with a task and a function counts as a call.
func TestWho(t *testing.T) {
	var asked []string
	c := Causes{Who: func(task string, pid int) string {
		asked = append(asked, fmt.Sprint(task, " ", pid))
		if task == "worker" {
			return "service"
		}
		return task
	}}
	c.source = told{{Cause{"tlb", "f", "worker", 3}, 2, 1}, {Cause{"tlb", "f", "worker", 4}, 3, 0}, {Cause{"tlb", "f",
		"other", 5}, 1, 0},
		{Cause{Kind: "tlb"}, 7, 7}, {Cause{"reschedule", "", "other", 5}, 1, 1}, {Cause{Kind: "timer", Function: "t"}, 1, 1}}
	calls, err := c.Take()
	if calls != "f 6" || err != nil {
		t.Errorf("%q, %v", calls, err)
	}
	var got []string
	for _, tally := range c.Tallies() {
		got = append(got, fmt.Sprint(*tally))
	}
	want := []string{"{{tlb   0} 7 7 7}", "{{tlb f service 0} 5 1 5}", "{{reschedule  other 5} 1 1 1}",
		"{{timer t  0} 1 1 1}", "{{tlb f other 5} 1 0 1}"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"worker 3", "worker 4", "other 5", "other 5"}, asked); d != "" {
		t.Error(d)
	}
}

// told is a source of some causes.
type told []struct {
	Cause
	times, isolated int64
}

func (s told) take(add func(c Cause, times, isolated int64)) error {
	for _, c := range s {
		add(c.Cause, c.times, c.isolated)
	}
	return nil
}
func (told) Lost() int          { return 0 }
func (told) Ran() time.Duration { return 0 }
func (told) Close() error       { return nil }

// TestCausesAtTheBound: the last cause that is told apart is number 1024, the last name 2048.
func TestCausesAtTheBound(t *testing.T) {
	var c Causes
	for pid := range mostCauses + 1 {
		c.add(Cause{Kind: "tlb", Task: "app", PID: pid + 1}, 1, 0)
	}
	last, next := Cause{Kind: "tlb", Task: "app", PID: mostCauses}, Cause{Kind: "tlb", Task: "app", PID: mostCauses + 1}
	if c.tallies[last] == nil || c.tallies[next] != nil || c.tallies[Cause{Kind: "tlb", Task: "app"}] == nil {
		t.Errorf("%d causes", len(c.tallies))
	}
	c.add(last, 1, 1) // one that is known is told apart for ever
	if tally := c.tallies[last]; tally.Times != 2 || tally.Isolated != 1 || tally.Now != 2 {
		t.Errorf("%+v", tally)
	}
	for name := 0; len(c.tallies) < 2*mostCauses; name++ {
		c.add(Cause{Kind: "tlb", Task: fmt.Sprint("app", name)}, 1, 0)
	}
	others := Cause{Kind: "tlb", Task: "others"}
	if c.tallies[others] != nil {
		t.Error("others before there are too many")
	}
	if c.add(Cause{Kind: "tlb", Function: "f", Task: "new", PID: 3}, 1, 0); c.tallies[others] == nil ||
		len(c.tallies) != 2*mostCauses+1 {
		t.Errorf("%d causes", len(c.tallies))
	}
}

// TestSymbolsOfLines: lines of three fields and more, whose address is a number but not 0; who has heard enough hears
// no more.
func TestSymbolsOfLines(t *testing.T) {
	symbolsAre(t, "short line\nzz T no_number\n0 T nothing\n0000000000000010 T first\n20 t second [module]\nffffffffffffffff T last\n")
	for enough, want := range map[int][]string{9: {"10 first", "20 second", "ffffffffffffffff last"}, 1: {"10 first"}} {
		var got []string
		err := symbols(func(at uint64, name string) bool {
			got = append(got, fmt.Sprintf("%x %s", at, name))
			return len(got) < enough
		})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s, %v", d, err)
		}
	}
	symbolFile += "-none"
	if err := symbols(nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	p := &programs{names: map[uint64]string{7: "known"}}
	if err := p.name(map[key]uint64{{Function: 7}: 1}); err != nil { // nothing is unknown: no file is read
		t.Error(err)
	}
	if err := p.name(map[key]uint64{{Function: 8}: 1}); !errors.Is(err, os.ErrNotExist) || p.names[8] != "0x8" {
		t.Errorf("%v, %v", err, p.names)
	}
}

// TestFieldRefused: whole texts, and offsets up to the largest of 16 bits.
func TestFieldRefused(t *testing.T) {
	if at, err := field("field:int cpu;\toffset:32767;", "cpu"); at != 32767 || err != nil {
		t.Errorf("%d, %v", at, err)
	}
	if _, err := field("field:int cpus;\toffset:8;", "cpu"); err == nil || err.Error() != "its format has no field cpu" {
		t.Error(err)
	}
}
