// SPDX-License-Identifier: Apache-2.0

package callopsalternatives

import "github.com/textpoke/textpoke/tracers/dispatch"

// users is who is attached to the function.
type users uint8

const (
	callback users = iota
	direct
	both
)

func (u users) String() string { return [...]string{"callback", "direct", "both"}[u] }

// checked is what the checker is asked about: a case of the museum's, as it breaks or
// as it is done right. The zero value: it is asked nothing.
type checked struct {
	bug   string
	fixed bool
}

// What the designs can be asked: what is read in one word or in two, in which order
// a table and its sites change, when something may be freed. The checker's words stand
// for whatever a design keeps in them.
var (
	literal    = checked{"mismatched-ops", true}
	globalPair = checked{"mismatched-ops", false}
	tableFirst = checked{"direct-table-late", true}
	afterGrace = checked{"ops-freed-at-once", true}
)

// String is the question as the command line puts it, "" for none.
func (c checked) String() string {
	switch {
	case c.bug == "":
		return ""
	case c.fixed:
		return "--bug " + c.bug + " --fixed"
	}
	return "--bug " + c.bug
}

// Sizes, in bytes, where a pointer has 8.
const (
	pointer = 8
	// entryBytes is struct ftrace_func_entry, kernel/trace/ftrace.h: a node of two
	// pointers, ip and direct.
	entryBytes = 32
	// trampolineBytes is what create_trampoline of arch/x86/kernel/ftrace.c takes for one
	// ops: executable memory comes in pages.
	trampolineBytes = 4096
)

// design is one way, and what it keeps. What is said of attaching is from
// kernel/trace/ftrace.c of Linux 7.1 where the kernel has the design, and follows from
// the words that it has where the kernel has not.
type design struct {
	Name string
	Kind dispatch.Kind

	SiteBytes, FunctionBytes, OpsBytes int

	// copies: attaching copies the hash of all direct functions, entry by entry.
	copies bool
	// generates: attaching generates code.
	generates bool
	Words     int

	Attach, Detach, Modify string
	Checked                checked
	Why                    string // the verdict, or why there is none
}

// users are those that the design knows.
func (d *design) users() []users {
	if d.Kind.Direct {
		return []users{callback, direct, both}
	}
	return []users{callback, both}
}

// allocations are those that can fail when one more function is attached beside n.
func (d *design) allocations(n int) (out int) {
	if d.copies { // the hash, its buckets, and each entry (d05cb470663a, Linux 6.7)
		out += 2 + n + 1
	}
	if d.generates {
		out++
	}
	return out
}

// kind is a way with direct trampolines out of branch range.
func kind(name string, direct bool) dispatch.Kind {
	k, err := dispatch.Parse(name)
	if err != nil {
		panic(err) // a mistake of ours
	}
	k.Direct = direct
	return k
}

var designs = []design{
	{
		Name: "ops-at-site", Kind: kind("direct-ops", true), SiteBytes: pointer, OpsBytes: pointer, Words: 1,
		Attach:  "one aligned store of the literal, then the branch",
		Detach:  "the literal to nop_ops, then the branch; a grace period before the ops is freed",
		Modify:  "one store to the ops' direct_call",
		Checked: literal, Why: "the function is read from the ops that was loaded",
	},
	{
		Name: "lookup-by-address", Kind: kind("single-direct-far",
			true), SiteBytes: pointer, FunctionBytes: entryBytes, copies: true, Words: 1,
		Attach:  "another hash is published, then the sites",
		Detach:  "the sites, then another hash; a grace period before the old one is freed",
		Modify:  "one store to the function's entry, while its site is led over the list",
		Checked: tableFirst, Why: "the table names a trampoline before its site is patched; in the other order calls are " +
			"lost",
	},
	{
		Name: "record-at-site", Kind: kind("intermediate", true), SiteBytes: 2 * pointer, OpsBytes: pointer, Words: 2,
		Attach:  "one store of the record's pointer; what else is in the record by a second one",
		Detach:  "the same; a grace period before the ops is freed",
		Modify:  "one store to the ops' direct_call",
		Checked: globalPair, Why: "the record's ops and what else it has are two words, read apart: a pair at each site",
	},
	{
		Name: "trampoline-per-ops", Kind: kind("ops-trampoline",
			true), SiteBytes: pointer, OpsBytes: trampolineBytes, generates: true, Words: 1,
		Attach:  "code is generated and made visible to instruction fetches, then one store of the literal",
		Detach:  "the literal to that of nop_ops; a grace period before ops and code are freed",
		Modify:  "other code for the ops, and one store at every site of it",
		Checked: literal, Why: "one word names the code, and the code has its ops in it",
	},
	{
		Name: "trampoline-and-ops-at-site", Kind: kind("site-trampoline", true), SiteBytes: 2 * pointer, Words: 2,
		Attach:  "two stores, of which a call may see one",
		Detach:  "the same; a grace period before trampoline and ops are freed",
		Modify:  "one store at every site of the ops",
		Checked: globalPair, Why: "two words, read apart: a pair at each site",
	},
	{
		Name: "global-pair", Kind: kind("global", false), Words: 2,
		Attach:  "the list function; the sites; the ops, a round, and the function",
		Detach:  "the same; no round waits for a task that was preempted between ops and function",
		Modify:  "does not exist: trampolines are called by sites in range",
		Checked: globalPair, Why: "ops and function are two words, read apart",
	},
	{
		Name: "list", Kind: kind("list", false), Words: 1,
		Attach:  "one store of the list's head, then the sites",
		Detach:  "the sites, then one store of the pointer to it; a grace period",
		Modify:  "does not exist",
		Checked: afterGrace, Why: "its function serves every ops; what is left to ask is when one may be freed",
	},
}
