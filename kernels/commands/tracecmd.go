// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// traceCmdOptions are those of trace-cmd record (tracecmd/trace-record.c, parse_record_options).
const traceCmdOptions = "a e/event= f/filter= F/fork A= p= c C= d D G o= O= s= r= V= v g= l= n= P= N= t b= B= R= k K S T m= " +
	"M= H= q i /date /func-stack /nosplice /nofifos /profile /stderr /by-comm /ts-offset= /max-graph-depth= /cmdlines-size= " +
	"/no-filter /debug /notimeout /quiet /proc-map /user= /module= /tsync-interval= /tsc2nsec /poll /name= /verbose " +
	"/compression= /file-version= /proxy= /temp= /subbuf-size= /daemonize"

// traced is what trace-cmd does in one instance; spared are the filters of -n.
type traced struct {
	instance, tracer string
	filter, spared   []string
	events           bool
}

func (c *course) traceCmd(words []string) error {
	verb, keep := strings.Join(words[:min(1, len(words))], ""), false
	if verbs := []string{"record", "start", "stream"}; !slices.Contains(verbs, verb) {
		return spelling.NotOneOf(verb, verbs)
	}
	all := []*traced{{}}
	_, err := options(traceCmdOptions, words[1:], func(name, value string) {
		in := all[len(all)-1]
		switch name {
		case "a", "event":
			c.events("tracepoint", cmp.Or(value, "all"))
			in.events = true
		case "p":
			in.tracer = strings.TrimSpace(value)
		case "l":
			in.filter = append(in.filter, value)
		case "n":
			in.spared = append(in.spared, "!"+value)
		case "B":
			all = append(all, &traced{instance: value})
		case "k", "K":
			keep = true
		case "fork", "P", "c", "R", "A", "v", "profile", "proxy", "module": // filters of processes hook tracepoints
			c.unknown("option %s %s", name, value)
		}
	})
	for _, in := range all {
		if in.tracer != "" || in.events { // the file is emptied by opening it, and again by writing a blank
			pids := ledger.Step{Action: "set_ftrace_pid", On: true}
			c.End = append(c.End, pids, pids)
		}
	}
	for _, in := range all {
		c.traceCmdTracer(in)
	}
	if keep || verb == "start" {
		c.End = nil
	}
	return err
}

// traceCmdTracer is the tracer of an instance. At the end trace-cmd empties the filters first, while the tracer is on,
// which then traces every function for a moment (finalize_record_trace: clear_func_filters before set_plugin).
func (c *course) traceCmdTracer(in *traced) {
	before, filter := len(c.End), strings.Join(slices.Concat(in.filter, in.spared), " ")
	c.tracer(in.tracer, in.instance, filter)
	if len(c.End) == before || filter == "" {
		return
	}
	off := c.End[before]
	c.End = c.End[:before]
	if spared := strings.Join(in.spared, " "); len(in.filter) > 0 && spared != "" {
		c.End = append(c.End, ledger.Step{Action: "filter-change:" + filter + ">" + spared, On: true})
		filter = spared
	}
	c.End = append(c.End, ledger.Step{Action: "setfilter:" + filter}, off)
}

// tracer is a tracer of functions, of the top instance or of another one, and its filter.
func (c *course) tracer(name, instance, filter string) {
	action := map[string]string{"function": "function-tracer", "function_graph": "function-graph"}[name]
	switch {
	case name == "" || name == "nop":
		return
	case action == "" || instance != "" && name != "function":
		c.unknown("tracer %s", strings.TrimSpace(name+" "+instance))
		return
	case strings.Contains(strings.ReplaceAll(filter, ":mod:", ""), ":"):
		c.unknown("filter %s: a command", filter)
		return
	case instance != "":
		action = "instance"
	}
	if filter != "" {
		action += ":" + filter
	}
	c.both(action)
}
