// SPDX-License-Identifier: Apache-2.0

package tracers

// Share is the command to a direct ops that is to live with one that may change the instruction
// pointer (enum ftrace_ops_cmd, include/linux/ftrace.h).
type Share uint8

// The questions.
const (
	ShareSelf   Share = iota // it comes second: FTRACE_OPS_CMD_ENABLE_SHARE_IPMODIFY_SELF
	SharePeer                // it was first: FTRACE_OPS_CMD_ENABLE_SHARE_IPMODIFY_PEER
	UnsharePeer              // the other one has gone: FTRACE_OPS_CMD_DISABLE_SHARE_IPMODIFY_PEER
)

// claim marks the functions whose instruction pointer an ops may change, and asks
// a direct ops whether it can share one (__ftrace_hash_update_ipmodify). anew
// asks again about what it has already: its trampoline is another one.
func (x *change) claim(o *Ops, from, to Functions, anew bool) error {
	const source = "__ftrace_hash_update_ipmodify, 7.1"
	if !o.has(OpsEnabled) || !o.has(OpsIPModify|OpsDirect) || o.has(OpsIPModify) && o.has(OpsDirect) {
		return nil
	}
	if len(to) == 0 && len(from) == 0 || len(to) == 0 && o.alive == attached {
		return refuse(EINVAL, o, "all functions at once", source)
	}
	c := x.c
	x.Walked += len(c.flags)
	for _, rec := range from.without(to) {
		if o.has(OpsIPModify) {
			x.touch(rec)
			c.flags[rec] &^= IPModify
		}
	}
	for _, rec := range to {
		switch {
		case !anew && from.Has(rec) || c.flags[rec].has(Disabled):
		case !c.flags[rec].has(IPModify):
			if o.has(OpsIPModify) {
				x.touch(rec)
				c.flags[rec] |= IPModify
			}
		case o.has(OpsIPModify):
			return refuse(EBUSY, o, "another ops may change the function's instruction pointer",
				source).at(c.Records[rec])
		case o.Share == nil:
			return refuse(EBUSY, o,
				"another ops may change the function's instruction pointer, and this one cannot share it",
				source).at(c.Records[rec])
		default:
			if err := o.Share(ShareSelf, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// askPeers asks direct ops on the same functions to share them
// (prepare_direct_functions_for_ipmodify).
func (x *change) askPeers(o *Ops) error {
	return x.peers(o, func(peer *Ops, rec int) error {
		if peer.Share == nil {
			return refuse(EBUSY, o,
				"the direct ops "+peer.Name+
					" on the function cannot share it with one that may change the instruction pointer",
				"prepare_direct_functions_for_ipmodify, 7.1").at(x.c.Records[rec])
		}
		return peer.Share(SharePeer, rec)
	})
}

// tellPeers tells them that they have the functions for themselves again; what
// they answer does not matter (cleanup_direct_functions_after_ipmodify).
func (x *change) tellPeers(o *Ops) error {
	return x.peers(o, func(peer *Ops, rec int) error {
		if peer.Share != nil {
			_ = peer.Share(UnsharePeer, rec)
		}
		return nil
	})
}

// peers goes through the direct ops on the functions of one that may change the
// instruction pointer.
func (x *change) peers(o *Ops, f func(peer *Ops, rec int) error) error {
	if !o.has(OpsIPModify) {
		return nil
	}
	for _, rec := range o.Filter {
		for _, u := range x.c.users[rec] {
			if u.has(OpsDirect) {
				if err := f(u, rec); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}
