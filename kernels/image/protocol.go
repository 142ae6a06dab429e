// SPDX-License-Identifier: Apache-2.0

package image

import "strings"

// Protocol is how the kernel changes records, as package poke calls it; "" where that is
// not understood.
func (k *Kernel) Protocol() string {
	found, _ := k.Mechanisms()
	of := map[string]int{}
	for _, m := range found {
		of[m.Name] = m.Value
	}
	if _, known := of[UpdateRounds]; !known {
		return ""
	}
	return ProtocolOf(func(name string) int { return of[name] })
}

// ProtocolOf is the protocol that the values of mechanisms make.
func ProtocolOf(value func(mechanism string) int) string {
	switch {
	case value(UpdateStops) > 0:
		return "stop-machine"
	case value(UpdateRounds) > 0:
		return "breakpoint-global"
	case value(BatchRounds) > 0:
		return "breakpoint"
	}
	return "native"
}

// Direct tells whether functions can be attached to directly, without the common entry
// (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS).
func (k *Kernel) Direct() bool { return k.Has("register_ftrace_direct") }

// ConfigValue is what a configuration says of an option, "" where it is not set.
func ConfigValue(config, option string) string {
	for line := range strings.Lines(config) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), option+"="); ok {
			return v
		}
	}
	return ""
}
