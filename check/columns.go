// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
)

type verdictColumns = results.Columns[*VerdictRow]

// Columns are the columns of a table of verdicts.
var Columns = slices.Concat(
	verdictColumns{
		{Name: "arch", Doc: "instruction set", Cell: func(r *VerdictRow) any { return r.Model.Code.Traits.Name }},
	},
	verdictColumns{
		{Name: "protocol", Doc: "how text is changed", Cell: func(r *VerdictRow) any { return r.Protocol }},
	}.When(ofProtocol),
	verdictColumns{
		{Name: "mutation", Doc: "defect put into the protocol",
			Cell: func(r *VerdictRow) any { return results.OrEmpty(r.Mutation) }},
		{Name: "bug", Doc: "scenario of the bug museum",
			Cell: func(r *VerdictRow) any { return results.OrEmpty(r.Bug) }},
	},
	verdictColumns{
		{Name: "fixed", Kind: results.Boolean, Doc: "whether the scenario has the upstream fix",
			Cell: func(r *VerdictRow) any { return r.Fixed }},
	}.When(func(r *VerdictRow) bool { return !ofProtocol(r) }),
	verdictColumns{
		{Name: "sites", Kind: results.Integer, Doc: "call sites that are patched",
			Cell: func(r *VerdictRow) any { return len(r.Model.Code.Sites) }},
		{Name: "cpus", Doc: "CPUs by role, the patchers' own among them",
			Cell: func(r *VerdictRow) any { return cpus.FormatRoles(r.Model.Roles) }},
		{Name: "fetch", Doc: "how finely versions of text mix in a fetch",
			Cell: func(r *VerdictRow) any { return r.Model.Code.Fetch.String() }},
		{Name: "preempt", Kind: results.Boolean,
			Detail: true, Doc: "whether tasks can be preempted between any two instructions",
			Cell: func(r *VerdictRow) any { return r.Model.Preempt }},
		{Name: "verdict", Lead: true, Cell: func(r *VerdictRow) any { return string(r.Verdict) },
			Doc: "safe: nothing can break in any interleaving; unsafe: there is a way; " +
				"incomplete: cut short, nothing is known of the rest; not found: a swarm has met nothing, which proves nothing"},
	},
	verdictColumns{
		{Name: "property", Doc: "what breaks", Cell: func(r *VerdictRow) any { return string(r.Violation.Property) }},
	}.When(func(r *VerdictRow) bool { return r.Violation != nil }),
	verdictColumns{
		{Name: "depth", Kind: results.Integer,
			Doc:  "steps of the shortest way to break it; else of the longest of all shortest ways to a state",
			Cell: func(r *VerdictRow) any { return r.Depth }},
		{Name: "states", Kind: results.Integer,
			Doc: "states that were reached", Cell: func(r *VerdictRow) any { return r.States }},
		{Name: "transitions", Kind: results.Integer, Doc: "steps from one state to another that were looked at",
			Cell: func(r *VerdictRow) any { return r.Transitions }},
	},
	verdictColumns{
		{Name: "states_per_s", Kind: results.Integer, Detail: true,
			Doc:  "how fast that was; only where asked for (rate), since it is another number every time",
			Cell: func(r *VerdictRow) any { return int(float64(r.States) / r.Elapsed.Seconds()) }},
	}.When(func(r *VerdictRow) bool { return r.Rate && r.Elapsed > 0 }),
	verdictColumns{
		{
			Name: "complete", Kind: results.Boolean,
			Detail: true,
			Doc:    "whether every state was looked at, or as many as it takes to be sure of the shortest way",
			Cell: func(r *VerdictRow) any {
				return r.Verdict == explore.Safe || r.Verdict == explore.Unsafe && r.Swarm == 0
			},
		},
	},
	verdictColumns{
		{Name: "buffer", Detail: true, Doc: "slots of the vector that patches are queued in",
			Cell: func(r *VerdictRow) any { return r.Buffer.String() }},
		{Name: "order", Detail: true, Doc: "order in which patches are queued",
			Cell: func(r *VerdictRow) any { return r.Order.String() }},
	}.When(ofProtocol),
	verdictColumns{
		{Name: "lookup", Detail: true, Doc: "index that trap handlers search",
			Cell: func(r *VerdictRow) any { return r.Model.Lookup.String() }},
		{Name: "refs", Detail: true, Doc: "how handlers are counted",
			Cell: func(r *VerdictRow) any { return r.Model.Refs.String() }},
		{Name: "reduce", Detail: true, Doc: "what the search leaves out: order, symmetry, both (all) or nothing (none)",
			Cell: func(r *VerdictRow) any { return r.Options.Reduce.String() }},
		{Name: "liveness", Kind: results.Boolean, Detail: true,
			Doc:  "whether it was also asked if every update can end and every CPU come back between two calls",
			Cell: func(r *VerdictRow) any { return r.Options.Liveness }},
		{Name: "patchers", Kind: results.Integer, Detail: true, Doc: "patchers at work at the same time",
			Cell: func(r *VerdictRow) any { return len(r.Model.Programs) }},
		{Name: "contend", Kind: results.Boolean,
			Detail: true, Doc: "whether every patcher wants all sites, in place of some of its own",
			Cell: func(r *VerdictRow) any { return r.Contend }},
		{Name: "switch", Kind: results.Boolean, Detail: true, Cell: func(r *VerdictRow) any { return r.Switch },
			Doc: "whether sites go over from one ops to another, in place of being enabled and disabled"},
		{Name: "workload", Detail: true,
			Doc:  "what patchers do: endless, any subset of sites each way, for ever; or once",
			Cell: func(r *VerdictRow) any { return r.Model.Workload().String() }},
		{
			Name:   "assumes",
			Detail: true,
			Doc:    "what the verdict takes for granted: workload, fetches, traps, what is not modelled",
			Cell:   func(r *VerdictRow) any { return r.Model.Assumes() },
		},
		{Name: "early", Kind: results.Boolean,
			Detail: true, Doc: "whether traced code runs on the way in from user space, before catching up",
			Cell: func(r *VerdictRow) any { return r.Early }},
	},
	verdictColumns{
		{Name: "swarm", Kind: results.Integer, Detail: true,
			Doc:  "searches of the swarm; empty where one search looks at everything",
			Cell: func(r *VerdictRow) any { return int(r.Swarm) }},
	}.When(func(r *VerdictRow) bool { return r.Swarm > 0 }),
	verdictColumns{
		{Name: "collision", Kind: results.Number,
			Detail: true, Doc: "probability that some state was taken for another; empty in exact mode",
			Cell: func(r *VerdictRow) any { return r.Collision }},
	}.When(func(r *VerdictRow) bool { return !r.Options.Exact }),
	verdictColumns{
		{Name: "layout", Detail: true, Doc: "how the kernel lays sites out: with literals that name their ops, or without",
			Cell: func(r *VerdictRow) any { return r.Model.Code.Traits.Layout }},
	},
	verdictColumns{
		{Name: "steps", Kind: results.Integer, Detail: true,
			Doc:  "steps of CPUs in the interleavings that were looked at, looks for interrupts aside",
			Cell: func(r *VerdictRow) any { return r.Coverage.Steps }},
		{Name: "traps", Kind: results.Integer, Detail: true, Doc: "breakpoints that CPUs ran into there",
			Cell: func(r *VerdictRow) any { return r.Coverage.Traps }},
		{Name: "reached", Kind: results.Integer, Detail: true,
			Doc:  "places that were reached at least once: steps of plans and paths, and what else CPUs do",
			Cell: func(r *VerdictRow) any { return r.Coverage.Places }},
		{Name: "places", Kind: results.Integer,
			Detail: true, Doc: "so many there are", Cell: func(r *VerdictRow) any { return r.Coverage.Of }},
		{Name: "never", Detail: true, Doc: "those that were never reached",
			Cell: func(r *VerdictRow) any { return results.OrEmpty(strings.Join(r.Coverage.Never, "; ")) }},
		{Name: "rests_on", Detail: true,
			Doc:  "what the verdict takes for granted, though the architecture's base model allows otherwise",
			Cell: func(r *VerdictRow) any { return results.OrEmpty(r.Model.RestsOn()) }},
		{Name: "promises", Detail: true,
			Doc:  "what holds once an update is over: new text, no CPU executes what was replaced; or nothing, any may for ever",
			Cell: func(r *VerdictRow) any { return r.Model.Promises() }},
	}.When(func(r *VerdictRow) bool { return r.Verdict == explore.Safe }),
	verdictColumns{
		{Name: "place", Doc: "offset of sites within an aligned quadword, where it was asked for",
			Cell: func(r *VerdictRow) any { return results.OrEmpty(r.Offset.String()) }},
	},
)

// ofProtocol tells whether a row is about a protocol, and not about a scenario of the
// museum.
func ofProtocol(r *VerdictRow) bool { return r.Bug == "" }
