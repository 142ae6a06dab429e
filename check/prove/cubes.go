// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"slices"
)

// cube is a set of views: those that have, of each attribute, one of some values. An
// attribute that makes no difference has all of them.
type cube [numAttrs]values

// cubesOf joins views to few cubes that hold the same.
func cubesOf(views []view) []cube {
	list := make([]cube, len(views))
	for i, v := range views {
		for a := range numAttrs {
			list[i][a] = only(v[a])
		}
	}
	return joined(list)
}

// joinOrder is the order in which cubes are joined along attributes: first those in
// which most views differ.
var joinOrder = []attr{does, asked, window, stand, settled, home, done, opsStates, enabled, entry, role, text, waiting,
	literal, space, published, reference, place}

// joined makes one cube of those that differ in one attribute alone, over and over. The
// order of what it returns is that of the values.
func joined(list []cube) []cube {
	for before := -1; before != len(list); {
		before = len(list)
		for _, a := range joinOrder {
			at := make(map[cube]int, len(list))
			kept := list[:0]
			for _, x := range list {
				key := x
				key[a] = values{}
				if i, ok := at[key]; ok {
					kept[i][a] = kept[i][a].union(x[a])
					continue
				}
				at[key] = len(kept)
				kept = append(kept, x)
			}
			list = kept
		}
	}
	slices.SortFunc(list, compareCubes)
	return list
}

func compareCubes(x, y cube) int {
	for a := range numAttrs {
		for i := range x[a] {
			if c := cmp.Compare(x[a][i], y[a][i]); c != 0 {
				return c
			}
		}
	}
	return 0
}
