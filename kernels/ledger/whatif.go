// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
)

// change is a mechanism that a kernel could have in place of its own. It tells the kernel's
// interrupts before the mechanism is written.
type change struct {
	name    string
	of      string         // mechanism without which there is nothing to change
	values  map[string]int // mechanisms as the rules ask for them
	numbers string         // mechanism that a number in place of the value sets; "" where there is none
	value   string         // that stands for the values
	doc     string
}

// changes are all of them. The rule that one changes asks for its mechanism.
var changes = []change{
	{"vector", image.BatchSlots, map[string]int{image.BatchSlots: image.Unlimited, image.BatchSorted: 1}, image.BatchSlots,
		"dynamic", "the vector of patches grows, and is sorted; a number: so many slots"},
	{"static-calls", image.CallRounds, map[string]int{image.CallBatched: 1}, "",
		"batched", "the sites of a static call, or of a module, go into batches"},
	{"detach", image.DirectCuts, map[string]int{image.SkipBatched: 1}, "",
		"batched", "programs that go are patched out of all BPF trampolines in batches"},
	{"uprobes", image.UprobeCalls, map[string]int{image.UprobeBatched: 1}, "",
		"batched", "all probed sites of a process become calls at the first hit of one"},
}

// WhatIfHelp says what [Kernel.WhatIf] reads.
func WhatIfHelp() string {
	var said []string
	for _, c := range changes {
		value := c.value
		if c.numbers != "" {
			value += "|N"
		}
		said = append(said, fmt.Sprintf("%s=%s (%s)", c.name, value, c.doc))
	}
	return strings.Join(said, ", ")
}

// WhatIf is the kernel with other mechanisms: NAME=VALUE each, see [WhatIfHelp].
func (k *Kernel) WhatIf(other []string) (*Kernel, error) {
	if len(other) == 0 {
		return k, nil
	}
	if k.Facts == nil {
		return nil, fmt.Errorf("kernel %s: only what its ledgers tell is known, no image", k.Name())
	}
	facts := *k.Facts
	facts.Mechanisms, facts.Unknown = maps.Clone(facts.Mechanisms), maps.Clone(facts.Unknown)
	for _, asked := range other {
		values, err := k.changed(asked)
		if err != nil {
			return nil, fmt.Errorf("what if %q: %w", asked, err)
		}
		for name, value := range values {
			facts.Mechanisms[name] = image.Mechanism{Name: name, Value: value, Evidence: "what if " + asked}
			delete(facts.Unknown, name)
		}
	}
	changed := *k
	changed.Facts = &facts
	return &changed, nil
}

// changed is the mechanisms that NAME=VALUE stands for.
func (k *Kernel) changed(asked string) (map[string]int, error) {
	name, value, _ := strings.Cut(asked, "=")
	names := spelling.Each(changes, func(c change) string { return c.name })
	i := slices.Index(names, name)
	if i < 0 {
		return nil, spelling.NotOneOf(name, names)
	}
	c := changes[i]
	n, err := strconv.Atoi(value)
	switch {
	case k.Facts.value(c.of) == 0:
		return nil, fmt.Errorf("kernel %s has nothing of the kind: %s", k.Name(), k.Facts.Mechanisms[c.of].Evidence)
	case value == c.value:
		return c.values, nil
	case c.numbers != "" && err == nil && n > 0 && n < image.Unlimited:
		return map[string]int{c.numbers: n}, nil
	}
	return nil, fmt.Errorf("want %s", WhatIfHelp())
}
