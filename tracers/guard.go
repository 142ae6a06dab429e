package tracers

// Context is what a CPU is doing when a function is called.
type Context uint8

// The contexts, at the bits of include/linux/trace_recursion.h (TRACE_CTX_*).
const (
	NMI Context = iota
	IRQ
	SoftIRQ
	Normal
	transition
)

// Guard is a task's recursion bits for the list function
// (current->trace_recursion from TRACE_LIST_START on): a bit for each context, so
// that an interrupt is traced inside a tracer, and one more that tolerates a single
// nesting, since an interrupt calls functions before it has said that it is one
// (TRACE_CTX_TRANSITION, 5.10).
type Guard struct{ bits uint8 }

// Enter takes the bit of a context; ok is false where a tracer is being traced
// again, which is to be left alone (trace_test_and_set_recursion).
func (g *Guard) Enter(c Context) (bit Context, ok bool) {
	if g.bits>>c&1 != 0 {
		if c = transition; g.bits>>c&1 != 0 {
			return 0, false
		}
	}
	g.bits |= 1 << c
	return c, true
}

// Leave gives a bit back (trace_clear_recursion).
func (g *Guard) Leave(bit Context) { g.bits &^= 1 << bit }
