// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

var errBroken = errors.New("broken")

// breaking is files of which one operation fails, counted from 1.
type breaking struct {
	Files
	left int
	at   string // the operation that failed
}

func (b *breaking) fails(what, name string) bool {
	if b.left--; b.left == 0 {
		b.at = what + " " + name
	}
	return b.left == 0
}

func (b *breaking) Read(name string) ([]byte, error) {
	if b.fails("read", name) {
		return nil, errBroken
	}
	return b.Files.Read(name)
}

func (b *breaking) List(name string) ([]string, error) {
	if b.fails("list", name) {
		return nil, errBroken
	}
	return b.Files.List(name)
}

func (b *breaking) Write(name, text string, trunc bool) error {
	if b.fails("write", name) {
		return errBroken
	}
	return b.Files.Write(name, text, trunc)
}

func (b *breaking) Mkdir(name string) (bool, error) {
	if b.fails("mkdir", name) {
		return false, errBroken
	}
	return b.Files.Mkdir(name)
}

func (b *breaking) Remove(name string) error {
	if b.fails("remove", name) {
		return errBroken
	}
	return b.Files.Remove(name)
}

// life is everything that is done with an instance, from its making to its end, each once.
func life(files Files) error {
	i, err := Open(files, "x")
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { _, err := i.Trace(every[:2]); return err },
		func() error { _, err := i.Trace(every[3:]); return err },
		func() error { _, _, err := i.Held(); return err },
		func() error { _, err := i.Settle(); return err },
		func() error { _, err := i.Foreign(); return err },
		func() error { _, err := i.Events().Trace([]Function{{Name: "sched/sched_switch"}}); return err },
		func() error { _, err := i.Events().Trace([]Function{{Name: "irq/softirq_entry"}}); return err },
		func() error { _, err := i.Trace(nil); return err },
		func() error {
			g, _, err := i.Graph()
			if err == nil {
				_, err = g.Trace(every[:1])
			}
			if err == nil {
				err = g.Release()
			}
			return err
		},
		i.Release,
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// TestEachFailure: whichever operation on the kernel's files fails, the failure is told, in words that name what was being
// done. What is only looked at, and how the graph's lines begin, may be unreadable; an instance whose tracer cannot be read
// is released all the same.
func TestEachFailure(t *testing.T) {
	k := kernel()
	k["instances/other/current_tracer"], k[graphTime] = "function\n", "0\n"
	for _, s := range settings {
		k["instances/x/"+s.file] = s.holds + "\n"
	}
	k["instances/x/tracing_on"] = "0\n" // somebody has stopped it
	silent := map[string]bool{"read instances/other/current_tracer": true, "read current_tracer": true,
		"read set_event": true, "read instances/other/set_event": true, "read " + graphTime: true,
		"write instances/x.graph/" + graphTime: true}
	failures := 0
	for n := 1; ; n++ {
		var out strings.Builder
		b := &breaking{Files: Trial(k, &out), left: n}
		err := life(b)
		instance, tracer := strings.CutSuffix(strings.TrimPrefix(b.at, "read "), "/current_tracer")
		released := err == nil && tracer && strings.Contains(out.String(), "rmdir "+instance+"\n")
		if b.at == "" {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		switch what := strings.Fields(b.at); {
		case silent[b.at], released:
		case !errors.Is(err, errBroken):
			t.Errorf("%d: %s failed, and is not told: %v", n, b.at, err)
		case len(err.Error()) < len(errBroken.Error())+len(what[0]):
			t.Errorf("%d: %s: %v does not say what failed", n, b.at, err)
		default:
			failures++
		}
	}
	if failures < 40 {
		t.Errorf("%d failures were tried", failures)
	}
}

// TestOrderOfLines: lines are written in their order, whatever the order of the wish.
func TestOrderOfLines(t *testing.T) {
	i, _, out := opened(t, kernel())
	want := slices.Clone(every)
	slices.Reverse(want)
	if _, err := i.Trace(want); err != nil {
		t.Fatal(err)
	}
	if text := `"1\n2\n4\n5\n6\n" >> instances/x/set_ftrace_filter`; !strings.Contains(out.String(), text) {
		t.Errorf("writes\n%s, want %s", out, text)
	}
}

// TestTrialOfWhatIsThere: a trial begins with the instance that the kernel has, and reads of it what was not tried; what
// it cannot read it does not make up.
func TestTrialOfWhatIsThere(t *testing.T) {
	k := kernel()
	k["instances/x/current_tracer"], k["instances/x/set_ftrace_filter"] = "function\n", "a\nd\n"
	k["instances/x/set_event"] = "sched:sched_switch\n"
	i, files, out := opened(t, k)
	held, all, err := i.Held()
	if err != nil || all || !slices.Equal(held, []Function{every[0], every[4]}) {
		t.Errorf("%v, %v, %v", held, all, err)
	}
	if events, _, err := i.Events().Held(); err != nil || len(events) != 1 || out.Len() > 0 {
		t.Errorf("%v, %v, and wrote %q", events, err, out)
	}
	if _, err := files.Read("instances/x/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if b, err := files.Read("instances/x/" + tracersFile); err != nil || string(b) != k[tracersFile] {
		t.Errorf("%q, %v", b, err)
	}
	for name := range k {
		if !strings.HasPrefix(name, "instances/x/") && name != "available_filter_functions" {
			continue
		}
		if name == "instances/x/current_tracer" {
			continue // without it there is no instance
		}
		bad := &unreadable{k, name}
		if _, err := Open(Trial(bad, io.Discard), "x"); !errors.Is(err, errBroken) {
			t.Errorf("%s cannot be read: %v", name, err)
		}
	}
}

// unreadable is a tracefs of which one file cannot be read.
type unreadable struct {
	static
	file string
}

func (u *unreadable) Read(name string) ([]byte, error) {
	if name == u.file {
		return nil, errBroken
	}
	return u.static.Read(name)
}
