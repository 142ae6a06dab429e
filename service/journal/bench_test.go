// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkCommit is updates accepted and answered, each by itself, by so many
// clients at the same time: what group commit gains.
func BenchmarkCommit(b *testing.B) {
	for _, clients := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := openIn(b, b.TempDir())
			left := make(chan struct{}, b.N)
			for range b.N {
				left <- struct{}{}
			}
			close(left)
			done := make(chan error, clients)
			b.ResetTimer()
			for c := range clients {
				go func() {
					for range left {
						u, err := s.Accept(order(fmt.Sprint(c), "", c%100), func(Update) {})
						u.State, u.Ended = Live, time.Unix(1, 0)
						if err == nil {
							err = s.Answer([]Update{u}, nil)
						}
						if err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range clients {
				if err := <-done; err != nil {
					b.Error(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
