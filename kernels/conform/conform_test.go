// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/poke"
)

func recorded(t *testing.T, name string) *record.Recording {
	t.Helper()
	r, err := record.Open(filepath.Join("..", "record", "testdata", name+".recording.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const x86, riscv, stopped = "x86_64-6.1-vfs", "riscv64-7.2-vfs", "riscv64-6.12-vfs"

// TestConforms: recorded kernels do what their protocols say. An x86 kernel stores three times to each site, sends
// three rounds a batch, and all three CPUs answer each (text_poke_bp_batch, arch/x86/kernel/alternative.c, Linux 6.1); a
// RISC-V kernel sends a round for each literal and one at the end of each update (ftrace_make_call and
// arch_ftrace_update_code, arch/riscv/kernel/ftrace.c, Linux 7.2), and one behind static keys.
func TestConforms(t *testing.T) {
	got, err := Check(recorded(t, x86), nil)
	if err != nil || got.Misfit != nil {
		t.Fatalf("%v, %v", err, got.Misfit)
	}
	if got.Stores != 3*got.Sites || got.Rounds != 3*got.Batches || got.Answers != 3*got.Rounds || got.Sites < 146 ||
		got.ExtraRounds+got.ExtraHalts+got.SkippedRounds+got.Fresh > 0 {
		t.Errorf("%+v", got)
	}
	r := recorded(t, riscv)
	if got, err = Check(r, nil); err != nil || got.Misfit != nil {
		t.Fatalf("%v, %v", err, got.Misfit)
	}
	literals := 0
	for i := range r.Steps {
		if r.Steps[i].Kind == record.Store && len(r.Steps[i].New) == 8 {
			literals++
		}
	}
	if literals != 2*78 || got.Stores != got.Sites+literals || got.Rounds != literals+got.Batches {
		t.Errorf("%+v, %d literals", got, literals)
	}
	// Sites of two instructions change in a stopped machine (ftrace_make_call, arch/riscv/kernel/ftrace.c, Linux 6.12), those of
	// keys one by one beside it, with a round behind each key's.
	if got, err = Check(recorded(t, stopped), nil); err != nil || got.Misfit != nil {
		t.Fatalf("%v, %v", err, got.Misfit)
	}
	if got.Stores != got.Sites || got.Batches != 2+got.Rounds || got.ExtraRounds+got.ExtraHalts+got.SkippedRounds > 0 {
		t.Errorf("%+v", got)
	}
}

// find is the n-th step of a kind, from 0.
func find(t *testing.T, r *record.Recording, k record.Kind, n int) int {
	t.Helper()
	for i := range r.Steps {
		if r.Steps[i].Kind == k {
			if n--; n < 0 {
				return i
			}
		}
	}
	t.Fatalf("too few steps %s", k)
	return 0
}

// without is the recording without a step.
func without(r *record.Recording, i int) { r.Steps = slices.Delete(r.Steps, i, i+1) }

// again is the next store to where a step stores.
func again(r *record.Recording, i int) int {
	at := r.Steps[i].At
	return i + 1 + slices.IndexFunc(r.Steps[i+1:], func(s record.Step) bool { return s.Kind == record.Store && s.At == at })
}

// twice is a change: the first step of a kind stands twice.
func twice(k record.Kind) func(*testing.T, *record.Recording) int {
	return func(t *testing.T, r *record.Recording) int {
		i := find(t, r, k, 0)
		r.Steps = slices.Insert(r.Steps, i, r.Steps[i])
		return i + 1
	}
}

// TestRefuses: recordings with one thing changed, and which step does not fit then. In the first batch one site is
// changed: publish, store, round, three answers, done, store, round, ...
func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		of     string
		change func(t *testing.T, r *record.Recording) (step int) // that is refused, from 0
		want   string
	}{
		"no first round": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Round, 0)
			r.Steps = slices.Delete(r.Steps, i, i+5)
			return find(t, r, record.Store, 1)
		}, "the plan has Sync 1 here"},
		"no last round": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Round, 2)
			r.Steps = slices.Delete(r.Steps, i, i+5)
			return find(t, r, record.Unpublish, 0)
		}, "the plan has Sync 3 here"},
		"copied over text": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Publish, 0)
			site := r.Steps[find(t, r, record.Store, 0)]
			r.Steps = slices.Insert(r.Steps, i, record.Step{Kind: record.Store, At: site.At - 16, Old: make([]byte, 17),
				New: make([]byte, 17), Name: "text_poke_copy"})
			return i
		}, "text_poke_copy stores over the kernel's own text"},
		"another byte": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Store, 0)
			r.Steps[i].New = []byte{0x90}
			return i
		}, "the plan has Write breakpoint cc at"},
		"no tail": {x86, func(t *testing.T, r *record.Recording) int {
			without(r, find(t, r, record.Store, 1))
			return find(t, r, record.End, 0)
		}, "is not a whole instruction"},
		"no head": {x86, func(t *testing.T, r *record.Recording) int {
			without(r, find(t, r, record.Store, 2))
			return find(t, r, record.End, 0)
		}, "a breakpoint stays at"},
		"not published": {x86, func(t *testing.T, r *record.Recording) int {
			without(r, find(t, r, record.Publish, 0))
			return find(t, r, record.Store, 0)
		}, "the plan has Publish here"},
		"never given up": {x86, func(t *testing.T, r *record.Recording) int {
			without(r, find(t, r, record.Unpublish, 0))
			return find(t, r, record.End, 0)
		}, "the plan's step Unpublish is missing before it"},
		"no answer": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Answer, 0)
			for r.Steps[i].CPU == 0 {
				i++
			}
			without(r, i)
			return find(t, r, record.Done, 0)
		}, "has not answered the round of step"},
		"two answers": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Answer, 0)
			r.Steps = slices.Insert(r.Steps, i+1, r.Steps[i])
			return i + 1
		}, "it answers a round that was not sent, or answers twice"},
		"acts as nothing": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Leave, 0)
			r.Steps[i].At++
			return i
		}, "does not lead there"},
		"does not know": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Leave, 0)
			r.Steps[i].Kind = record.Pass
			return i
		}, "the handler does not know a breakpoint that stands there"},
		"late": {x86, func(t *testing.T, r *record.Recording) int {
			store := find(t, r, record.Store, 0)
			trap := record.Step{CPU: 1, Kind: record.Trap, At: r.Steps[store].At}
			i := find(t, r, record.End, 0)
			r.Steps = slices.Insert(r.Steps, i+1, trap, record.Step{CPU: 1, Kind: record.Pass, At: trap.At})
			return i + 1
		}, "the breakpoint is gone, and the CPU has synchronised since"},
		"unexplained": {x86, func(t *testing.T, r *record.Recording) int {
			r.Steps = append(r.Steps, record.Step{Kind: record.Change, At: 8, Old: []byte{1}, New: []byte{2}})
			return len(r.Steps) - 1
		}, "no recorded store did it"},
		"a value that was not stored": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Store, 1)
			r.Steps[i].New[0]++
			return again(r, i)
		}, "a3 stands there, and a4 was stored"},
		"a batch is lost": {x86, func(t *testing.T, r *record.Recording) int {
			i := slices.IndexFunc(r.Steps, func(s record.Step) bool { return s.At == 0xffffffff8106b8d4 }) // of four batches' tails
			begin, end := again(r, i), again(r, i)
			for r.Steps[begin].Kind != record.Begin {
				begin--
			}
			for r.Steps[end].Kind != record.End {
				end++
			}
			r.Steps = slices.Delete(r.Steps, begin, end+1)
			return again(r, i)
		}, "stands there, and"},
		"the last tail is lost": {x86, func(t *testing.T, r *record.Recording) int {
			i := slices.IndexFunc(r.Steps, func(s record.Step) bool { return s.At == 0xffffffff810d1aef }) // jmp rel8 to nop
			i = again(r, i)
			without(r, i)
			for r.Steps[i].Kind != record.End {
				i++
			}
			return i
		}, "at 0xffffffff810d1aee 66 is not a whole instruction"},
		"two batches at a time": {x86, func(t *testing.T, r *record.Recording) int {
			begin, end := find(t, r, record.Begin, 1), find(t, r, record.End, 1)
			second := slices.Clone(r.Steps[begin : end+1])
			for i := range second {
				if second[i].Kind != record.Answer {
					second[i].CPU++
				}
			}
			r.Steps = slices.Insert(slices.Delete(r.Steps, begin, end+1), begin-1, second...)
			return begin - 1
		}, "CPU 0 has begun text_poke_bp_batch, and not ended it"},
		"nothing stored": {x86, func(t *testing.T, r *record.Recording) int {
			for range 3 {
				without(r, find(t, r, record.Store, 0))
			}
			return find(t, r, record.Unpublish, 0)
		}, "nothing was stored since the batch was published"},
		"ends twice":      {x86, twice(record.End), "it has not begun on this CPU"},
		"published twice": {x86, twice(record.Publish), "a batch is published already"},
		"given up twice":  {x86, twice(record.Unpublish), "no batch is published"},
		"goes on twice":   {x86, twice(record.Done), "the CPU waits for no round"},
		"takes twice":     {x86, twice(record.Take), "its handler has done so already"},
		"gives twice":     {x86, twice(record.Give), "its handler has done so already"},
		"takes without a handler": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Take, 0)
			r.Steps[i].CPU = 0
			return i
		}, "the CPU is in no handler"},
		"the sender's own answer": {x86, func(t *testing.T, r *record.Recording) int {
			without(r, find(t, r, record.Answer, 0)) // CPU 0's
			return find(t, r, record.Done, 0)
		}, "CPU 0 has not answered the round of step"},
		"nothing": {x86, func(t *testing.T, r *record.Recording) int {
			r.Steps = nil
			return 0
		}, "nothing was changed that CPUs may execute"},
		"never published": {x86, func(t *testing.T, r *record.Recording) int {
			r.Steps = slices.DeleteFunc(r.Steps, func(s record.Step) bool {
				return s.Kind == record.Publish || s.Kind == record.Unpublish
			})
			return find(t, r, record.Store, 0)
		}, "the plan has Publish here"},
		"published for one CPU": {x86, func(t *testing.T, r *record.Recording) int {
			for i := range r.Steps {
				if s := &r.Steps[i]; s.Kind == record.Publish || s.Kind == record.Unpublish {
					s.Name = "0"
				}
			}
			return find(t, r, record.Store, 0)
		}, "the plan's step Publish is done for 1 of 3 CPUs"},
		"given up for two CPUs": {x86, func(t *testing.T, r *record.Recording) int {
			var steps []record.Step
			for _, s := range r.Steps {
				for cpu := range 3 {
					s.Name = fmt.Sprint(cpu)
					if s.Kind == record.Publish || s.Kind == record.Unpublish && cpu < 2 {
						steps = append(steps, s)
					}
				}
				if s.Kind != record.Publish && s.Kind != record.Unpublish {
					steps = append(steps, s)
				}
			}
			r.Steps = steps
			return find(t, r, record.End, 0)
		}, "the plan's step Unpublish is done for 2 of 3 CPUs"},
		"no end": {x86, func(t *testing.T, r *record.Recording) int {
			i, end := find(t, r, record.Round, 2), find(t, r, record.End, 0)
			r.Steps = slices.Delete(r.Steps, i, end+1)
			return find(t, r, record.Begin, 1)
		}, "it has begun before on this CPU, and its end is not recorded"},
		"nobody begins": {x86, func(t *testing.T, r *record.Recording) int {
			r.Steps = slices.DeleteFunc(r.Steps[:find(t, r, record.End, 0)+1], func(s record.Step) bool {
				return s.Kind == record.Begin || s.Kind == record.End
			})
			return find(t, r, record.Store, 0)
		}, "the plan has Publish here"},
		"early": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Store, 0)
			r.Steps = slices.Insert(r.Steps, i, record.Step{CPU: 1, Kind: record.Trap, At: r.Steps[i].At})
			return i
		}, "no breakpoint was stored there"},
		"acts elsewhere": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Store, 0)
			r.Steps = slices.Insert(r.Steps, i, record.Step{CPU: 1, Kind: record.Trap, At: 0x1234},
				record.Step{CPU: 1, Kind: record.Leave, At: 0x1239})
			return i + 1
		}, "no batch that changes 0x1234 is under way"},
		"acts twice": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Leave, 0)
			r.Steps = slices.Insert(r.Steps, i, r.Steps[i])
			return i + 1
		}, "the CPU has run into no breakpoint"},
		"answers in a handler": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Leave, 0)
			cpu := r.Steps[i].CPU
			without(r, i)
			for r.Steps[i].Kind != record.Answer || r.Steps[i].CPU != cpu {
				i++
			}
			return i
		}, "the CPU is in the handler of a breakpoint"},
		"last round unanswered": {x86, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Round, 89)
			r.Steps = slices.Delete(r.Steps, i+1, find(t, r, record.Unpublish, 29))
			return i + 1
		}, "has not answered the round of step"},
		"rounds of firmware": {x86, func(t *testing.T, r *record.Recording) int {
			r.Steps = slices.DeleteFunc(r.Steps, func(s record.Step) bool { return s.Kind == record.Answer })
			for i := range r.Steps {
				if r.Steps[i].Kind == record.Round {
					r.Steps[i].Name = record.Firmware
				}
			}
			return find(t, r, record.Round, 0)
		}, "no firmware answers rounds of x86_64"},
		"word first": {riscv, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Begin, 0)
			for len(r.Steps[i].New) != 8 {
				i++
			}
			literal := r.Steps[i]
			r.Steps = slices.Insert(slices.Delete(r.Steps, i, i+1), i+3, literal)
			return i + 2
		}, "the plan has Write literal"},
		"not stopped": {stopped, func(t *testing.T, r *record.Recording) int {
			r.Steps = slices.DeleteFunc(r.Steps, func(s record.Step) bool {
				return slices.Contains([]record.Kind{record.Stop, record.Stand, record.Go, record.Resume}, s.Kind)
			})
			return find(t, r, record.Begin, 0) + 1
		}, "the plan has StopMachine here"},
		"no round behind a key": {stopped, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.Round, 5)
			r.Steps = r.Steps[:i]
			return i
		}, "the plan's step Sync 2 is missing before it"},
		"no round at the end": {riscv, func(t *testing.T, r *record.Recording) int {
			i := find(t, r, record.End, 0)
			r.Steps = slices.Delete(r.Steps, i-2, i)
			return i - 2
		}, "the plan's step Sync 2 is missing before it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, c.of)
			want := c.change(t, r) + 1
			got, err := Check(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Misfit == nil || got.Misfit.Step != want || !strings.Contains(got.Misfit.What, c.want) {
				t.Errorf("%v: want step %d, %q", got.Misfit, want, c.want)
			}
		})
	}
}

// TestOtherPlans: of the shipped protocols, each recording fits its own and those that ask for less.
func TestOtherPlans(t *testing.T) {
	fits := map[string][]string{x86: {"breakpoint", "breakpoint-global", "breakpoint-lazy", "per-site"}, riscv: {"native", "word"}}
	for name, want := range fits {
		r := recorded(t, name)
		a, err := cpus.ParseArch(r.Arch)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range append(poke.Protocols(), poke.Named(poke.Native, a.Traits())) {
			if result, err := Check(r, p); err == nil && result.Misfit == nil {
				got = append(got, p.Name)
			}
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Errorf("%s does not fit %s: %v", name, p, got)
			}
		}
		for _, p := range []string{"stop-machine", "fence-per-write"} {
			if slices.Contains(got, p) {
				t.Errorf("%s fits %s", name, p)
			}
		}
	}
}
