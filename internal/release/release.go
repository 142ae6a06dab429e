// SPDX-License-Identifier: Apache-2.0

// Package release reads the numbers of a kernel's release.
package release

import (
	"fmt"
	"slices"
)

// Numbers are those that a release begins with: 7.1.9 is {7, 1, 9}.
type Numbers [3]int

// Last is more than any of them.
const Last = 1 << 30

// Of reads two or three numbers, whatever follows them: 6.12.48+deb13-amd64 is {6, 12, 48}.
func Of(name string) (r Numbers, err error) {
	n, _ := fmt.Sscanf(name, "%d.%d.%d", &r[0], &r[1], &r[2])
	if n < 2 || slices.Min(r[:]) < 0 || slices.Max(r[:]) >= Last {
		return Numbers{}, fmt.Errorf("release %q: want two or three numbers, such as 6.18 or 7.1.9", name)
	}
	return r, nil
}

// Before tells whether it is older than another one.
func (r Numbers) Before(o Numbers) bool { return slices.Compare(r[:], o[:]) < 0 }
