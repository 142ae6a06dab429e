package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/textpoke/textpoke/records"
)

// Way is a way from patched sites to tracers. Sites are named by their index.
type Way interface {
	// Attach lets the sites that the ops' filter names lead to it, Detach ends that.
	Attach(o *Ops) error
	Detach(o *Ops) error
	// Call calls the function of a site.
	Call(site int, ctx *Context)
	// Cost is what Call takes: computed from what is attached, without calling.
	Cost(site int) Counts
}

// Why an ops is refused.
var (
	ErrBusy   = errors.New("somebody is attached already (EBUSY)")
	ErrAbsent = errors.New("not attached (ENOENT)")
)

// attached is the writers' side of every way: who is attached, the oldest first.
type attached struct {
	mu    sync.Mutex // ftrace_lock
	ips   []records.Addr
	users [][]*Ops // of each site, the oldest first
	all   []*Ops
}

func newAttached(sites []records.Addr) attached {
	return attached{ips: sites, users: make([][]*Ops, len(sites))}
}

// add attaches an ops and returns the sites whose users changed.
func (a *attached) add(o *Ops) (sites []int, err error) {
	if slices.Contains(a.all, o) {
		return nil, fmt.Errorf("attach: %w", ErrBusy)
	}
	a.all = append(a.all, o)
	for i, ip := range a.ips {
		if o.matches(ip) {
			a.users[i] = append(a.users[i], o)
			sites = append(sites, i)
		}
	}
	return sites, nil
}

// hasDirect tells whether an ops is direct and another direct one traces one of its
// functions already: register_ftrace_direct refuses that.
func (a *attached) hasDirect(o *Ops) bool {
	for i, ip := range a.ips {
		if o.Direct && o.matches(ip) && slices.ContainsFunc(a.users[i], func(u *Ops) bool { return u.Direct }) {
			return true
		}
	}
	return false
}

// remove detaches an ops and returns the sites whose users changed.
func (a *attached) remove(o *Ops) (sites []int, err error) {
	at := slices.Index(a.all, o)
	if at < 0 {
		return nil, fmt.Errorf("detach: %w", ErrAbsent)
	}
	a.all = slices.Delete(a.all, at, at+1)
	for i := range a.users {
		if k := slices.Index(a.users[i], o); k >= 0 {
			a.users[i] = slices.Delete(a.users[i], k, k+1)
			sites = append(sites, i)
		}
	}
	return sites, nil
}

// unique is the only user of a site, nil if there is none or more than one.
func (a *attached) unique(site int) *Ops {
	if len(a.users[site]) != 1 {
		return nil
	}
	return a.users[site][0]
}
