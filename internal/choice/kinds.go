// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Named is the kind of values that have names; a wrong name is told which was
// probably meant.
func Named[T any](names []string, parse func(string) (T, error), format func(T) string) Kind[T] {
	return Kind[T]{
		Type: "name", Names: names, Format: format,
		Parse: func(s string) (T, error) {
			v, err := parse(s)
			if err != nil {
				err = spelling.NotOneOf(s, names)
			}
			return v, err
		},
	}
}

// OneOf is the kind of texts that are one of some names.
func OneOf(names []string) Kind[string] {
	return Named(names, func(s string) (string, error) {
		if !slices.Contains(names, s) {
			return "", spelling.NotOneOf(s, names)
		}
		return s, nil
	}, strings.Clone)
}

// Text is a field of any text that is not empty.
func Text(to *string, name, preset, doc string) *Field {
	return One(to, name, preset, doc, texts(nil))
}

// File is a field that names a file of this machine.
func File(to *string, name, doc string) *Field {
	k := texts(AnyFile)
	k.Type = "file"
	return One(to, name, "", doc, k)
}

// texts is the kind of texts that are not empty.
func texts(namesFile func(string) bool) Kind[string] {
	return Kind[string]{Type: "text", Format: strings.Clone, NamesFile: namesFile, Parse: func(s string) (string, error) {
		if s == "" {
			return "", errors.New("want a name")
		}
		return s, nil
	}}
}

// Whole is the kind of whole numbers from low to high.
func Whole(low, high int) Kind[int] {
	want := fmt.Sprintf("whole numbers from %d to %d", low, high)
	if high == math.MaxInt {
		want = fmt.Sprintf("a whole number, %d or more", low)
	}
	return Kind[int]{
		Type: "count", Format: strconv.Itoa,
		Parse: func(s string) (int, error) {
			n, err := strconv.Atoi(s)
			if err != nil || n < low || n > high {
				return 0, errors.New("want " + want)
			}
			return n, nil
		},
	}
}

// UpTo is the kind of whole numbers from 0 to high; want says which these are.
func UpTo(high uint64, want string) Kind[uint64] {
	return Kind[uint64]{
		Type: "count", Format: func(n uint64) string { return strconv.FormatUint(n, 10) },
		Parse: func(s string) (uint64, error) {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil || n > high {
				return 0, errors.New("want " + want)
			}
			return n, nil
		},
	}
}

// Count is a field of one whole number from low to high.
func Count(to *int, name string, preset int, doc string, low, high int) *Field {
	text := "" // for none
	if preset != 0 {
		text = strconv.Itoa(preset)
	}
	return One(to, name, text, doc, Whole(low, high))
}

// Counts is a field of whole numbers from low to high.
func Counts(to *[]int, name, preset, doc string, low, high int) *Field {
	return List(to, name, preset, doc, Whole(low, high))
}

// Flag is a field that is true or false, false by default.
func Flag(to *bool, name, doc string) *Field {
	return One(to, name, "", doc, Kind[bool]{Type: "bool", Format: strconv.FormatBool,
		Parse: func(s string) (bool, error) {
			on, err := strconv.ParseBool(s)
			if err != nil {
				err = errors.New("want true or false")
			}
			return on, err
		}})
}

// Number is the kind of numbers that ok holds of; want says which these are.
func Number(want string, ok func(float64) bool) Kind[float64] {
	return Kind[float64]{
		Type: "number", Format: func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		Parse: func(s string) (float64, error) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil || !ok(v) {
				return 0, errors.New("want " + want)
			}
			return v, nil
		},
	}
}

var rates = Number("a number from 0 to 1e9", func(v float64) bool { return v >= 0 && v <= 1e9 })

// Rates is a field of numbers from 0 to 1e9.
func Rates(to *[]float64, name, preset, doc string) *Field { return List(to, name, preset, doc, rates) }

// Rate is a field of a number of events a second, 0 to 1e9; nil, the default, leaves
// it to what doc says.
func Rate(to **float64, name, doc string) *Field {
	return One(to, name, "", doc, Kind[*float64]{
		Type: "rate", Unit: "per_s",
		Format: func(v *float64) string { return rates.Format(*v) },
		Parse: func(s string) (*float64, error) {
			v, err := rates.Parse(s)
			return &v, err
		},
	})
}

// Time is a field of a time from low on, such as 500ms, 10s or 1h30m.
func Time(to *time.Duration, name string, preset time.Duration, doc string, low time.Duration) *Field {
	text := preset.String()
	if preset == 0 {
		text = ""
	}
	return One(to, name, text, doc, Kind[time.Duration]{
		Type: "time", Unit: "ns", Format: time.Duration.String,
		Parse: func(s string) (time.Duration, error) {
			d, err := time.ParseDuration(s)
			switch {
			case err != nil:
				return 0, errors.New("want a time such as 500ms, 10s or 1h30m")
			case d < low && low == 1:
				return 0, errors.New("want a time above 0, such as 10s")
			case d < low:
				return 0, fmt.Errorf("want a time of at least %v", low)
			}
			return d, nil
		},
	})
}

// units are the letters that a number of bytes may end in.
var units = map[byte]uint64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// Sizes is a field of numbers of bytes up to high, such as 512, 4K or 2G.
func Sizes(to *[]uint64, name, preset, doc string, high uint64) *Field {
	return List(to, name, preset, doc, Kind[uint64]{
		Unit: "bytes", Format: Size,
		Parse: func(s string) (uint64, error) {
			digits, unit := s, uint64(1)
			if n := len(s) - 1; n > 0 && units[s[n]] != 0 {
				digits, unit = s[:n], units[s[n]]
			}
			n, err := strconv.ParseUint(digits, 10, 64)
			if err != nil || n > high/unit {
				return 0, fmt.Errorf("want numbers of bytes up to %d, such as 512, 4K, 96M or 2G", high)
			}
			return n * unit, nil
		},
	})
}

// Size prints a number of bytes as Sizes reads it, in the largest unit that divides
// it.
func Size(n uint64) string {
	for _, unit := range []byte("GMK") {
		if n > 0 && n%units[unit] == 0 {
			return strconv.FormatUint(n/units[unit], 10) + string(unit)
		}
	}
	return strconv.FormatUint(n, 10)
}
