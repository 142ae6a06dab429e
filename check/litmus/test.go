// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Test is a litmus test as its file tells it.
type Test struct {
	Name   string
	About  string // the outcome in a sentence
	Source string // where the expected kinds are from

	sites   []site
	data    []datum
	threads []thread
	regs    []register
	outcome []term
	expect  []expectation // in the order of the classes
}

// site is a place in the code that is executed and stored to.
type site struct {
	name    string
	initial string // one character a part
	aligned bool   // several parts, in one unit that machines may fetch whole
}

// datum is a place in memory that is not code.
type datum struct{ name, initial string }

// thread is one CPU's program.
type thread struct {
	name  string
	insns []insn
}

// register holds what one read or execution returned.
type register struct {
	thread int
	name   string
	parts  int // of its value, 0 for data, which has no fixed length
}

// insn is one instruction. Indices are -1 where there is nothing to name.
type insn struct {
	op         op
	site, data int    // what it is about
	at         int    // first part of the site, -1 for all of it
	text       string // stored or written
	reg        int    // where the result goes
	on         int    // register that ctrl branches on
	addr, from int    // registers that the address and the data depend on
	marks      []string
}

// term is one equation of an outcome: a register's or, at the end, a place's.
type term struct {
	reg, site, data int
	value           string
}

// expectation is what a file says of a class.
type expectation struct {
	class   *class
	want    Verdict
	differs string // why the model may disagree with want
	window  Relation
	why     string // why the window model does
}

// The bounds of a test. They keep a state small and a fetch's choices
// few (maxVersions to the power of maxParts); the shipped tests need half.
const (
	maxThreads  = 4
	maxInsns    = 24 // a thread
	maxSites    = 4
	maxVersions = 6 // of a site, the initial one included
	maxData     = 4
	maxRegs     = 8
	maxICs      = 6
	maxParts    = 4 // of a site: a head, a tail and some between
)

// textOf packs a text into a word, a part a byte.
func textOf(s string) isa.Text { return isa.TextOf([]byte(s)...) }

// show is the way back.
func show(t isa.Text) string {
	n := 0
	for n < 8 && t.Slice(n, 1) != 0 {
		n++
	}
	return string(t.Bytes(n))
}

// about tells whether the two instructions are about the same place.
func (i *insn) about(j *insn) bool {
	return i.site >= 0 && i.site == j.site || i.data >= 0 && i.data == j.data
}

// needs tells whether the instruction depends on a register.
func (i *insn) needs(reg int) bool {
	return reg >= 0 && (i.on == reg || i.addr == reg || i.from == reg)
}

func (i *insn) marked(m string) bool {
	return slices.Contains(i.marks, m)
}

// span is the parts that an instruction is about: first and number.
func (t *Test) span(i *insn) (at, n int) {
	switch {
	case i.op == opStore && i.at >= 0:
		return i.at, len(i.text)
	case i.at >= 0:
		return i.at, 1
	default:
		return 0, len(t.sites[i.site].initial)
	}
}

// Outcome is what is asked, as the file says it.
func (t *Test) Outcome() string {
	parts := make([]string, len(t.outcome))
	for i, e := range t.outcome {
		switch {
		case e.reg >= 0:
			r := t.regs[e.reg]
			parts[i] = t.threads[r.thread].name + ":" + r.name
		case e.site >= 0:
			parts[i] = t.sites[e.site].name
		default:
			parts[i] = t.data[e.data].name
		}
		parts[i] += "=" + e.value
	}
	return strings.Join(parts, " ")
}

// line prints one instruction.
func (t *Test) line(i *insn) string {
	f := []string{ops[i.op].name}
	if i.reg >= 0 {
		f = []string{t.regs[i.reg].name, "=", ops[i.op].name}
	}
	switch {
	case i.site >= 0 && i.at >= 0:
		f = append(f, fmt.Sprintf("%s[%d]", t.sites[i.site].name, i.at))
	case i.site >= 0:
		f = append(f, t.sites[i.site].name)
	case i.data >= 0:
		f = append(f, t.data[i.data].name)
	case i.on >= 0:
		f = append(f, t.regs[i.on].name)
	}
	if i.text != "" {
		f = append(f, i.text)
	}
	f = append(f, i.marks...)
	if i.addr >= 0 {
		f = append(f, "addr", t.regs[i.addr].name)
	}
	if i.from >= 0 {
		f = append(f, "data", t.regs[i.from].name)
	}
	return strings.Join(f, " ")
}

//go:embed tests/*.litmus
var files embed.FS

// Shipped is a shipped test.
func Shipped(name string) (*Test, error) {
	file := name + ".litmus"
	f, err := files.Open("tests/" + file)
	if err != nil {
		return nil, fmt.Errorf("litmus test %s: %w", name, err)
	}
	defer f.Close()
	return Parse(file, f)
}

// ShippedNames lists the shipped tests by name, in alphabetical order.
func ShippedNames() (names []string) {
	entries, err := files.ReadDir("tests")
	if err != nil { // what is embedded can be read
		panic(err)
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".litmus"))
	}
	return names
}

// op is what an instruction does.
type op uint8

const (
	opExec      op = iota // executes a site: which text was it?
	opRead                // data read, of data or of a site's text
	opWrite               // data write
	opStore               // store to a site's text
	opDC                  // clean a site's text to the point of unification
	opIC                  // invalidate it in all instruction caches
	opDSB                 // completes everything before it
	opDMB                 // orders accesses to data
	opDMBst               // orders writes
	opDMBld               // orders reads with what follows
	opISB                 // context synchronisation
	opFence               // fence rw,rw
	opFenceI              // this hart's fetches see what is visible to it
	opMfence              // completes buffered stores
	opLock                // a LOCKed read-modify-write of something else
	opSerialise           // cpuid, iret, serialize, mov to a control register
	opCtrl                // a conditional branch on a register
	opIPI                 // interrupts all other CPUs
	opWait                // waits until they have answered
)

// operand is what an instruction's line names.
type operand uint8

const (
	nothing  operand = iota
	aSite            // dc a
	aText            // store a 1, store a[1] 1
	aValue           // write x 1
	aReg             // ctrl r
	fromSite         // r = exec a, r = exec a[1]
	fromAny          // r = read x
)

// ops describes each op. Quiet ones have no effect of their own but to let later ones go on: the
// search performs them as soon as it can.
var ops = [...]struct {
	name     string
	families family
	operand  operand
	quiet    bool
	marks    []string // what may follow the operands, besides dependencies
}{
	opExec:      {"exec", arm | x86 | rv, fromSite, false, nil},
	opRead:      {"read", arm | x86 | rv, fromAny, false, []string{"acquire"}},
	opWrite:     {"write", arm | x86 | rv, aValue, false, []string{"release"}},
	opStore:     {"store", arm | x86 | rv, aText, false, []string{"alias"}},
	opDC:        {"dc", arm, aSite, false, nil},
	opIC:        {"ic", arm, aSite, false, nil},
	opDSB:       {"dsb", arm, nothing, true, nil},
	opDMB:       {"dmb", arm, nothing, true, nil},
	opDMBst:     {"dmb.st", arm, nothing, true, nil},
	opDMBld:     {"dmb.ld", arm, nothing, true, nil},
	opISB:       {"isb", arm, nothing, true, nil},
	opFence:     {"fence", rv, nothing, true, nil},
	opFenceI:    {"fence.i", rv, nothing, true, nil},
	opMfence:    {"mfence", x86, nothing, true, nil},
	opLock:      {"lock", x86, nothing, true, nil},
	opSerialise: {"serialise", x86, nothing, true, nil},
	opCtrl:      {"ctrl", arm | x86 | rv, aReg, true, nil},
	opIPI:       {"ipi", arm | x86 | rv, nothing, false, nil},
	opWait:      {"wait", arm | x86 | rv, nothing, true, nil},
}

// marks restrict an instruction to some families.
var markFamilies = map[string]family{"acquire": arm | rv, "release": arm | rv, "alias": x86}

func parseOp(s string) (op, bool) {
	for i := range ops {
		if ops[i].name == s {
			return op(i), true
		}
	}
	return 0, false
}

func (o op) writes() bool   { return o == opWrite || o == opStore }
func (o op) accesses() bool { return o == opRead || o.writes() }

// synchronises tells whether the instructions behind it are fetched only when this is done.
func (o op) synchronises() bool { return o == opISB || o == opFenceI || o == opSerialise }

// families tells where the instruction exists.
func (i *insn) families() family {
	f := ops[i.op].families
	for mark, only := range markFamilies {
		if slices.Contains(i.marks, mark) {
			f &= only
		}
	}
	return f
}
