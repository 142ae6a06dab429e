// SPDX-License-Identifier: Apache-2.0

package experiments

// lacks are the mechanisms that are known to be missing. trial.Pairs holds them against what comes out, both ways:
// a figure that lies inside may not stand here.
var lacks = []Lack{
	{"names are resolved first, of which nothing is counted: all of them are looked up in the kernel's symbols and " +
		"sorted with their cookies", []string{
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine vm-2",
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine jump-label-24",
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine e5-2699",
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine gold-6248",
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine kvm-80",
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine e7-8890",
		"kprobe_multi 2022, attach of 48712: counts of x86_64-6.12, machine refcount-480",
		"kprobe_multi modules 2023, attach of 26620: counts of x86_64-6.12, machine vm-2",
		"kprobe_multi modules 2023, attach of 26620: counts of x86_64-6.12, machine refcount-480",
	}},
	{"the load: jump-label-24 compiles a kernel and takes 337 us for a round, and the machine that was measured is not " +
		"said to have done anything else", []string{
		"kprobe_multi 2022, detach of 48712: counts of x86_64-6.12, machine jump-label-24",
		"kprobe_multi modules 2023, attach of 26620: counts of x86_64-6.12, machine jump-label-24",
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine jump-label-24",
		"single direct ops proof of concept, attach of 20000: counts of x86_64-7.2, machine jump-label-24",
	}},
	{"the parts of a wait for all tasks, which is one time here: two RCU grace periods, and looks at tasks 100 ms apart " +
		"only while one of them holds it up (kernel/rcu/tasks.h)", []string{
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine vm-2",
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine e5-2699",
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine gold-6248",
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine kvm-80",
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine e7-8890",
		"kprobe_multi modules 2023, detach of 26620: counts of x86_64-6.12, machine refcount-480",
	}},
	{"what else stands in the counter's line and is read by each handler (vec and nr_entries), and what a line takes to " +
		"get from CPU to CPU while hundreds wait for it: even with every quantity at its long end the model is short",
		[]string{
			"shared counter, 164 entries, 480 CPUs, 0.1 % out of turn, us",
		}},
	{"why breakpoints in a batch are there for a shorter time: here they stay for two rounds either way, and in a batch " +
		"for the stores of all its entries on top; the series does not say over what it counted", []string{
		"breakpoints run into, batched over one by one, jump-label-24 (prediction)",
	}},
	{"what differs between the two cases (the machine, the kernel, how names are looked up) is in no figure", []string{
		"kprobe_multi 2022, attach of 48712: time in proportion to functions",
		"kprobe_multi 2022, detach of 48712: time in proportion to functions",
		"kprobe_multi modules 2023, attach of 26620: time in proportion to functions",
		"kprobe_multi modules 2023, detach of 26620: time in proportion to functions",
	}},
}

// missing is the mechanism by figure.
var missing = func() map[string]string {
	out := map[string]string{}
	for _, l := range lacks {
		for _, figure := range l.Figures {
			out[figure] = l.Mechanism
		}
	}
	return out
}()

// Listed are the figures of which a mechanism is known to be missing.
func Listed() (out []string) {
	for what := range missing {
		out = append(out, what)
	}
	return out
}
