// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"

	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Compare counts what it would cost to switch all that is enabled now with one
// update, vector by vector. Nothing is executed.
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
