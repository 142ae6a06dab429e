package poke

import "github.com/textpoke/textpoke/cpus"

// watch follows the steps of one plan for the machine's observer.
type watch struct {
	*cpus.Observer
	began int64 // when the step did that is being made
}

// watch begins to follow a plan, if somebody observes.
func (x *Executor) watch() *watch {
	o := x.Machine.Observer()
	if o == nil {
		return nil
	}
	return &watch{o, o.Now()}
}

func (w *watch) begins() { w.began = w.Now() }

// over tells that a step is through, or has failed.
func (w *watch) over(cpu int, st Step) {
	now := w.Now()
	switch st.Op {
	case Publish:
		w.Batch(now, int(st.To-st.From))
	case Unpublish:
		w.Batch(now, 0)
	}
	w.Step(cpu, st.Name(), w.began, now)
}
