// SPDX-License-Identifier: Apache-2.0

// Package call attaches tracers to a function, and counts what one call of it takes.
package call

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Call is a function with its tracers, whose calls reach them in some way.
type Call struct {
	way    *dispatch.Way
	Counts dispatch.Counts // of one call: exact
}

// The function that is called, and the one that others trace.
const (
	mine      records.Addr = 0xffffffff81000010
	elsewhere records.Addr = 0xffffffff81000050
)

// New attaches tracers of the function to a new way, and so many of the other function, and makes a call: it must call
// all handlers of the former.
func New(way func(dispatch.Config) (*dispatch.Way, error), others int, own ...*tracers.Ops) (*Call, error) {
	w, err := way(dispatch.Config{Sites: []records.Addr{mine}, Elsewhere: []records.Addr{elsewhere}})
	if err != nil {
		return nil, err
	}
	want := uint64(0)
	for _, o := range own {
		if want++; o.Func != nil && o.Func.Exit != nil {
			want++
		}
	}
	for range others {
		own = append(own, tracers.NewOps("other", tracers.CountHits, 0, 1))
	}
	for _, o := range own {
		if err := w.Attach(o); err != nil {
			return nil, err
		}
	}
	c, task := &Call{way: w}, &dispatch.Task{}
	task.Count(&c.Counts)
	c.Repeat(1, task)
	if task.Hits != want {
		return nil, fmt.Errorf("a call calls %d handlers of %d", task.Hits, want)
	}
	return c, nil
}

// Callback is a tracer of the function.
func Callback() *tracers.Ops { return tracers.NewOps("callback", tracers.CountHits, 0, 0) }

// Repeat makes so many calls.
func (c *Call) Repeat(n int, task *dispatch.Task) {
	for range n {
		c.way.Call(0, task)
	}
}
