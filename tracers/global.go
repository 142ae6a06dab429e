// SPDX-License-Identifier: Apache-2.0

package tracers

// global is the one function that sites share which do not name their ops: what
// it is to be, and what is patched into ftrace_caller.
type global struct {
	wanted  *Func // ftrace_trace_function
	op      *Ops  // set_function_trace_op: for the wanted function; nil is the end of the list
	saved   *Func // saved_ftrace_func: what it was at the last update pass
	patched *Func // what ftrace_caller calls (save_func of update_ftrace_func)
	passed  *Ops  // function_trace_op: what ftrace_caller passes
}

// Global is what ftrace_caller calls where sites have no literal, and the ops
// that it passes; nil is the list's end.
func (c *Core) Global() (*Func, *Ops) { return c.global.patched, c.global.passed }

// choose works out the traced function (update_ftrace_function), after every change of the list.
func (c *Core) choose() {
	g, only := &c.global, c.list.first
	f := FuncList
	g.op = nil
	switch {
	case only == nil:
		f = FuncStub
	case c.list.n == 1:
		g.op = only
		if !only.has(OpsDynamic|OpsRCU) && !c.ForceList {
			f = only.Effective()
		}
	}
	g.wanted = f
}

// retarget points ftrace_caller at a function (update_ftrace_func); a site's
// literal leaves it nothing to do.
func (c *Core) retarget(f *Func) (changed bool) {
	if c.global.patched == f && !c.Release.EntryAgain {
		return false
	}
	c.pair(f, c.global.passed)
	return !c.traits.CallOps
}
