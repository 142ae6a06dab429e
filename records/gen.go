// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Geometry of generated tables, in bytes.
const (
	// minSpacing keeps neighbours apart on every architecture: from the
	// literal 12 bytes before a record to the last byte of its call 4 behind
	// it, a site takes 16 bytes at most on arm64 and riscv64.
	minSpacing = 16

	// firstRecord is where the first record lies behind the start of the core
	// kernel or a module. It leaves room for a literal, and its remainder
	// modulo 8 is what arm64 and riscv64 expect: functions lie on multiples
	// of 8, records 4 behind them.
	firstRecord = 20

	misalignedBy   = 4
	moduleAreaGrid = 2 << 20  // modules start behind the core kernel, on a multiple of this
	moduleGap      = 16 << 10 // at least so far apart, on pages of their own
	moduleSize     = 200      // records of a module, about
)

// random is a splitmix64 generator: a few lines that give the same numbers with
// every Go version (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below draws from [0, n).
func (r *random) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// segment is a part of a generated table: a group of the core kernel, or a
// module. Segments are generated in the order of their addresses.
type segment struct {
	len    int
	dest   int // record that it starts with in the table
	module bool
}

// generate makes the table that a gen: source describes.
func generate(ctx context.Context, file, spec string) (*Table, error) {
	s, err := parseGen(file, spec)
	if err != nil {
		return nil, err
	}
	rnd := random(s.seed)
	segs, places := s.segments(&rnd)
	g := generator{ctx: ctx, file: file, spec: s, rnd: &rnd, addrs: make([]Addr, s.n)}
	if err := g.sites(segs); err != nil {
		return nil, err
	}
	t := &Table{name: file, addrs: g.addrs, symbols: indexSymbols{}}
	mods := &rangeModules{addrs: g.addrs, starts: g.starts, names: []string{""}}
	for k := range g.starts {
		mods.names = append(mods.names, "mod"+strconv.Itoa(k))
	}
	t.modules = mods
	switch s.order {
	case orderRandom:
		for i := len(t.addrs) - 1; i > 0; i-- {
			j := rnd.below(uint64(i + 1))
			t.addrs[i], t.addrs[j] = t.addrs[j], t.addrs[i]
		}
		t.groups = descentGroups(t.addrs)
	case orderDescending:
		slices.Reverse(t.addrs)
		t.groups = descentGroups(t.addrs)
	default:
		t.groups = places
	}
	if n := uint64(len(s.lengths)); n > 0 {
		t.lengths = make([]uint8, len(t.addrs))
		for i := range t.lengths {
			t.lengths[i] = s.lengths[rnd.below(n)]
		}
	}
	return t, nil
}

// segments cuts the records into the core kernel's groups and the modules, and
// decides where in the table each goes: the core kernel first, then the modules,
// each part shuffled unless the order is sorted. It also returns the groups in
// table order.
func (s genSpec) segments(rnd *random) ([]segment, []Group) {
	inModules := s.moduleRecords()
	core := s.n - inModules
	var segs []segment
	for k := range s.groups {
		if size := part(core, s.groups, k); size > 0 {
			segs = append(segs, segment{len: size})
		}
	}
	nCore := len(segs)
	mods := min(inModules, max(3, inModules/moduleSize))
	for k := range mods {
		segs = append(segs, segment{len: part(inModules, mods, k), module: true})
	}
	order := spelling.Numbers(len(segs))
	if s.order == orderGrouped {
		shuffle(rnd, order[:nCore])
		shuffle(rnd, order[nCore:])
	}
	groups := make([]Group, 0, len(segs))
	next := 0
	for _, i := range order {
		segs[i].dest = next
		next += segs[i].len
		groups = append(groups, Group{segs[i].dest, next})
	}
	return segs, groups
}

// part is the size of part k when n is cut into parts of equal size, give or
// take one.
func part(n, parts, k int) int { return n*(k+1)/parts - n*k/parts }

// shuffle permutes two or more numbers so that they do not stay in order.
func shuffle(rnd *random, order []int) {
	for i := len(order) - 1; i > 0; i-- {
		j := int(rnd.below(uint64(i + 1)))
		order[i], order[j] = order[j], order[i]
	}
	if n := len(order); n > 1 && slices.IsSorted(order) {
		order[0], order[n-1] = order[n-1], order[0]
	}
}

// generator places sites one after the other.
type generator struct {
	ctx    context.Context
	file   string
	spec   genSpec
	rnd    *random
	addrs  []Addr
	starts []Addr // of the modules
}

// sites fills in the addresses, segment by segment in ascending order.
func (g *generator) sites(segs []segment) error {
	next := g.spec.base + firstRecord
	jitter := (g.spec.spacing-minSpacing)/8*2 + 1 // steps of 8 around the mean
	left := uint64(g.spec.n)
	misaligned := uint64(math.Round(g.spec.misaligned * float64(g.spec.n)))
	for _, seg := range segs {
		if seg.module {
			next = g.moduleStart(next)
		}
		for i := range seg.len {
			if left%(1<<20) == 0 && g.ctx.Err() != nil {
				return fmt.Errorf("generate %s: %w", g.file, g.ctx.Err())
			}
			at, step := next, minSpacing+8*g.rnd.below(jitter)
			// Selection sampling (Knuth, TAOCP 2, 3.4.2, algorithm S): exactly
			// as many as asked for, each record equally likely.
			if misaligned > 0 && g.rnd.below(left) < misaligned {
				misaligned--
				at += misalignedBy
				step = max(step, minSpacing+8) // or it would reach into the next one's literal
			}
			left--
			g.addrs[seg.dest+i] = Addr(at)
			if next+step < next {
				return &ParseError{File: g.file, Value: fmt.Sprintf("n=%d, spacing=%d", g.spec.n, g.spec.spacing),
					Reason: fmt.Sprintf("does not fit between base=%#x and the end of memory; take a lower base or a smaller spacing",
						g.spec.base)}
			}
			next += step
		}
	}
	return nil
}

// moduleStart starts a module behind address next, and gives its first record.
func (g *generator) moduleStart(next uint64) uint64 {
	grid := uint64(PageBytes)
	if len(g.starts) == 0 {
		grid = moduleAreaGrid
	}
	start := alignUp(next+moduleGap, grid)
	if start < next {
		start = math.MaxUint64 - firstRecord // sites will report it
	}
	g.starts = append(g.starts, Addr(start))
	return start + firstRecord
}

// descentGroups starts a group wherever an address is below its predecessor.
func descentGroups(addrs []Addr) []Group {
	n := 1
	for i := 1; i < len(addrs); i++ {
		if addrs[i] < addrs[i-1] {
			n++
		}
	}
	groups := make([]Group, 0, n)
	first := 0
	for i := 1; i <= len(addrs); i++ {
		if i == len(addrs) || addrs[i] < addrs[i-1] {
			groups = append(groups, Group{first, i})
			first = i
		}
	}
	return groups
}

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
	names := spelling.Each(genKeys, func(k genKey) string { return k.name })
	hint := ""
	if near := spelling.Nearest(key, names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return "unknown; " + hint + "keys are " + strings.Join(names, ", ")
}

// moduleRecords is how many records live in modules.
func (s genSpec) moduleRecords() int { return int(math.Round(s.modules * float64(s.n))) }
