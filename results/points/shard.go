// SPDX-License-Identifier: Apache-2.0

package points

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Shard is one part of a sweep: the points Index, Index+Of, Index+2*Of and so on. The zero
// Shard is all of it.
type Shard struct{ Index, Of int }

// indexes are the variables in which schedulers say which of several equal jobs one is:
// Kubernetes' Indexed Jobs and Slurm's arrays, both from 0.
var indexes = []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"}

// ParseShard reads "i/n", i from 0. "/n" takes i from the environment.
func ParseShard(text string) (Shard, error) {
	index, of, ok := strings.Cut(text, "/")
	from := ""
	for _, name := range indexes {
		if index == "" && ok {
			index, from = os.Getenv(name), " in "+name
		}
	}
	if index == "" && ok {
		return Shard{}, fmt.Errorf("neither %s is set, which would say the index", strings.Join(indexes, " nor "))
	}
	n, err := strconv.Atoi(of)
	if !ok || err != nil || n < 1 {
		return Shard{}, errors.New("want i/n, such as 0/4, or /4 where the environment says i")
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("index %q%s: want 0 to %d", index, from, n-1)
	}
	return Shard{i, n}, nil
}

// String is the shard as ParseShard reads it; of all of a sweep it is empty.
func (s Shard) String() string {
	if s == (Shard{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// Points are the numbers of the shard's points among n.
func (s Shard) Points(n int) (list []int) {
	for i := s.Index; i < n; i += max(s.Of, 1) {
		list = append(list, i)
	}
	return list
}
