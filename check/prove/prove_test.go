// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

var (
	long = flag.Bool("long", false, "every protocol, architecture and fetch model")
	both = flag.Bool("both", false, "ask both solvers about what each architecture's kernel does")
)

// setup is a protocol with a mutation on an instruction set; nil where it has none such.
func setup(t *testing.T, arch, protocol, mutation string) *explore.Setup {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	s := &explore.Setup{Arch: a, Protocol: poke.Named(protocol, a.Traits()), Sites: 1, Roles: []cpus.Role{0, 0}}
	if mutation == "" {
		return s
	}
	shape, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if s.Mutation, err = s.Protocol.Mutation(mutation, shape); err != nil {
		return nil
	}
	return s
}

func closed(t *testing.T, s *explore.Setup) *Proof {
	t.Helper()
	p, err := Close(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestShippedProtocols: every protocol is proved on every architecture with every fetch
// model and kind of references but those that cannot work there, and every update of a proved one has a way to its
// end. x86_64 replaces no five
// bytes at once across a border of quadwords, however it fetches, and nobody but riscv64's firmware answers
// rounds inside stop_machine.
func TestShippedProtocols(t *testing.T) {
	proved := 0 // with weak fetches and references of each CPU
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, fetch := range cpus.Fetches() {
				for _, refs := range []int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef} {
					asUsual := fetch == cpus.Weak && refs == int3.PerCPU
					if !*long && !asUsual && (fetch != cpus.Weak && fetch != cpus.Atomic || protocol == "breakpoint-lazy" ||
						fetch == cpus.Atomic && protocol != "word") {
						continue
					}
					s := setup(t, arch, protocol, "")
					s.Fetch, s.Refs = fetch, refs
					if refs != int3.PerCPU && (!s.Protocol.Traps || fetch != cpus.Weak && !*long) {
						continue
					}
					var want string
					switch {
					case protocol == "fence-per-write" && arch != "riscv64":
						want = "deadlock"
					case protocol == "word" && arch == "x86_64":
						want = "torn-fetch; use-after-free"
					}
					p := closed(t, s)
					if got := properties(p); got != want {
						t.Errorf("%s %s, fetch %s, refs %s: %q, want %q", arch, protocol, fetch, refs, got, want)
					}
					if p.Stuck != "" {
						t.Errorf("%s %s, fetch %s, refs %s: may stay at %s", arch, protocol, fetch, refs, p.Stuck)
					}
					if asUsual && p.Closed() {
						proved++
					}
				}
			}
		}
	}
	if proved != 21 {
		t.Errorf("%d of 24 are proved, want 21", proved)
	}
}

// properties are what breaks, in the order of the alphabet.
func properties(p *Proof) string {
	if p.Condition != "" {
		before, _, _ := strings.Cut(p.Condition, ":")
		return before
	}
	var list []string
	for _, b := range p.Broken {
		list = append(list, string(b.Property))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// broken by each mutation of x86_64's protocol, of arm64's and of riscv64's: what the
// explorer finds too. "" is a mutation that breaks nothing, however many there are.
var breaks = map[string]map[string]string{
	"x86_64": {
		"drop-sync-1": "torn-fetch", "drop-sync-2": "torn-fetch", "drop-sync-3": "unhandled-breakpoint",
		"drop-sync-3-no-recheck": "unhandled-breakpoint", "no-breakpoint": "torn-fetch",
		"late-publish": "unhandled-breakpoint", "unsorted-batch": "", "overfull-batch": "overflow",
		"shifted-batch": "wrong-instruction",
		"early-release": "unhandled-breakpoint", "no-grace-period": "use-after-free",
	},
	"arm64": {
		"no-fence": "", "misaligned-literal": "torn-literal", "no-grace-period": "use-after-free",
	},
	"riscv64": {
		"drop-sync-1": "", "drop-sync-2": "stale-after-completion", "no-fence": "lost-call; stale-after-completion",
		"misaligned-literal": "torn-literal", "no-grace-period": "use-after-free",
	},
}

// TestMutations: every defect breaks the property that it should, and no other.
func TestMutations(t *testing.T) {
	for arch, wants := range breaks {
		a, _ := cpus.ParseArch(arch)
		shape, _ := setup(t, arch, poke.Native, "").Shape()
		for _, m := range poke.Named(poke.Native, a.Traits()).Mutations(shape) {
			want, ok := wants[m.Name]
			if !ok {
				t.Errorf("%s: nothing is known of %s", arch, m.Name)
				continue
			}
			if got := properties(closed(t, setup(t, arch, poke.Native, m.Name))); got != want {
				t.Errorf("%s %s: %q, want %q", arch, m.Name, got, want)
			}
		}
	}
}
