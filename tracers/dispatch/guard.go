package dispatch

// Guard is what keeps a callback that calls a traced function from being called for
// that again. include/linux/trace_recursion.h, trace_test_and_set_recursion.
type Guard uint8

// The guards.
const (
	// Transition has a bit for each level, and one more that lets a single call pass
	// whose level's bit is set: an interrupt may be traced before the CPU knows that it
	// is in one. Since Linux 5.10 (726b3d3f141f).
	Transition Guard = iota
	// Levels has only the levels' bits: what an interrupt calls before it is known to be
	// one is missed, if it came inside a callback.
	Levels
	// Unguarded has none. A callback that calls what it traces does not end.
	Unguarded
)

// The guard of the list function and that of a callback itself have bits of their own:
// TRACE_LIST_START and TRACE_FTRACE_START.
const (
	listBits = iota * (int(NMI) + 2)
	ownBits
)

// maxDepth is where a kernel's stack would have overflown: 16 KiB, and at least 256
// bytes for ftrace_caller, the list function and the callback.
const maxDepth = 64

// enter tells whether a call may go on, and which bit to give back. A call that may
// not is counted.
func (g Guard) enter(ctx *Context, start int) (bit uint16, ok bool) {
	if g == Unguarded {
		if ctx.depth == maxDepth {
			ctx.Overflowed++
			return 0, false
		}
		ctx.depth++
		return 0, true
	}
	bit = 1 << (start + int(ctx.Level))
	if ctx.recursion&bit != 0 {
		bit = 1 << (start + int(NMI) + 1)
		if g == Levels || ctx.recursion&bit != 0 {
			ctx.Missed++
			return 0, false
		}
	}
	ctx.recursion |= bit
	return bit, true
}

// leave is the other half of enter.
func (g Guard) leave(ctx *Context, bit uint16) {
	if g == Unguarded {
		ctx.depth--
		return
	}
	ctx.recursion &^= bit
}
