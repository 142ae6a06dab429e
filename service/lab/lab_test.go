package lab

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endless is an experiment that adds a row and goes on until it is stopped.
var endless = &experiments.Experiment{
	Name: "endless",
	Table: func() results.Table {
		return results.Table{Name: "endless", Columns: []results.Column{{Name: "n", Doc: "a number"}}}
	},
	Flags: func(*pflag.FlagSet) experiments.Run {
		return func(ctx context.Context, l *experiments.Lab) (*experiments.Answer, error) {
			if err := l.Add(1); err != nil {
				return nil, err
			}
			<-ctx.Done()
			return &experiments.Answer{Headline: "so far"}, ctx.Err()
		}
	},
}

// start starts a lab on a store that outlives it.
func start(t *testing.T, st *journal.Store, longest time.Duration) *Lab {
	t.Helper()
	l, err := Start(Config{Store: st, Log: zap.NewNop(), Experiments: []*experiments.Experiment{endless}, Longest: longest})
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

// TestLongest: what takes too long has failed, and what it finished is kept.
func TestLongest(t *testing.T) {
	l := start(t, open(t), 20*time.Millisecond)
	r, err := l.Submit("endless", 3)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = l.Wait(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if r.State != Failed || r.Error != "it took longer than 20ms" || r.Answer != "so far" || r.Rows != 1 || r.Seed != 3 {
		t.Errorf("%+v", r)
	}
	if f, err := l.File(t.Context(), r.ID, "endless.csv"); err != nil || string(f.Data) != "n\n1\n" {
		t.Errorf("%q %v", f.Data, err)
	}
}

// TestClose: what runs and what waits has an end, and nothing more is taken.
func TestClose(t *testing.T) {
	st := open(t)
	l := start(t, st, 0)
	for range 3 {
		if _, err := l.Submit("endless", 1); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	if _, err := l.Submit("endless", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Submit after Close: %v", err)
	}
	for id := int64(1); id <= 3; id++ {
		if r, err := l.Result(t.Context(), id); err != nil || r.State != Cancelled {
			t.Errorf("%d: %+v %v", id, r, err)
		}
	}
}

// TestKilled: what a process left unfinished has failed when the next one starts.
func TestKilled(t *testing.T) {
	st := open(t)
	kept, err := st.BeginRun("endless", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, st, 0)
	if r, err := l.Result(t.Context(), kept.ID); err != nil || r.State != Failed || r.Error == "" {
		t.Errorf("%+v %v", r, err)
	}
	all, err := l.Results(t.Context(), 0, 10)
	if err != nil || len(all) != 1 || all[0].State != Failed {
		t.Errorf("%+v %v", all, err)
	}
}
