// SPDX-License-Identifier: Apache-2.0

package callopsalternatives

import (
	_ "embed"

	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

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

// design is one way, and what it keeps: bytes where a pointer has 8. What is said of attaching is from
// kernel/trace/ftrace.c of Linux 7.1 where the kernel has the design, and follows from
// the words that it has where the kernel has not. An entry of a hash is struct ftrace_func_entry,
// kernel/trace/ftrace.h: a node of two pointers, ip and direct. A trampoline is what create_trampoline of
// arch/x86/kernel/ftrace.c takes for one ops: executable memory comes in pages.
//
// The checker is asked what is read in one word or in two, in which order a table and its sites change, or when
// something may be freed. Its words stand for whatever a design keeps in them.
type design struct {
	Name          string `col:"name,key"`
	Way           string `col:"way"`
	Direct        bool   `col:"direct"` // it knows direct trampolines, here out of branch range
	SiteBytes     int    `col:"site_bytes"`
	FunctionBytes int    `col:"function_bytes"`
	OpsBytes      int    `col:"ops_bytes"`
	Copies        bool   `col:"copies"`    // attaching copies the hash of all direct functions, entry by entry
	Generates     bool   `col:"generates"` // attaching generates code
	Words         int    `col:"words"`

	Attach string `col:"attach"`
	Detach string `col:"detach"`
	Modify string `col:"modify"`
	Bug    string `col:"bug"`
	Fixed  bool   `col:"fixed"`
	Why    string `col:"why"` // the verdict
}

//go:embed designs.csv
var designsText string

var designs = sheet.Must[design]("designs.csv", designsText)

// Checked is what the checker is asked.
func (d *design) Checked() checked { return checked{d.Bug, d.Fixed} }

// users are those that the design knows.
func (d *design) users() []users {
	if d.Direct {
		return []users{callback, direct, both}
	}
	return []users{callback, both}
}

// allocations are those that can fail when one more function is attached beside n.
func (d *design) allocations(n int) (out int) {
	if d.Copies { // the hash, its buckets, and each entry (d05cb470663a, Linux 6.7)
		out += 2 + n + 1
	}
	if d.Generates {
		out++
	}
	return out
}

// kind is its way, with trampolines out of branch range.
func (d *design) kind() (dispatch.Kind, error) {
	k, err := dispatch.Parse(d.Way)
	k.Direct = d.Direct
	return k, err
}
