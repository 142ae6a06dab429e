// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/textpoke/textpoke/records"
)

// Text is where functions lie: [Start, End).
type Text struct{ Start, End records.Addr }

// word is how many bytes a record's number takes, and what functions are a
// multiple of: a number is stored and loaded in one go.
const word = 4

// Padding keeps the number of each function's record in the four bytes before the function, which
// the compiler leaves free (CONFIG_FUNCTION_PADDING_BYTES):
//
//	text ... |number| function ...
//	             |
//	records[number] -> record
//
// There is nothing to search. In a kernel the stores go through text poking, since
// text is read-only; nothing executes these bytes, so that they need no
// breakpoint.
//
// The next function that comes gets a number that was given back. A lookup that has
// loaded the number before finds that function's record. The kernel would wait for a
// grace period in between. Here the lookup compares the record's function, and finds
// none for a function whose record has gone.
//
// The array doubles and is never made smaller: the numbers are in the text, and
// to change one is to write text again.
type Padding struct {
	text    Text
	numbers []atomic.Uint32 // the text, a word each; 0 before functions without a record
	records atomic.Pointer[[]atomic.Pointer[Record]]
	free    []uint32 // numbers that were given back
	used    uint32   // numbers that were ever given, and 0, which is none
	changes
}

// maxText is as far as calls reach on the architecture with the longest reach
// (x86_64, 2 GiB): more is no kernel's text.
const maxText = 2 << 30

// NewPadding makes an empty table for a text.
func NewPadding(t Text) (*Padding, error) {
	if t.Start%word != 0 || t.End%word != 0 || t.End <= t.Start || t.End-t.Start > maxText {
		return nil, fmt.Errorf("text from %v to %v: want multiples of %d, at most %d bytes apart", t.Start, t.End,
			word, maxText)
	}
	p := &Padding{text: t, numbers: make([]atomic.Uint32, (t.End-t.Start)/word), used: 1}
	first := make([]atomic.Pointer[Record], minCells)
	p.records.Store(&first)
	return p, nil
}

// number is the word before a function, or nil where there is none.
func (p *Padding) number(at records.Addr) *atomic.Uint32 {
	i := uint64(at-p.text.Start)/word - 1 // below the text: past its end
	if i >= uint64(len(p.numbers)) {
		return nil
	}
	return &p.numbers[i]
}

// Lookup implements Table.
func (p *Padding) Lookup(at records.Addr) *Record {
	w := p.number(at)
	if w == nil {
		return nil
	}
	// The array is loaded behind the number: it is the one that the number was
	// given in, or a later one.
	i := w.Load()
	if r := (*p.records.Load())[i].Load(); r != nil && r.Func == at {
		return r
	}
	return nil
}

// Set implements Table. Functions must be a multiple of four, and inside the text
// with room before them.
func (p *Padding) Set(r *Record) error {
	if err := r.check(); err != nil {
		return err
	}
	w := p.number(r.Func)
	if w == nil || r.Func%word != 0 || r.Func >= p.text.End {
		return fmt.Errorf("metadata of %v: no number fits before it: want a multiple of %d above %v and below %v",
			r.Func, word, p.text.Start, p.text.End)
	}
	return p.set(r, func() bool {
		i := w.Load()
		added := i == 0
		if added {
			i = p.take()
		}
		(*p.records.Load())[i].Store(r)
		w.Store(i)
		return added
	})
}

// take is a number that is not in use. All numbers in the array being so, it is
// copied into one of twice the size: as much work as there are records, once for
// as many new ones.
func (p *Padding) take() uint32 {
	if last := len(p.free) - 1; last >= 0 {
		i := p.free[last]
		p.free = p.free[:last]
		return i
	}
	if old := *p.records.Load(); int(p.used) == len(old) {
		double := make([]atomic.Pointer[Record], 2*len(old))
		for i := range old {
			double[i].Store(old[i].Load())
		}
		p.records.Store(&double)
	}
	p.used++
	return p.used - 1
}

// Remove implements Table.
func (p *Padding) Remove(at records.Addr) bool {
	w := p.number(at)
	if w == nil || at%word != 0 {
		return false
	}
	return p.remove(func() bool {
		i := w.Load()
		if i != 0 {
			w.Store(0)
			(*p.records.Load())[i].Store(nil)
			p.free = append(p.free, i)
		}
		return i != 0
	})
}

// Cost implements Counted: the number, the array's place, the record. The
// comparison stands for the grace period and is counted.
func (p *Padding) Cost(at records.Addr) Cost {
	if p.Lookup(at) == nil {
		return Cost{Loads: 1, Lines: 1}
	}
	return Cost{Comparisons: 1, Loads: 3, Lines: 3}
}

// Bytes implements Counted. The text is not counted as a whole, only the words that
// hold a number: kernels have the bytes anyway where functions are padded.
func (p *Padding) Bytes() int {
	return int(unsafe.Sizeof(*p)) + len(*p.records.Load())*int(unsafe.Sizeof(atomic.Pointer[Record]{})) +
		cap(p.free)*word + p.Len()*word
}
