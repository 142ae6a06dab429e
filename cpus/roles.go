// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"strconv"
	"strings"
)

// Role says how a CPU spends its time between interrupts.
type Role uint8

// The roles.
const (
	Busy     Role = iota // executes traced code all the time
	Idle                 // sleeps; an interrupt wakes it for a few calls
	Isolated             // runs in user space; an interrupt takes it into the kernel for a few calls
	IrqsOff              // executes traced code, half of it with interrupts masked
	Offline              // takes no part until it is plugged in
)

var roleNames = []string{"busy", "idle", "isolated", "irqsoff", "offline"}

// Valid tells whether it is one of the roles.
func (r Role) Valid() bool { return int(r) < len(roleNames) }

func (r Role) String() string { return roleNames[r] }

// sleeps tells whether the CPU only runs kernel code when interrupted.
func (r Role) sleeps() bool { return r == Idle || r == Isolated }

// MaxCPUs bounds a machine: what Linux's x86_64 allows (NR_CPUS_RANGE_END,
// arch/x86/Kconfig).
const MaxCPUs = 8192

// RoleError says what is wrong with a list of roles.
type RoleError struct {
	Spec, Part, Reason string
}

func (e *RoleError) Error() string {
	return fmt.Sprintf("cpus %q: %q: %s", e.Spec, e.Part, e.Reason)
}

// ParseRoles reads "8" (so many busy CPUs) or "busy=4,idle=2,isolated=1": the
// CPUs are numbered in the order given.
func ParseRoles(spec string) ([]Role, error) {
	if n, err := strconv.Atoi(spec); err == nil {
		if n == 0 {
			return nil, &RoleError{spec, spec, fmt.Sprintf("want 1 to %d", MaxCPUs)}
		}
		spec = fmt.Sprintf("%s=%d", Busy, n)
	}
	var roles []Role
	for part := range strings.SplitSeq(spec, ",") {
		name, number, ok := strings.Cut(part, "=")
		if !ok {
			return nil, &RoleError{spec, part, "want a number of CPUs or ROLE=NUMBER"}
		}
		role, err := parseRole(name)
		if err != nil {
			return nil, &RoleError{spec, part, err.Error()}
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, &RoleError{spec, part, "the number of CPUs must be a whole number, 0 or more"}
		}
		if n > MaxCPUs-len(roles) {
			return nil, &RoleError{spec, part, fmt.Sprintf("more than %d CPUs", MaxCPUs)}
		}
		for range n {
			roles = append(roles, role)
		}
	}
	if Housekeeper(roles) < 0 {
		return nil, &RoleError{spec, spec, "at least one CPU must be busy, idle or irqsoff, for the patcher to run on"}
	}
	return roles, nil
}

func parseRole(name string) (Role, error) {
	for i, n := range roleNames {
		if n == name {
			return Role(i), nil
		}
	}
	return 0, fmt.Errorf("no role %q; there are %s", name, strings.Join(roleNames, ", "))
}

// Housekeeper is the first CPU that a patcher may run on: not an isolated one,
// and online. -1 if there is none.
func Housekeeper(roles []Role) int {
	for cpu, r := range roles {
		if r.RunsPatcher() {
			return cpu
		}
	}
	return -1
}

// RunsPatcher tells whether patchers may run on such a CPU.
func (r Role) RunsPatcher() bool { return r != Isolated && r != Offline }

// FormatRoles is the short form of a list of roles: "8" or "busy=6,isolated=2".
func FormatRoles(roles []Role) string {
	var parts []string
	for i := 0; i < len(roles); {
		j := i
		for j < len(roles) && roles[j] == roles[i] {
			j++
		}
		parts = append(parts, fmt.Sprintf("%s=%d", roles[i], j-i))
		i = j
	}
	if len(parts) == 1 && roles[0] == Busy {
		return strconv.Itoa(len(roles))
	}
	return strings.Join(parts, ",")
}
