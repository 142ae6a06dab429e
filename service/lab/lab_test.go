// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/catalogue"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

func TestMain(m *testing.M) {
	Serve(func() []*experiments.Experiment {
		return append(catalogue.All(), endless, broken)
	}, zap.NewNop())
	goleak.VerifyTestMain(m)
}

// broken is an experiment that breaks in a goroutine of its own.
var broken = &experiments.Experiment{
	Name: "broken", Table: endless.Table,
	New: func() *experiments.Request {
		return &experiments.Request{Run: func(ctx context.Context, l experiments.Lab) (*experiments.Answer, error) {
			var all sync.WaitGroup
			all.Go(func() { panic("it broke") })
			all.Wait()
			return nil, nil
		}}
	},
}

// endless is an experiment that adds a row and goes on until it is stopped.
var endless = &experiments.Experiment{
	Name: "endless",
	Table: func() results.Table {
		return results.Table{Name: "endless", Columns: []results.Column{{Name: "n", Kind: results.Integer, Doc: "a number"}}}
	},
	New: func() *experiments.Request {
		var c struct {
			numbers []int
			records []string
			file    string
		}
		return &experiments.Request{
			Fields: []*choice.Field{
				choice.Counts(&c.numbers, "some-numbers", "1", "`list` of numbers", 0, 10_000_000),
				experiments.Tables(&c.records, "`table` of records"), choice.File(&c.file, "published", "`file`"),
			},
			Run: func(ctx context.Context, l experiments.Lab) (*experiments.Answer, error) {
				for _, n := range append(c.numbers, len(c.records)) {
					if err := l.Add(n); err != nil {
						return nil, err
					}
				}
				<-ctx.Done()
				return &experiments.Answer{Headline: "so far"}, ctx.Err()
			},
		}
	},
}

// start starts a lab on a store that outlives it.
func start(t *testing.T, st *journal.Store, longest time.Duration) *Lab {
	t.Helper()
	l, err := Start(t.Context(), Config{Store: st, Log: zap.NewNop(), Experiments: []*experiments.Experiment{endless, broken},
		Longest: longest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func open(t *testing.T) *journal.Store {
	t.Helper()
	st, err := journal.Open(t.Context(), t.TempDir(), journal.Identity{Records: "r", Hash: "h", Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// TestLongest: what takes too long has failed, and what it finished is kept. A busy machine
// takes longer to finish it, and is given twice the time.
func TestLongest(t *testing.T) {
	for longest := 50 * time.Millisecond; ; longest *= 2 {
		l := start(t, open(t), longest)
		r, err := l.Submit(Question{Seed: 3, Request: choice.Request{Name: "endless", Config: choice.Choices{
			"some_numbers": {"5", "6"}, "records": {"gen:n=3,groups=2", "x86_64-6.12"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = l.Wait(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		if r.State != journal.Failed || r.Error != fmt.Sprintf("it took longer than %v", longest) || r.Seed != 3 ||
			r.Config["some_numbers"] != "5,6" {
			t.Fatalf("%+v", r)
		}
		if r.Answer == "" && longest < time.Minute {
			continue // it had not begun
		}
		if f, err := l.File(t.Context(), r.ID, "endless.csv"); err != nil || string(f.Data) != "n\n5\n6\n2\n" ||
			r.Answer != "so far" || r.Rows != 3 {
			t.Errorf("%+v: %q %v", r, f.Data, err)
		}
		return
	}
}

// TestClose: nothing more is taken, and what runs or waits is run after the next start, as it
// was asked for; what runs begins again, and says so.
func TestClose(t *testing.T) {
	st := open(t)
	l := start(t, st, 0)
	for range 3 {
		if _, err := l.Submit(Question{Seed: 9, Request: choice.Request{Name: "endless", Config: choice.Choices{"some_numbers": {"4", "2"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for { // until the first runs
		if r, err := l.Result(t.Context(), 1); err != nil || r.State == journal.Running && r.Rows == 3 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	l.Close()
	if _, err := l.Submit(Question{Request: choice.Request{Name: "endless"}}); !errors.Is(err, ErrClosed) {
		t.Errorf("Submit after Close: %v", err)
	}
	if r, err := l.Result(t.Context(), 1); err != nil || r.State != journal.Queued || r.Error == "" {
		t.Errorf("%+v %v", r, err)
	}
	l = start(t, st, 0)
	for id := int64(1); id <= 3; id++ {
		r, err := l.Result(t.Context(), id)
		for err == nil && (r.State == journal.Queued || r.Rows < 3) {
			time.Sleep(time.Millisecond)
			r, err = l.Result(t.Context(), id)
		}
		if err != nil || r.State.Final() || r.Seed != 9 || r.Config["some_numbers"] != "4,2" ||
			(r.Error != "") != (id == 1) || !l.Cancel(id) {
			t.Errorf("%d: %+v %v", id, r, err)
		}
		if r, err := l.Wait(t.Context(), id); err != nil || r.State != journal.Cancelled {
			t.Errorf("%d: %+v %v", id, r, err)
		}
	}
}

// TestPanic: a panic of any goroutine of an experiment is the experiment's failure, and the
// next one runs.
func TestPanic(t *testing.T) {
	l := start(t, open(t), 0)
	for range 2 {
		r, err := l.Submit(Question{Request: choice.Request{Name: "broken"}})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = l.Wait(t.Context(), r.ID); err != nil || r.State != journal.Failed ||
			!strings.HasPrefix(r.Error, "its process ended: exit status 2: panic: it broke") {
			t.Errorf("%+v %v", r, err)
		}
	}
}

// TestCancelledWhileClosing: what was cancelled when the lab was closing does not come back
// after a restart, be it that it waited or was about to begin.
func TestCancelledWhileClosing(t *testing.T) {
	for _, waits := range []bool{true, false} {
		st := open(t)
		kept, err := st.AddRun("endless", `{"Name":"endless"}`, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		l := &Lab{cfg: Config{Store: st, Log: zap.NewNop(), Experiments: []*experiments.Experiment{endless}},
			wake: make(chan struct{}, 1), active: map[int64]*run{}}
		l.ctx, l.end = context.WithCancel(t.Context())
		if err := l.again(kept); err != nil {
			t.Fatal(err)
		}
		var x *run
		if !waits {
			x = l.next()
		}
		l.end()
		if !l.Cancel(kept.ID) {
			t.Error("it has ended")
		}
		if x != nil {
			l.carryOut(x)
		}
		if r, err := start(t, st, 0).Result(t.Context(), kept.ID); err != nil || r.State != journal.Cancelled {
			t.Errorf("it waited %v: %+v %v", waits, r, err)
		}
	}
}

// TestSlowDisk: those who look at runs do not wait while the disk writes down that another
// one waits, or is put back.
func TestSlowDisk(t *testing.T) {
	st := open(t)
	writes, disk := make(chan struct{}), make(chan struct{})
	st.Fault(func() error { writes <- struct{}{}; <-disk; return nil })
	look := func(l *Lab) {
		<-writes
		if !l.mu.TryLock() {
			t.Error("the lock is held through a transaction")
		} else {
			l.mu.Unlock()
		}
		disk <- struct{}{}
	}
	l := start(t, st, 0)
	submitted := make(chan error, 1)
	go func() { _, err := l.Submit(Question{Request: choice.Request{Name: "endless"}}); submitted <- err }()
	look(l)
	if err := <-submitted; err != nil {
		t.Error(err)
	}
	look(l) // it begins
	l.end()
	look(l) // it is put back
	l.Close()
	if r, err := l.Result(t.Context(), 1); err != nil || r.State != journal.Queued {
		t.Errorf("%+v %v", r, err)
	}
	st.Fault(func() error { return nil })
}

// TestUnknownAfterRestart: what this program cannot run any more has failed.
func TestUnknownAfterRestart(t *testing.T) {
	st := open(t)
	for _, request := range []string{`{"Name":"gone"}`, `{"Name":"endless","Config":{"no_such_field":["1"]}}`, ``} {
		if _, err := st.AddRun("gone", request, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	l := start(t, st, 0)
	for id := int64(1); id <= 3; id++ {
		if r, err := l.Result(t.Context(), id); err != nil || r.State != journal.Failed || r.Error == "" {
			t.Errorf("%+v %v", r, err)
		}
	}
}

// TestKilled: what a killed process left running begins again when the next one starts,
// before what waited, and says so; killed again, it has failed: it may be the reason.
func TestKilled(t *testing.T) {
	st := open(t)
	ids := make([]int64, 2)
	for i := range ids {
		kept, err := st.AddRun("endless", `{"Name":"endless","Seed":5}`, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = kept.ID
	}
	for range 2 {
		if err := st.BeginRun(ids[0]); err != nil { // and nobody ends it
			t.Fatal(err)
		}
		l := start(t, st, 0)
		r, err := l.Result(t.Context(), ids[0])
		if r.State == journal.Failed {
			break
		}
		for err == nil && r.State != journal.Running {
			time.Sleep(time.Millisecond)
			r, err = l.Result(t.Context(), ids[0])
		}
		if err != nil || r.Error != "begins again: the server ended while it ran" || r.Seed != 5 {
			t.Errorf("%+v %v", r, err)
		}
		if r, err := l.Result(t.Context(), ids[1]); err != nil || r.State != journal.Queued || r.Error != "" {
			t.Errorf("%+v %v: want it to wait", r, err)
		}
		l.Close() // which puts it back
	}
	l := start(t, st, 0)
	all := l.Results(Query{Limit: 10})
	if len(all) != 2 || all[0].State != journal.Failed || all[0].Error != "the server ended twice while it ran" ||
		all[1].State.Final() {
		t.Errorf("%+v", all)
	}
}

// TestConfig: what cannot be set is refused by name, files of the server above all.
func TestConfig(t *testing.T) {
	l := start(t, open(t), 0)
	for _, tt := range []struct {
		key, want string
		texts     []string
	}{
		{"published", "a file of the server cannot be named", []string{"/etc/passwd"}},
		{"records", "a file of the server cannot be named", []string{"x86_64-6.12", "vmlinux"}},
		{"records", "want 1000000 at most", []string{"gen:groups=2,n=1000001"}},
		{"some_numbers", "want 1000000 at most", []string{"5", "1000001"}},
		{"some_numbers", "want whole numbers from 0", []string{"5", "x"}},
		{"some_numbers", "want 64 values at most", strings.Split(strings.Repeat("1,", 64)+"1", ",")},
		{"some_numbers", "want 4096 at most", []string{strings.Repeat("1", 5000)}},
		{"some_number", "no such field; did you mean some_numbers", []string{"1"}},
		{"some-numbers", "no such field", []string{"1"}},
	} {
		_, err := l.Submit(Question{Request: choice.Request{Name: "endless", Config: map[string][]string{tt.key: tt.texts}}})
		var wrong *ConfigError
		if !errors.As(err, &wrong) || wrong.Field != tt.key || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %.40q: %v, want %s", tt.key, tt.texts, err, tt.want)
		}
	}
}

// TestOlderQuestion: a question that an earlier version kept is read.
func TestOlderQuestion(t *testing.T) {
	st := open(t)
	if _, err := st.AddRun("endless", `{"Name":"endless","Seed":7,"Config":{"some_numbers":["4"]}}`, time.Now()); err != nil {
		t.Fatal(err)
	}
	all := start(t, st, 0).Results(Query{Limit: 10})
	if len(all) != 1 || all[0].State.Final() || all[0].Seed != 7 || all[0].Config["some_numbers"] != "4" {
		t.Errorf("%+v", all)
	}
}

// TestFields: an experiment of the catalogue runs with the fields that were asked for,
// and none of them takes a file of the server.
func TestFields(t *testing.T) {
	l, err := Start(t.Context(), Config{Store: open(t), Log: zap.NewNop(), Experiments: catalogue.All()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	r, err := l.Submit(Question{Seed: 1, Request: choice.Request{Name: "flush-cause", Config: choice.Choices{
		"records": {"gen:n=600,groups=2,order=grouped"}, "buffer": {"256", "dynamic"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = l.Wait(t.Context(), r.ID); err != nil || r.State != journal.Done || r.Rows != 4*2 {
		t.Errorf("%+v, %v", r, err)
	}
	files := 0
	for _, e := range catalogue.All() {
		for _, f := range e.New().Fields {
			if !f.IsFile("/etc/passwd") {
				continue
			}
			files++
			_, err := l.Submit(Question{Request: choice.Request{Name: e.Name, Config: map[string][]string{f.Key(): {"/etc/passwd"}}}})
			if err == nil || !strings.Contains(err.Error(), "config."+f.Key()+": a file of the server cannot be named") {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
	if files < 25 {
		t.Errorf("%d fields name files", files)
	}
}
