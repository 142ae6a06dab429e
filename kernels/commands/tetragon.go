// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// policy is what a TracingPolicy switches (pkg/k8s/apis/cilium.io/v1alpha1/types.go).
type policy struct {
	Kind string
	Spec struct {
		KProbes []struct {
			Call    string
			Syscall *bool // true unless it is said
			Return  bool
		}
		Tracepoints []struct {
			Subsystem, Event string
			Raw              bool
		}
		LSMHooks       []struct{ Hook string }
		UProbes, USDTs []any
		Options        []struct{ Name, Value string }
	}
}

// tetragon reads policies, with "---" between them.
func (c *course) tetragon(text string) error {
	d := yaml.NewDecoder(strings.NewReader(text))
	for n := 0; ; n++ {
		var p policy
		err := d.Decode(&p)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("it has no policy")
		case err != nil:
			return err
		case !strings.HasPrefix(p.Kind, "TracingPolicy"):
			return fmt.Errorf("kind %q: want TracingPolicy or TracingPolicyNamespaced", p.Kind)
		}
		c.policy(&p)
	}
}

// policy is one of them. All its kprobes are one link of BPF, those on returns another, unless an option says that each is
// a probe by itself.
func (c *course) policy(p *policy) {
	var links [2][]string
	for _, k := range p.Spec.KProbes {
		call := k.Call
		if k.Syscall == nil || *k.Syscall {
			call = c.syscall(call)
		}
		if strings.HasPrefix(k.Call, "list:") || c.Table != nil && len(c.functions(call)) == 0 {
			c.unknown("kprobe %s", k.Call)
			continue
		}
		links[0] = append(links[0], call)
		if k.Return {
			links[1] = append(links[1], call)
		}
	}
	alone := false
	for _, o := range p.Spec.Options {
		alone = alone || o.Name == "disable-kprobe-multi" && (o.Value == "1" || o.Value == "true")
	}
	for _, link := range links {
		if !alone && len(link) > 0 {
			c.both("kprobe-multi:" + strings.Join(link, " "))
			continue
		}
		for _, call := range link {
			c.both("perf-kprobe:" + call)
		}
	}
	for _, t := range p.Spec.Tracepoints {
		if t.Raw {
			c.both("raw-tracepoint:" + t.Event)
		} else {
			c.events("perf-event", t.Subsystem+":"+t.Event)
		}
	}
	for _, l := range p.Spec.LSMHooks { // its program may change the hook's result: a trampoline as at an exit
		c.both("fexit:bpf_lsm_" + l.Hook)
	}
	if n := len(p.Spec.UProbes) + len(p.Spec.USDTs); n > 0 {
		c.unknown("%d probes in programs", n)
	}
}

// syscall is the function of a system call, which has the architecture's prefix (pkg/arch/arch.go).
func (c *course) syscall(name string) string {
	for _, prefix := range []string{"__x64_", "__arm64_", "__riscv_"} {
		if c.Table != nil && len(c.functions(prefix+name)) > 0 {
			return prefix + name
		}
	}
	return name
}
