// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
)

// mostCPUs bounds a machine: they share one thread of the emulator.
const mostCPUs = 64

// ParseCPUs reads the CPUs of a machine: a number of CPUs that sleep, or a list
// of roles. CPU 0 switches; it is no receiver.
func ParseCPUs(spec string) ([]cpus.Role, error) {
	if n, err := strconv.Atoi(spec); err == nil {
		spec = fmt.Sprintf("%s=%d", cpus.Idle, n)
	}
	roles, err := cpus.ParseRoles(spec)
	if err != nil {
		return nil, err
	}
	if len(roles) < 2 || len(roles) > mostCPUs {
		return nil, &cpus.RoleError{Spec: spec, Part: spec,
			Reason: fmt.Sprintf("want 2 to %d CPUs: one switches, the others receive",
				mostCPUs)}
	}
	for i, r := range roles {
		switch {
		case r != cpus.Idle && r != cpus.Busy && r != cpus.Isolated:
			return nil, &cpus.RoleError{Spec: spec, Part: r.String(),
				Reason: "a virtual machine's CPUs are idle, busy or isolated"}
		case i == 0 && r == cpus.Isolated:
			return nil, &cpus.RoleError{Spec: spec, Part: r.String(), Reason: "CPU 0 switches, and cannot be isolated"}
		}
	}
	return roles, nil
}

// commandLine is the kernel's command line. It isolates the isolated CPUs as
// Documentation/admin-guide/kernel-parameters.txt says.
func commandLine(e *emulator, roles []cpus.Role) string {
	line := append([]string{"quiet", "loglevel=1", "oops=panic", "panic=-1", "nokaslr"}, e.Line...)
	if list := withRole(roles, cpus.Isolated); len(list) > 0 {
		cpus := strings.Join(list, ",")
		line = append(line, "isolcpus=managed_irq,domain,"+cpus, "nohz_full="+cpus, "rcu_nocbs="+cpus)
	}
	return strings.Join(line, " ")
}

// withRole are the CPUs of a role, without the one that switches.
func withRole(roles []cpus.Role, role cpus.Role) (list []string) {
	for cpu, r := range roles {
		if cpu > 0 && r == role {
			list = append(list, strconv.Itoa(cpu))
		}
	}
	return list
}
