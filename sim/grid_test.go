package sim

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// arches is all architectures.
func arches(t *testing.T) (out []isa.Arch) {
	for _, name := range cpus.ArchNames() {
		a, err := cpus.ParseArch(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// TestPoints: as many combinations are foretold as there are, and each is
// another.
func TestPoints(t *testing.T) {
	filter := func(text string) records.Filter {
		f, err := records.ParseFilter([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var plans []*poke.Protocol
	for _, p := range poke.ShippedPlans()[:3] {
		protocol, err := poke.ParseProtocol(p.Name, p.Text)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, protocol)
	}
	roles := func(n int) []cpus.Role { return make([]cpus.Role, n) }
	rapid.Check(t, func(rt *rapid.T) {
		some := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		g := &Grid{
			Records:   []string{"gen:n=5", "gen:n=7"}[:some("records", 1, 2)],
			Arches:    arches(t)[:some("arches", 1, 3)],
			AnyArch:   rapid.Bool().Draw(rt, "any"),
			Protocols: []string{poke.Native, "stop-machine"}[:some("protocols", 1, 2)],
			Plans:     plans[:some("plans", 0, 3)],
			Buffers:   []sched.Buffer{{Slots: 2}, sched.Dynamic}[:some("buffers", 1, 2)],
			Orders:    []sched.Ordering{sched.Table, sched.Shuffled}[:some("orders", 1, 2)],
			Lookups:   []int3.Kind{int3.BTree, int3.Hash}[:some("lookups", 1, 2)],
			Fetches:   []cpus.Fetch{cpus.Weak, cpus.Atomic}[:some("fetches", 1, 2)],
			Machines:  [][]cpus.Role{roles(1), roles(2), roles(3)}[:some("machines", 1, 3)],
			Filters:   []records.Filter{filter("fn*"), filter("fn1")}[:some("filters", 0, 2)],
			Seeds:     []uint64{1, 2, 3}[:some("seeds", 0, 3)],
		}
		configs, _, err := g.Combinations(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if len(configs) != g.Points() {
			rt.Errorf("%d combinations, %d were foretold", len(configs), g.Points())
		}
		seen := map[string]bool{}
		for i := range configs {
			key := configs[i].String() + configs[i].Flags() + configs[i].Filter.String()
			if seen[key] {
				rt.Errorf("twice: %s", key)
			}
			seen[key] = true
		}
	})
}

// TestPointsOfBuiltins: tables that are of one architecture are not multiplied by
// the others, unless they were asked for, which is an error later.
func TestPointsOfBuiltins(t *testing.T) {
	g := &Grid{Arches: arches(t), AnyArch: true, Protocols: []string{poke.Native}}
	for _, b := range records.Builtins() {
		g.Records = append(g.Records, b.Name)
	}
	configs, _, err := g.Combinations(t.Context())
	if err != nil || len(configs) != len(g.Records) || g.Points() != len(configs) {
		t.Errorf("%d combinations of %d tables, %d were foretold: %v", len(configs), len(g.Records), g.Points(), err)
	}
}

// TestPointsOverflow: what nobody could count is still too many.
func TestPointsOverflow(t *testing.T) {
	many := 1 << 16
	g := &Grid{
		Arches: arches(t)[:1], Protocols: make([]string, many), Mutations: make([]string, many),
		Filters: make([]records.Filter, many), Seeds: make([]uint64, many),
	}
	if got := g.Points(); got != math.MaxInt {
		t.Errorf("2^64 points are %d", got)
	}
}
