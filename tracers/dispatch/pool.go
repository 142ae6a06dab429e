// SPDX-License-Identifier: Apache-2.0

package dispatch

import "sync/atomic"

// node is struct rethook_node: what a hooked return needs.
type node struct {
	index uint32
	next  atomic.Uint32 // in the pool: index of the next free node plus 1
	below *node         // in the task: the return that was hooked before
	frame
}

// Pool is rethook's: nodes that are taken at a function's entry and given back at its
// return, by whichever CPU, from one list without a lock. include/linux/freelist.h
// (Linux 5.18 to 6.6) keeps a count in each node so that one that comes back is not
// taken for the one that left; here a running number goes with the head.
type Pool struct {
	nodes []node
	head  atomic.Uint64 // running number and index of the first free node plus 1
	// Retries are failed attempts, each because another CPU was faster.
	Retries atomic.Uint64
}

// NewPool has so many nodes.
func NewPool(n int) *Pool {
	p := &Pool{nodes: make([]node, n)}
	for i := range p.nodes {
		p.nodes[i].index = uint32(i)
		p.put(&p.nodes[i])
	}
	return p
}

// get takes a node, nil if none is left.
func (p *Pool) get() *node {
	for {
		was := p.head.Load()
		if uint32(was) == 0 {
			return nil
		}
		n := &p.nodes[uint32(was)-1]
		if p.head.CompareAndSwap(was, (was>>32+1)<<32|uint64(n.next.Load())) {
			return n
		}
		p.Retries.Add(1)
	}
}

// put gives a node back.
func (p *Pool) put(n *node) {
	for {
		was := p.head.Load()
		n.next.Store(uint32(was))
		if p.head.CompareAndSwap(was, (was>>32+1)<<32|uint64(n.index+1)) {
			return
		}
		p.Retries.Add(1)
	}
}

// frame is one hooked return on a task's shadow stack.
type frame struct{ of *probe }

// shadowFrames is how many returns a task can have hooked on x86_64 where users reserve no
// data (ftrace_push_return_trace and SHADOW_STACK_MAX_OFFSET, kernel/trace/fgraph.c, Linux
// 7.2.13): of the 512 words of a stack a frame takes 4, three of struct ftrace_ret_stack and
// one that leads back to it, and the last frame leaves 16 words and a frame free. arm64 and
// riscv64, whose frames have 5 words, have room for 98.
const shadowFrames = (512-(3+1+16)-(3+1)-1)/4 + 1
