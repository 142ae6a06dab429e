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
	name string
	kind dispatch.Kind

	siteBytes, functionBytes, opsBytes int

	// copies: attaching copies the hash of all direct functions, entry by entry.
	copies bool
	// generates: attaching generates code.
	generates bool
	words     int

	attach, detach, modify string
	checked                checked
	why                    string // the verdict, or why there is none
}

// users are those that the design knows.
func (d *design) users() []users {
	if d.kind.Direct {
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
		name: "ops-at-site", kind: kind("direct-ops", true), siteBytes: pointer, opsBytes: pointer, words: 1,
		attach:  "one aligned store of the literal, then the branch",
		detach:  "the literal to nop_ops, then the branch; a grace period before the ops is freed",
		modify:  "one store to the ops' direct_call",
		checked: literal, why: "the function is read from the ops that was loaded",
	},
	{
		name: "lookup-by-address", kind: kind("single-direct-far", true), siteBytes: pointer, functionBytes: entryBytes, copies: true, words: 1,
		attach:  "another hash is published, then the sites",
		detach:  "the sites, then another hash; a grace period before the old one is freed",
		modify:  "one store to the function's entry, while its site is led over the list",
		checked: tableFirst, why: "the table names a trampoline before its site is patched; in the other order calls are lost",
	},
	{
		name: "record-at-site", kind: kind("intermediate", true), siteBytes: 2 * pointer, opsBytes: pointer, words: 2,
		attach:  "one store of the record's pointer; what else is in the record by a second one",
		detach:  "the same; a grace period before the ops is freed",
		modify:  "one store to the ops' direct_call",
		checked: globalPair, why: "the record's ops and what else it has are two words, read apart: a pair at each site",
	},
	{
		name: "trampoline-per-ops", kind: kind("ops-trampoline", true), siteBytes: pointer, opsBytes: trampolineBytes, generates: true, words: 1,
		attach:  "code is generated and made visible to instruction fetches, then one store of the literal",
		detach:  "the literal to that of nop_ops; a grace period before ops and code are freed",
		modify:  "other code for the ops, and one store at every site of it",
		checked: literal, why: "one word names the code, and the code has its ops in it",
	},
	{
		name: "trampoline-and-ops-at-site", kind: kind("site-trampoline", true), siteBytes: 2 * pointer, words: 2,
		attach:  "two stores, of which a call may see one",
		detach:  "the same; a grace period before trampoline and ops are freed",
		modify:  "one store at every site of the ops",
		checked: globalPair, why: "two words, read apart: a pair at each site",
	},
	{
		name: "global-pair", kind: kind("global", false), words: 2,
		attach:  "the list function; the sites; the ops, a round, and the function",
		detach:  "the same; no round waits for a task that was preempted between ops and function",
		modify:  "does not exist: trampolines are called by sites in range",
		checked: globalPair, why: "ops and function are two words, read apart",
	},
	{
		name: "list", kind: kind("list", false), words: 1,
		attach:  "one store of the list's head, then the sites",
		detach:  "the sites, then one store of the pointer to it; a grace period",
		modify:  "does not exist",
		checked: afterGrace, why: "its function serves every ops; what is left to ask is when one may be freed",
	},
}
