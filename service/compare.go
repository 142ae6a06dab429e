// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"

	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Compare counts the cost of one update that switches everything that is enabled now, vector by
// vector. Nothing is executed.
func (s *Service) Compare(ctx context.Context, buffers []sched.Buffer) (rows []sim.PlanRow, err error) {
	enabled := slices.Collect(s.coord.Snapshot().Records())
	for _, b := range buffers {
		row, err := s.live.Cost(ctx, enabled, &b)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
