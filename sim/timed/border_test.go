// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// said is a source of numbers that are written down: the next float of rand.Float64 is each of them.
type said []float64

func (s *said) Uint64() uint64 {
	x := (*s)[0]
	*s = (*s)[1:]
	return uint64(x * (1 << 53))
}

// saying is what draws these floats, one after the other.
func saying(floats ...float64) *rand.Rand { return rand.New((*said)(&floats)) }

// TestDrawnCalls: of a weight of 1 in quarters, the batch has the first, recent stores the second and third, the fourth
// belongs to no CPU; each begins at its border. Who is drawn by an older one of two stores to a site did not call.
func TestDrawnCalls(t *testing.T) {
	c := newCalls(4, 1e6, 0, saying())
	c.weight = []float64{0.25, 0.25, 0.25, 0.25}
	c.publish(0, []int32{0})
	c.remember(10, 1)
	c.remember(20, 2)
	for _, k := range []struct {
		x    float64
		site int32
		ok   bool
	}{
		{0, 0, true}, {0.249, 0, true}, {0.25, 1, true}, {0.49, 1, true}, {0.5, 2, true}, {0.74, 2, true}, {0.75, 0, false},
		{0.99, 0, false},
	} {
		c.rng, c.bound = saying(k.x), 1
		if site, park, ok := c.draw(); site != k.site && k.ok || ok != k.ok || park {
			t.Errorf("%g: site %d, %v, parked %v; want %d, %v", k.x, site, ok, park, k.site, k.ok)
		}
	}
	c.remember(30, 1) // three stores, two of which are to one site
	for x, want := range map[float64]bool{0.3: false, 0.6: true, 0.8: true} {
		c.rng = saying(x)
		if site, _, ok := c.draw(); ok != want {
			t.Errorf("%g: site %d, %v, want %v", x, site, ok, want)
		}
	}
	c.cool(40, 10) // the first one is forgotten: the others move up
	for x, want := range map[float64]int32{0.25: 2, 0.49: 2, 0.5: 1, 0.74: 1} {
		c.rng = saying(x)
		if site, _, ok := c.draw(); site != want || !ok {
			t.Errorf("%g behind a store that is forgotten: site %d, %v, want %d", x, site, ok, want)
		}
	}
	c.publish(50, []int32{0, 2}) // a site of the batch is drawn there alone
	c.rng = saying(0.5)
	if site, _, ok := c.draw(); ok {
		t.Errorf("site %d is drawn as a recent one, and is published", site)
	}
}

// TestDrawnParks: a share of the calls that begin is preempted, and of all others as many; a hot site is drawn once.
func TestDrawnParks(t *testing.T) {
	c := newCalls(2, 1e6, 0, saying())
	c.weight = []float64{0.5, 0.5}
	c.publish(0, []int32{0})
	c.parks = 0.25
	for _, k := range []struct {
		floats         []float64
		site           int32
		park, ok, name bool
	}{
		{[]float64{0.125, 0.2499}, 0, true, true, true}, {[]float64{0.125, 0.25}, 0, false, true, true}, // of the batch
		{[]float64{0.5, 0.75}, 1, true, true, true}, {[]float64{0.5, 0.25}, 0, true, false, true}, // any site, unless it is hot
		{[]float64{0.75}, 0, false, false, false}, {[]float64{0.9}, 0, false, false, false},
	} {
		c.rng, c.bound = saying(k.floats...), 1
		site, park, ok := c.draw()
		if ok != k.ok || k.name && (site != k.site || park != k.park) {
			t.Errorf("%v: site %d, parked %v, %v; want %+v", k.floats, site, park, ok, k)
		}
	}
	c.parks = 0
	if c.rng = saying(0); c.parked() { // without a share nothing is drawn, and nothing parked
		t.Error("parked")
	}
}

// TestHeatAddsUp: whatever becomes hot and cold, the weights of hot and of traced cold sites are the sums of the sites'.
func TestHeatAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCalls(5, 1e6, 1, rand.New(rand.NewPCG(1, 1)))
		c.available = rapid.IntRange(0, 3).Draw(t, "available")
		c.open(0)
		var now Nanos
		var cold, traced float64
		site := func() int32 { return int32(rapid.IntRange(0, 4).Draw(t, "site")) }
		sums := func() (hot, with float64) {
			for i, h := range c.heat {
				if w := c.weight[i]; h.published || h.recent != 0 {
					hot += w
				} else if h.enabled {
					with += w
				}
			}
			return hot, with
		}
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			later := Nanos(rapid.IntRange(0, 5).Draw(t, "later"))
			hot, with := sums()
			cold, traced = cold+float64(later)*float64(c.available)*(1-hot), traced+float64(later)*float64(c.available)*with
			now += later
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				var all []int32
				for range rapid.IntRange(0, 3).Draw(t, "batch") {
					if s := site(); len(all) == 0 || all[len(all)-1] < s {
						all = append(all, s)
					}
				}
				c.publish(now, all)
				if len(c.batch.sites) != len(all) {
					t.Fatalf("batch %v, want %v", c.batch.sites, all)
				}
			case 1:
				s, meets, enabled := site(), rapid.Bool().Draw(t, "meets"), rapid.Bool().Draw(t, "enabled")
				c.stored(now, s, meets, enabled)
				if h := c.heat[s]; h.meets != meets || h.enabled != enabled || !h.hot() {
					t.Fatalf("site %d: %+v", s, h)
				}
			case 2:
				seen := now - Nanos(rapid.IntRange(0, 6).Draw(t, "seen"))
				c.cool(now, seen)
				if n := c.oldest; n < len(c.recent) && c.recent[n].at <= seen && !c.heat[c.recent[n].site].meets {
					t.Fatalf("a store of %d is not forgotten at %d", c.recent[n].at, seen)
				}
			default:
				c.passed(now)
			}
			recent := 0.0
			for i, r := range c.recent {
				if i >= c.oldest {
					recent += c.weight[r.site]
				}
			}
			hot, with = sums()
			if math.Abs(c.hot-hot) > 1e-9 || math.Abs(c.traced-with) > 1e-9 || math.Abs(c.recentWeight()-recent) > 1e-9 {
				t.Fatalf("hot %g, traced %g, recent %g, want %g, %g, %g", c.hot, c.traced, c.recentWeight(), hot, with, recent)
			}
		}
		if c.passed(now); math.Abs(c.coldTime-cold) > 1e-6 || math.Abs(c.coldTrace-traced) > 1e-6 {
			t.Fatalf("cold for %g, traced %g, want %g and %g", c.coldTime, c.coldTrace, cold, traced)
		}
		c.close(now)
		for i := range c.heat {
			if h := c.heat[i]; h.published || h.hot() && !h.meets && c.oldest == len(c.recent) {
				t.Fatalf("site %d is hot when all is over: %+v", i, h)
			}
		}
		was := c.coldTime
		c.passed(now + 10)
		if c.coldTime != was || c.pending != 0 {
			t.Fatalf("%g of cold time after the end, were %g", c.coldTime, was)
		}
	})
}

// TestNextCall: there is none without weight, or beyond half of all time.
func TestNextCall(t *testing.T) {
	c := newCalls(2, 1e9, 0, rand.New(rand.NewPCG(1, 1)))
	c.busy = []int32{0, 1}
	if at, ok := c.after(5, 0); ok || at != 0 {
		t.Errorf("no weight: a call at %d", at)
	}
	if at, ok := c.after(5, 0.5); !ok || at < 5 || c.bound != 0.5 || Nanos(c.next) != at {
		t.Errorf("a call at %d, %v, %+v", at, ok, c.next)
	}
	if _, ok := c.after(math.MaxInt64/2, 1); ok { // the next one comes within less than the clock can tell there
		t.Error("a call at the end of time")
	}
	sum, n := 0.0, 20_000
	for range n {
		c.after(0, 0.25)
		sum += c.next
	}
	if mean := sum / float64(n); math.Abs(mean-2) > 4*2/math.Sqrt(float64(n)) { // two CPUs, 1 a nanosecond each, a quarter of them
		t.Errorf("a call every %g ns, want 2", mean)
	}
}

// TestPoisson: numbers have the law's probabilities, by both ways of drawing them; of a mean of 10 a few are 0.
func TestPoisson(t *testing.T) {
	src := rand.NewPCG(1, 2)
	for _, mean := range []float64{0.5, 9.99, 10, 14, 200} {
		const n = 200_000
		count := map[uint64]float64{}
		for range n {
			count[poisson(mean, src)]++
		}
		for k := range uint64(400) {
			lg, _ := math.Lgamma(float64(k) + 1)
			want := n * math.Exp(float64(k)*math.Log(mean)-mean-lg)
			if got := count[k]; math.Abs(got-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("mean %g: %g times %d of %d, want %.1f", mean, got, k, n, want)
			}
		}
		if zero := n * math.Exp(-mean); zero > 5 && count[0] == 0 {
			t.Errorf("mean %g: never 0, want %.1f times", mean, zero)
		}
	}
	for _, none := range []float64{0, -1} {
		if n := poisson(none, &said{}); n != 0 { // and nothing is drawn for it
			t.Errorf("mean %g: %d", none, n)
		}
	}
}

// TestStill: published entries stay as they are until the next step of the patcher that may change it.
func TestStill(t *testing.T) {
	k := primes()
	m := newRig(t, plain("x86_64", "breakpoint", 4, "2", k)).Machine
	m.now = 1000
	plan := func(op poke.Op) []poke.Step { return []poke.Step{{Op: op, From: 0, To: 4}} }
	for name, c := range map[string]struct {
		p    patcher
		want Nanos
	}{
		"at rest":    {patcher{Patcher: poke.Patcher{Plan: plan(poke.Sync)}}, 1000},
		"at the end": {patcher{running: true}, 1000},
		"answers": {patcher{Patcher: poke.Patcher{Plan: plan(poke.Sync)}, running: true, awaits: forAnswers,
			reached: 5000}, 5101},
		"answers now": {patcher{Patcher: poke.Patcher{Plan: plan(poke.Sync)}, running: true, awaits: forAnswers, reached: 7},
			1101},
		"it is busy": {patcher{Patcher: poke.Patcher{Plan: plan(poke.Sync)}, running: true, awaits: forAnswers, busy: 9000},
			9000},
		"handlers": {patcher{Patcher: poke.Patcher{Plan: plan(poke.WaitHandlers)}, running: true, awaits: forHandlers,
			next: 9000}, 1000},
		"verifies": {patcher{Patcher: poke.Patcher{Plan: plan(poke.Verify), Done: 1}, running: true, next: 2000},
			2000 + 2*31},
		"writes": {patcher{Patcher: poke.Patcher{Plan: plan(poke.Write)}, running: true, next: 2000}, 2000 + 3*401},
		"fences": {patcher{Patcher: poke.Patcher{Plan: plan(poke.Fence)}, running: true, next: 2000}, 2000},
	} {
		m.patch = c.p
		if got := m.still(); got != c.want {
			t.Errorf("%s: until %d, want %d", name, got, c.want)
		}
	}
}

// TestRepeatedTraps: a trap is repeated where the batch and the text are those of the last one, every CPU sees them, it
// is over before they change, and no listener is there.
func TestRepeatedTraps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Machine)
		want   bool
	}{
		"as it was":     {func(*Machine) {}, true},
		"just in time":  {func(m *Machine) { m.patch.reached = 1000 + 300 - 101 + 1 }, true},
		"just too late": {func(m *Machine) { m.patch.reached = 1000 + 300 - 101 }, false},
		"other batch":   {func(m *Machine) { m.batch++ }, false},
		"other text":    {func(m *Machine) { m.text.sites[0].is.Seq++ }, false},
		"just seen":     {func(m *Machine) { m.text.sites[0].at, m.lag = 600, 400 }, true},
		"not yet seen":  {func(m *Machine) { m.text.sites[0].at, m.lag = 600, 401 }, false},
		"listened to":   {func(m *Machine) { m.listener = &cpus.Listener{} }, false},
	} {
		m := newRig(t, plain("x86_64", "breakpoint", 4, "2", primes())).Machine
		m.now = 1000
		m.patch = patcher{Patcher: poke.Patcher{Plan: []poke.Step{{Op: poke.Sync}}}, running: true, awaits: forAnswers,
			reached: 5000}
		m.traps[0] = trap{batch: m.batch, met: m.text.sites[0].is.Seq, takes: 300, comparisons: 4, events: 6}
		c.change(m)
		s := &m.cpus[1]
		if got := m.repeat(1, s, 0); got != c.want || s.active != c.want || s.stolen != map[bool]Nanos{true: 300}[c.want] {
			t.Errorf("%s: repeated %v, active %v, %d ns stolen; want %v", name, got, s.active, s.stolen, c.want)
		}
		if tally := s.tally; c.want && (tally[cpus.Trap] != 1 || tally[cpus.Begun] != 1 || tally[cpus.Untraced] != 1 ||
			m.compared != 4 ||
			m.events != 6 || !m.calls.idle[1]) {
			t.Errorf("%s: %v, %d comparisons, %d events", name, tally, m.compared, m.events)
		}
	}
}

// TestHandling: steps of a handler that has found an entry, and no other.
func TestHandling(t *testing.T) {
	in := map[cpus.Phase]bool{cpus.Trapped: true, cpus.Searching: true, cpus.Leaving: true, cpus.Returning: true}
	for p := cpus.Boundary; p <= cpus.Down; p++ {
		if handling(p) != in[p] {
			t.Errorf("phase %d: %v", p, handling(p))
		}
	}
}

// TestInTheKernel: of two states with exponential stays: never where a CPU does not enter, or does not stay; long after
// it left, the share of its time; and in between what the rates give.
func TestInTheKernel(t *testing.T) {
	k := primes()
	m := newRig(t, plain("x86_64", "breakpoint-lazy", 1, "busy=1,isolated=1", k)).Machine
	for _, c := range []struct {
		entries, stretch float64
		after            Nanos
		want             float64
	}{
		{0, 100, 1e12, 0}, {1e6, 0, 1e12, 0}, {0, 0, 1e12, 0}, {1e6, 1000, 1e12, 0.5}, {1e6, 3000, 1e12, 0.75}, {1e6, 1000, 0,
			0},
		{1e6, 1000, 500, 0.5 * (1 - math.Exp(-1))}, // both rates are 1e-3 a nanosecond
	} {
		m.costs.Entries, m.costs.KernelStretch = c.entries, c.stretch
		if got := m.inKernel(c.after); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %g", c, got)
		}
	}
}
