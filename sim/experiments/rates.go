package experiments

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// rate is a number of events in some time, 0 or more; below 0 it is not given.
type rate struct{ to *float64 }

func (r *rate) String() string {
	if r.to == nil || *r.to < 0 {
		return ""
	}
	return strconv.FormatFloat(*r.to, 'g', -1, 64)
}

// Type is what help calls the value.
func (r *rate) Type() string { return "rate" }

// Set reads it.
func (r *rate) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1e9) {
		return fmt.Errorf("want a number from 0 to 1e9")
	}
	*r.to = v
	return nil
}

// Rate registers a number of events a second; usage says what is done without it,
// which is what stands in to by then.
func Rate(f *pflag.FlagSet, to *float64, name, usage string) { f.Var(&rate{to}, name, usage) }

// Rates registers a list of numbers, 0 or more.
func Rates(f *pflag.FlagSet, to *[]float64, name, preset, usage string) {
	list(f, to, name, preset, usage, nil, func(s string) (v float64, err error) {
		err = (&rate{&v}).Set(s)
		return v, err
	})
}
