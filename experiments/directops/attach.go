// SPDX-License-Identifier: Apache-2.0

package directops

import (
	"fmt"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// nearTo is how many CPUs the machine should have that times are modelled for.
const nearTo = 64

// attachRow is attaching a trampoline to each of some functions, and detaching
// them.
type attachRow struct {
	Kernel      *ledger.Kernel
	Way         ledger.Way
	Functions   int
	On, Off     ledger.Tally
	onNS, offNS calibration.Spread
	Machine     string
}

// seed is of the draws that ranges are made of.
const seed = 1

// attach counts it for every kernel of the instruction sets that are asked for.
func (c *Config) attach(kernels []*ledger.Kernel) (out []*attachRow, err error) {
	for _, arch := range c.Arches {
		own := arch.Traits().Name
		m := ledger.NewMachine(calibration.Nearest(own, nearTo), ledger.AssumedExtra)
		for _, k := range kernels {
			if k.Arch != own {
				continue
			}
			for _, name := range []string{"fentry", "tracing-multi"} {
				w, err := ledger.ParseWay(name)
				if err != nil {
					return nil, err
				}
				if w.In(k) != nil {
					continue
				}
				for _, n := range c.Trampolines {
					row := &attachRow{Kernel: k, Way: w, Functions: n, Machine: m.Name}
					if row.On, row.Off, err = k.Attach(w, n, tableRecords); err != nil {
						return nil, err
					}
					row.onNS, row.offNS = m.Spread(&row.On, true, seed), m.Spread(&row.Off, false, seed)
					out = append(out, row)
				}
			}
		}
	}
	return out, nil
}

// tableRecords is how many functions the table has.
const tableRecords = 50000

// Copied is the entries of hashes that attaching and detaching copy.
func (r *attachRow) Copied() int { return r.On.Copied + r.Off.Copied }

// OnS and OffS are the modelled times of attaching and detaching, with their ranges.
func (r *attachRow) OnS() string  { return seconds(r.onNS) }
func (r *attachRow) OffS() string { return seconds(r.offNS) }

func seconds(s calibration.Spread) string {
	s = s.Scaled(1e-9)
	return fmt.Sprintf("%.3g s (%.3g to %.3g)", s.Likely, s.Low, s.High)
}
