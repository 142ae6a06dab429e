// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
)

// overError is that a point takes more than it may.
type overError string

func (e overError) Error() string { return string(e) }

// lookEvery is the time between two looks at how much memory the process holds.
const lookEvery = 50 * time.Millisecond

// limit ends a point that takes more time or memory than it may, until stop is called.
func (s *session) limit(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	if s.Time > 0 {
		watching.Go(func() {
			if sleep(ctx, s.Time) == nil {
				end(overError(fmt.Sprintf("it took longer than %v", s.Time)))
			}
		})
	}
	if s.Memory > 0 {
		watching.Go(func() {
			for sleep(ctx, lookEvery) == nil {
				if held() > s.Memory {
					end(overError(fmt.Sprintf("it took more than %d MiB", s.Memory>>20)))
					return
				}
			}
		})
	}
	return func() { cancel(); watching.Wait() }
}

// held is how many bytes the process's objects take.
func held() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
