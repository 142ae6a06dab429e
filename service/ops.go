// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"

	"github.com/textpoke/textpoke/sched/coordinator"
)

// A machine with ops of its own (Config.Ops) switches a record for each of them by itself: a function for the function
// tracer, and for the graph tracer. The coordinator and the machine know such a pair by one number, Number. On a machine
// for any ops, a record is on while any ops wants it, and its number is its place in the table.

// Number is what a record with the ops of that place is switched by, in a table of so many records.
func Number(records, ops, record int) int { return ops*records + record }

// Split is the other way round.
func Split(records, number int) (ops, record int) { return number / records, number % records }

// layers is how many numbers a record has.
func (s *Service) layers() int { return max(len(s.cfg.Ops), 1) }

// served tells whether the machine has these ops.
func (s *Service) served(ops string) bool { return s.cfg.Ops == nil || slices.Contains(s.cfg.Ops, ops) }

// numbers are what records with ops are switched by. The ops are the machine's.
func (s *Service) numbers(ops string, which []int) []int {
	at := max(slices.Index(s.cfg.Ops, ops), 0)
	if at == 0 {
		return which
	}
	out := make([]int, len(which))
	for i, rec := range which {
		out[i] = Number(s.cfg.Table.Len(), at, rec)
	}
	return out
}

// users is how many clients and ops want a record.
func (s *Service) users(now *coordinator.Snapshot, record int) (n int) {
	for ops := range s.layers() {
		n += now.Users(Number(s.cfg.Table.Len(), ops, record))
	}
	return n
}
