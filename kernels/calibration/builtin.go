// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"bytes"
	"cmp"
	"embed"
	"math"
	"slices"
	"sync"
)

//go:embed data/*.csv
var data embed.FS

// load reads the built-in calibrations, once. That they are in order is what the
// tests of this package are for.
var load = sync.OnceValue(func() []*Calibration {
	files, err := data.ReadDir("data")
	if err != nil {
		panic(err)
	}
	var all []*Calibration
	for _, f := range files {
		text, err := data.ReadFile("data/" + f.Name())
		if err != nil {
			panic(err)
		}
		c, err := Read(f.Name(), bytes.NewReader(text))
		if err != nil {
			panic(err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Calibration) int {
		return cmp.Or(cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.Name, b.Name))
	})
	return all
})

// Builtins lists the built-in calibrations, small machines first. They are the
// caller's own.
func Builtins() []*Calibration {
	var all []*Calibration
	for _, c := range load() {
		all = append(all, c.Clone())
	}
	return all
}

// Names lists what they are called.
func Names() []string {
	var names []string
	for _, c := range load() {
		names = append(names, c.Name)
	}
	return names
}

func builtin(name string) *Calibration {
	for _, c := range load() {
		if c.Name == name {
			return c.Clone()
		}
	}
	return nil
}

// Clone is a copy that shares nothing that can change.
func (c *Calibration) Clone() *Calibration {
	d := *c
	d.Entries = slices.Clone(c.Entries)
	return &d
}

// Nearest is the built-in calibration of that instruction set whose number of
// CPUs is nearest by ratio; nil if there is none of that set.
func Nearest(arch string, n int) *Calibration {
	var best *Calibration
	for _, c := range load() {
		if c.Arch == arch && (best == nil || apart(c.CPUs, n) < apart(best.CPUs, n)) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	return best.Clone()
}

func apart(a, b int) float64 { return math.Abs(math.Log(float64(a) / float64(b))) }
