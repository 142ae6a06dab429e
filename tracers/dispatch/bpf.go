package dispatch

import (
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// BPF is a trampoline generated for each function, with the programs in it:
//
//	site -> trampoline: fentry ... fmod_ret ... function ... fexit
//
// No load: the site calls the trampoline, and that has each program's address as an
// immediate. It saves the function's arguments, and for fexit and fmod_ret the result.
// Every program that is attached or detached means another image:
// kernel/bpf/trampoline.c. What entering a program takes itself (__bpf_prog_enter) is
// left out. The function's body is the Context's, and is not run where a program of
// fmod_ret answered otherwise than 0. The kernel has room for BPF_MAX_TRAMP_LINKS (38)
// programs in a trampoline; here there is no such limit.
type BPF struct {
	attached
	args   int
	images []atomic.Pointer[image] // what the sites' instructions call
}

// image is the code of a trampoline.
type image struct{ entry, modify, exit []*Ops }

// imageOf generates an image of some programs, nil for none: the newest is the first,
// hlist_add_head in __bpf_trampoline_link_prog.
func imageOf(users []*Ops) *image {
	if len(users) == 0 {
		return nil
	}
	m := &image{}
	for _, o := range slices.Backward(users) {
		if o.Func != nil {
			m.entry = append(m.entry, o)
		}
		if o.Modify != nil {
			m.modify = append(m.modify, o)
		}
		if o.Exit != nil {
			m.exit = append(m.exit, o)
		}
	}
	return m
}

// NewBPF has no programs. All functions have so many arguments.
func NewBPF(sites []records.Addr, args int) *BPF {
	return &BPF{attached: newAttached(sites), args: args, images: make([]atomic.Pointer[image], len(sites))}
}

// Attach implements Way.
func (b *BPF) Attach(o *Ops) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	sites, err := b.add(o)
	return b.link(sites, err)
}

// Detach implements Way.
func (b *BPF) Detach(o *Ops) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	sites, err := b.remove(o)
	return b.link(sites, err)
}

func (b *BPF) link(sites []int, err error) error {
	for _, i := range sites {
		b.images[i].Store(imageOf(b.users[i]))
	}
	return err
}

// Call implements Way.
func (b *BPF) Call(site int, ctx *Context) {
	m := b.images[site].Load()
	if m == nil {
		ctx.body()
		return
	}
	ctx.save(b.args)
	ip := b.ips[site]
	for _, o := range m.entry {
		o.Func(ip, o, ctx)
	}
	called, skip := len(m.entry), false
	for _, o := range m.modify {
		called++
		if skip = o.Modify(ip, ctx) != 0; skip {
			break
		}
	}
	if !skip {
		ctx.body()
	}
	if len(m.modify)+len(m.exit) > 0 {
		ctx.save(1)
	}
	for _, o := range m.exit {
		o.Exit(ip, o, ctx)
	}
	if c := ctx.counts; c != nil {
		c.Called += int64(called + len(m.exit))
	}
}

// Cost implements Way, for programs that let the function go on.
func (b *BPF) Cost(site int) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cost(b.users[site])
}

func (b *BPF) cost(users []*Ops) (c Counts) {
	if len(users) == 0 {
		return c
	}
	c.Saved = int64(b.args)
	result := int64(0)
	for _, o := range users {
		if o.Func != nil {
			c.Called++
		}
		if o.Modify != nil {
			c.Called++
			result = 1
		}
		if o.Exit != nil {
			c.Called++
			result = 1
		}
	}
	c.Saved += result
	return c
}
