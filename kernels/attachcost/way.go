// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"fmt"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Way is a means of attaching.
type Way struct {
	Name   string
	About  string
	Direct bool  // sites call trampolines; otherwise the function of an ops
	Calls  int64 // of the interface, each with an ops of its own unless one is shared; 0: one a function
	Images int64 // trampolines; 0: none, -1: one a function
	Shared bool  // needs an ops that trampolines of many functions share
}

// GlobalOps is how many ops a global trampoline has in the RFC of 2025: one for
// each number of arguments (Menglong Dong, bpf list, 2025-07-03).
const GlobalOps = 12

// The ways.
var ways = []Way{
	{Name: "fentry", About: "a trampoline a function, attached one by one", Direct: true, Images: -1},
	{Name: "global-trampoline", About: "one trampoline, and ops, for each of 12 numbers of arguments", Direct: true,
		Calls: GlobalOps, Images: GlobalOps},
	{Name: "tracing-multi", About: "a trampoline a function, attached in one update of one ops", Direct: true,
		Calls: 1, Images: -1, Shared: true},
	{Name: "kprobe-multi", About: "one ops for all functions, no trampolines of their own", Calls: 1},
}

// Ways are all of them.
func Ways() []Way { return ways }

// WayNames lists them.
func WayNames() (out []string) {
	for _, w := range ways {
		out = append(out, w.Name)
	}
	return out
}

// ParseWay finds one by its name.
func ParseWay(s string) (Way, error) {
	for _, w := range ways {
		if w.Name == s {
			return w, nil
		}
	}
	return Way{}, spelling.NotOneOf(s, WayNames())
}

// In tells whether a kernel can do it, and otherwise why not.
func (w Way) In(k *Kernel) error {
	if w.Shared && !k.SharedDirectOps {
		return fmt.Errorf("%s has an ops a trampoline: ops->direct_call is one address", k.Name)
	}
	return nil
}

// calls is in how many calls of the interface n functions are attached.
func (w Way) calls(n int64) int64 {
	if w.Calls == 0 {
		return n
	}
	return min(w.Calls, n)
}

// images is how many trampolines n functions have.
func (w Way) images(n int64) int64 {
	if w.Images < 0 {
		return n
	}
	return min(w.Images, n)
}
