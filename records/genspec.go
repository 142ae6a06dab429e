// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

const genPrefix = "gen:"

// Orders of generated tables.
const (
	orderGrouped    = "grouped"
	orderSorted     = "sorted"
	orderRandom     = "random"
	orderDescending = "descending"
)

var genOrders = []string{orderGrouped, orderSorted, orderRandom, orderDescending}

// genSpec is what a gen: source asks for. The package's documentation lists the
// keys.
type genSpec struct {
	n          int     // records
	groups     int     // of the core kernel
	order      string  // one of genOrders
	spacing    uint64  // mean bytes from one record to the next, a multiple of 8
	modules    float64 // share of the records that live in modules
	misaligned float64 // share of the records 4 bytes behind their place
	seed       uint64
	base       uint64  // where the core kernel starts
	lengths    []uint8 // of sites, each as likely as the others; none: as is usual
}

var genDefaults = genSpec{
	n: 40000, groups: 1, order: orderGrouped, spacing: 64, seed: 1,
	base: 0xffffffff81000000, // _text of x86_64, arch/x86/include/asm/page_64_types.h
}

// genKey is one key of a spec.
type genKey struct {
	name string
	help string // what values it takes
	set  func(s *genSpec, v string) bool
}

var genKeys = []genKey{
	{"n", fmt.Sprintf("a number from 0 to %d", MaxRecords), func(s *genSpec, v string) bool {
		return setInt(&s.n, v, 0, MaxRecords)
	}},
	{"groups", "a number from 1 to n", func(s *genSpec, v string) bool {
		return setInt(&s.groups, v, 1, MaxRecords)
	}},
	{"order", "one of " + strings.Join(genOrders, ", "), func(s *genSpec, v string) bool {
		s.order = v
		return slices.Contains(genOrders, v)
	}},
	{"spacing", "bytes, a multiple of 8 from 16 to 1048576", func(s *genSpec, v string) bool {
		var n int
		ok := setInt(&n, v, minSpacing, 1<<20) && n%8 == 0
		s.spacing = uint64(n)
		return ok
	}},
	{"modules", "a share from 0 to 1", func(s *genSpec, v string) bool { return setShare(&s.modules, v) }},
	{"misaligned", "a share from 0 to 1", func(s *genSpec, v string) bool { return setShare(&s.misaligned, v) }},
	{"seed", "a number below 2^64", func(s *genSpec, v string) (ok bool) {
		n, err := strconv.ParseUint(v, 10, 64)
		s.seed = n
		return err == nil
	}},
	{"lengths", "lengths of sites from 1 to 8 bytes, with + between them, like 5 or 1+2+5",
		func(s *genSpec, v string) bool {
			for item := range strings.SplitSeq(v, "+") {
				if len(item) != 1 || item[0] < '1' || item[0] > '8' {
					return false
				}
				s.lengths = append(s.lengths, item[0]-'0')
			}
			return true
		}},
	{"base", "an address, a multiple of 4096 like 0xffffffff81000000", func(s *genSpec, v string) bool {
		a, reason := parseHex([]byte(v))
		s.base = uint64(a)
		return reason == "" && a%PageBytes == 0
	}},
}

// setInt takes a whole number, also written as 1e6.
func setInt(to *int, v string, low, high int) bool {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f != math.Trunc(f) || f < float64(low) || f > float64(high) || strings.ContainsAny(v, "xXpP_") {
		return false
	}
	*to = int(f)
	return true
}

func setShare(to *float64, v string) bool {
	f, err := strconv.ParseFloat(v, 64)
	*to = f
	return err == nil && f >= 0 && f <= 1
}

// parseGen reads KEY=VALUE,... Every key has a default; none may come twice.
func parseGen(file, spec string) (genSpec, error) {
	s := genDefaults
	fail := func(value, reason string) (genSpec, error) {
		return genSpec{}, &ParseError{File: file, Value: value, Reason: reason}
	}
	given := map[string]bool{}
	if spec == "" {
		return s, nil
	}
	for _, item := range strings.Split(spec, ",") {
		key, value, ok := strings.Cut(item, "=")
		i := slices.IndexFunc(genKeys, func(k genKey) bool { return k.name == key })
		switch {
		case i < 0:
			return fail(quoted("key", key), unknownKey(key))
		case !ok:
			return fail(quoted("key", key), "has no value; expected "+key+"="+genKeys[i].help)
		case given[key]:
			return fail(quoted("key", key), "given twice")
		case !genKeys[i].set(&s, value):
			return fail(quoted(key, value), "not "+genKeys[i].help)
		}
		given[key] = true
	}
	core := s.n - s.moduleRecords()
	switch {
	case given["groups"] && s.order != orderGrouped && s.order != orderSorted:
		return fail("groups="+strconv.Itoa(s.groups),
			"order="+s.order+" makes a group of every ascending run; groups need order=grouped or order=sorted")
	case s.groups > max(core, 1):
		return fail("groups="+strconv.Itoa(s.groups), fmt.Sprintf("more than the %d records of the core kernel", core))
	}
	return s, nil
}

func unknownKey(key string) string {
	names := make([]string, len(genKeys))
	for i, k := range genKeys {
		names[i] = k.name
	}
	hint := ""
	if near := spelling.Nearest(key, names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return "unknown; " + hint + "keys are " + strings.Join(names, ", ")
}

// moduleRecords is how many records live in modules.
func (s genSpec) moduleRecords() int { return int(math.Round(s.modules * float64(s.n))) }
