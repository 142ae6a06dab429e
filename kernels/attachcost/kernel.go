// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"fmt"
	"strings"
	"time"

	"github.com/textpoke/textpoke/kernels/published"
)

// Kernel is what attaching depends on in one release on one instruction set.
type Kernel struct {
	Name string // such as ARCH-6.12
	Arch string

	// SharedDirectOps: one static ops is for all trampolines, and functions are
	// added to it. Otherwise each trampoline has its own ops, which is dynamic.
	SharedDirectOps bool
	// SharedProbeOps: the ops of kprobe_multi is static.
	SharedProbeOps bool
	// DirectEntries is how many entries are made for each function that a changed
	// table of direct calls holds: 2 where the filter is copied too.
	DirectEntries int64

	PerBatch, PerRecord, PerUpdate int64 // rounds for records

	CallUpdate int64 // rounds for aiming the calls in the common entries
	OrderSync  int64 // and for the order of what they load
	Image      int64 // a trampoline is made
	OldImage   int64 // one is cut off
	ProbeMade  int64 // the ops of kprobe_multi gets a trampoline
	ProbeFreed int64 // which is freed
	ProbeAimed int64 // or the one it has is aimed again

	Stores  int64         // to text and literals, a record
	Replace int64         // walks over all records in one update of them
	Wait    time.Duration // what a detach took there

	Basis map[string]published.AttachPart // of each part
}

// parts are the names in the data, and where they go.
var parts = map[string]func(*Kernel, int64){
	"shared_direct_ops":        func(k *Kernel, v int64) { k.SharedDirectOps = v != 0 },
	"shared_probe_ops":         func(k *Kernel, v int64) { k.SharedProbeOps = v != 0 },
	"direct_entries":           func(k *Kernel, v int64) { k.DirectEntries = v },
	"record_rounds_per_batch":  func(k *Kernel, v int64) { k.PerBatch = v },
	"record_rounds_per_record": func(k *Kernel, v int64) { k.PerRecord = v },
	"record_rounds_per_update": func(k *Kernel, v int64) { k.PerUpdate = v },
	"call_update":              func(k *Kernel, v int64) { k.CallUpdate = v },
	"order_sync":               func(k *Kernel, v int64) { k.OrderSync = v },
	"image":                    func(k *Kernel, v int64) { k.Image = v },
	"old_image":                func(k *Kernel, v int64) { k.OldImage = v },
	"probe_ops_made":           func(k *Kernel, v int64) { k.ProbeMade = v },
	"probe_ops_freed":          func(k *Kernel, v int64) { k.ProbeFreed = v },
	"probe_ops_aimed":          func(k *Kernel, v int64) { k.ProbeAimed = v },
	"stores_per_record":        func(k *Kernel, v int64) { k.Stores = v },
	"replace_walks":            func(k *Kernel, v int64) { k.Replace = v },
	"wait_ms":                  func(k *Kernel, v int64) { k.Wait = time.Duration(v) * time.Millisecond },
}

// Kernels are those that the data knows, in its order.
func Kernels() (out []*Kernel, err error) {
	rows, err := published.AttachParts.Read("")
	if err != nil {
		return nil, err
	}
	of := map[string]*Kernel{}
	for _, r := range rows {
		k := of[r.Kernel]
		if k == nil {
			arch, _, _ := strings.Cut(r.Kernel, "-")
			k = &Kernel{Name: r.Kernel, Arch: arch, Basis: map[string]published.AttachPart{}}
			of[r.Kernel], out = k, append(out, k)
		}
		set := parts[r.Part]
		if set == nil {
			return nil, fmt.Errorf("attach parts: %s: there is no part %q", r.Kernel, r.Part)
		}
		set(k, r.Value)
		k.Basis[r.Part] = r
	}
	for _, k := range out {
		if len(k.Basis) != len(parts) {
			return nil, fmt.Errorf("attach parts: %s has %d of %d", k.Name, len(k.Basis), len(parts))
		}
	}
	return out, nil
}
