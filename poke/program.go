package poke

// Toggle is a tracer's whole life as one program: its ops is attached, the plan
// enable makes n sites call it, the plan disable (of the same patches, compiled
// as if they were the other way round) takes that back, and the ops is released.
// settles: the protocol promises after each that nobody executes what was
// replaced; see Protocol.Settles.
func Toggle(enable, disable []Step, n int, settles bool) []Step {
	all := Step{To: int32(n)}
	around := func(op Op, undo bool) Step {
		s := all
		s.Op, s.Undo = op, undo
		return s
	}
	program := append([]Step{around(Attach, false)}, enable...)
	if settles {
		program = append(program, around(Settle, false))
	}
	program = append(program, Backwards(disable)...)
	if settles {
		program = append(program, around(Settle, true))
	}
	return append(program, around(Release, true))
}

// Backwards is a plan with old and new text exchanged.
func Backwards(plan []Step) []Step {
	out := make([]Step, len(plan))
	for i, s := range plan {
		switch s.Op {
		case Verify, Publish, Write, Settle, Attach, Release:
			s.Undo = !s.Undo
		}
		out[i] = s
	}
	return out
}
