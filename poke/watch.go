// SPDX-License-Identifier: Apache-2.0

package poke

import "github.com/textpoke/textpoke/cpus"

// watch follows the steps of one plan for the machine's listener.
type watch struct {
	*cpus.Listener
	now   func() int64
	began int64 // when the step did that is being made
}

// watch begins to follow a plan, if somebody listens.
func (x *Executor) watch() *watch {
	l := x.Machine.Listener()
	if l == nil {
		return nil
	}
	return &watch{l, x.Machine.Now, x.Machine.Now()}
}

func (w *watch) begins() { w.began = w.now() }

// over tells that a step is through, or has failed.
func (w *watch) over(cpu int, st Step) {
	now := w.now()
	switch st.Op {
	case Publish:
		w.Batch(now, int(st.To-st.From))
	case Unpublish:
		w.Batch(now, 0)
	}
	w.Step(cpu, st.Name(), w.began, now)
}
