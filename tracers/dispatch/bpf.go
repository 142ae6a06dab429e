// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// BPF is a trampoline generated for each function, with the programs in it:
//
//	site -> trampoline: fentry ... fmod_ret ... function ... fexit
//
// No load: the site calls the trampoline, and that has each program's address as an immediate. It
// saves the function's arguments, and for fexit and fmod_ret the result. Attaching or detaching a
// program means another image: kernel/bpf/trampoline.c. The cost of entering a program
// (__bpf_prog_enter) is left out. The function's body is the Context's, and is not run where a
// program of fmod_ret answered otherwise than 0. A trampoline has tracers.MaxTrampLinks programs at
// most: E2BIG.
type BPF struct {
	*base
	args   int
	images []atomic.Pointer[image] // what the sites' instructions call
}

// image is the code of a trampoline.
type image struct{ entry, modify, exit []*tracers.Ops }

// imageOf is an image of a function's programs, nil for none: the newest is the first,
// hlist_add_head in __bpf_trampoline_link_prog.
func (b *base) imageOf(site int) *image {
	users := b.core.Users(site)
	if len(users) == 0 {
		return nil
	}
	m := &image{}
	for _, o := range slices.Backward(users) {
		f := o.Func
		if f == nil {
			continue
		}
		if f.Entry != nil {
			m.entry = append(m.entry, o)
		}
		if f.Modify != nil {
			m.modify = append(m.modify, o)
		}
		if f.Exit != nil {
			m.exit = append(m.exit, o)
		}
	}
	return m
}

// callable are the users of a site that are called on entry, the newest first.
func (b *base) callable(site int) (out []*entry) {
	for _, o := range slices.Backward(b.core.Users(site)) {
		if e := b.entries[o]; e.run != nil {
			out = append(out, e)
		}
	}
	return out
}

// NewBPF has no programs. All functions have so many arguments.
func NewBPF(c Config, args int) (*BPF, error) {
	b, err := newBase(c, words{}, false)
	if err = errors.Join(err, checkArgs(args)); err != nil {
		return nil, err
	}
	w := &BPF{b, args, make([]atomic.Pointer[image], b.sites)}
	b.users = w.generate
	return w, nil
}

func checkArgs(args int) error {
	if args < 0 || args > metadata.MaxArgs {
		return fmt.Errorf("dispatch: %d arguments: a trampoline saves 0 to %d", args, metadata.MaxArgs)
	}
	return nil
}

// generate makes the images of some sites anew.
func (b *BPF) generate(sites []int) error {
	for _, site := range sites {
		m := b.imageOf(site)
		if m != nil && len(m.entry)+len(m.modify)+len(m.exit) > tracers.MaxTrampLinks {
			return &tracers.Error{
				Errno: tracers.E2BIG, Record: b.ips[site],
				Why:    fmt.Sprintf("a trampoline has %d programs at most", tracers.MaxTrampLinks),
				Source: "__bpf_trampoline_link_prog, 7.1",
			}
		}
		b.images[site].Store(m)
	}
	return nil
}

// Call implements Way.
func (b *BPF) Call(site int, t *Task) {
	m := b.images[site].Load()
	if m == nil {
		t.body()
		return
	}
	t.save(b.args)
	m.run(b.ips[site], t)
}

// run calls the programs and the function, and says how many programs that were.
func (m *image) run(ip records.Addr, t *Task) int64 {
	for _, o := range m.entry {
		o.Func.Entry(ip, o, &t.Task)
	}
	called, skip := int64(len(m.entry)+len(m.exit)), false
	for _, o := range m.modify {
		called++
		if skip = o.Func.Modify(ip, o, &t.Task) != 0; skip {
			break
		}
	}
	if !skip {
		t.body()
	}
	if len(m.modify)+len(m.exit) > 0 {
		t.save(1)
	}
	for _, o := range m.exit {
		o.Func.Exit(ip, o, &t.Task)
	}
	if c := t.counts; c != nil {
		c.Called += called
	}
	return called
}

// Cost implements Way, for programs that let the function go on.
func (b *BPF) Cost(site int) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.imageOf(site).cost(b.args)
}

func (m *image) cost(args int) Counts {
	if m == nil {
		return Counts{}
	}
	results := len(m.modify) + len(m.exit)
	return Counts{Called: int64(len(m.entry) + results), Saved: int64(args + min(results, 1))}
}
