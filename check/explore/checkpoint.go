// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
)

// A checkpoint is a line of JSON, then words in little-endian order: the visited
// states, the states of the level that are still to be looked at, and those of
// the next level, each list behind its number of entries. The SHA-256 of all of
// it stands at the end.

// checkpointFormat is the version of the format.
const checkpointFormat = 2

type checkpointHeader struct {
	Format      int           `json:"textpoke_checkpoint"`
	Model       string        `json:"model"` // digest of the model and of what changes the search
	Depth       int           `json:"depth"`
	States      uint64        `json:"states"`
	Transitions uint64        `json:"transitions"`
	Spent       time.Duration `json:"spent_ns"`
	Reached     reached       `json:"reached"`
}

// digest names what is searched and how: a search can only go on where it is the
// same.
func (s *search) digest() string {
	m, code := s.m, s.m.Code
	h := sha256.New()
	fmt.Fprintln(h, code.Traits, code.Layout, code.Fetch, code.Sites, code.Len, code.Entry, code.Path,
		code.Always, code.Probed, code.Deaf, code.Stretch)
	fmt.Fprintf(h, "%#v\n", m.Programs) // a step in words does not say all
	fmt.Fprintln(h, m.Roles, m.Initial, m.Literals, m.NopOps, m.Attached, m.Lookup, m.Refs, m.Slots, m.Filling, m.Preempt)
	fmt.Fprintln(h, s.o.Reduce, s.o.Exact)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// canSave finds out before anything is searched whether a checkpoint can be
// written.
func (s *search) canSave() error {
	if s.o.Checkpoint == "" {
		return nil
	}
	if info, err := os.Stat(s.o.Checkpoint); err == nil && !info.Mode().IsRegular() { // it is read again
		return fmt.Errorf("checkpoint %s: not a file", s.o.Checkpoint)
	}
	f, err := files.Create(s.o.Checkpoint, 0o600)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", s.o.Checkpoint, err)
	}
	f.Abort()
	return nil
}

// save saves the search, where that is asked for.
func (s *search) save() error {
	if s.o.Checkpoint == "" {
		return nil
	}
	s.lastSave = time.Now()
	err := files.Write(s.o.Checkpoint, 0o600, func(w io.Writer) error {
		sum := sha256.New()
		if err := s.write(bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<20)); err != nil {
			return err
		}
		_, err := w.Write(sum.Sum(nil))
		return err
	})
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", s.o.Checkpoint, err)
	}
	return nil
}

func (s *search) write(w *bufio.Writer) error {
	p := s.progress()
	header, err := json.Marshal(checkpointHeader{
		Format: checkpointFormat, Model: s.digest(), Depth: p.Depth,
		States: p.States, Transitions: p.Transitions, Spent: p.Elapsed, Reached: s.reached(),
	})
	if err != nil {
		return err
	}
	if _, err := w.Write(append(header, '\n')); err != nil {
		return err
	}
	words := func(list ...uint64) {
		if err == nil {
			err = binary.Write(w, binary.LittleEndian, list)
		}
	}
	words(p.States)
	_ = s.seen.each(func(fp uint64, whole []uint64) error {
		if whole == nil {
			whole = []uint64{fp}
		}
		words(whole...)
		return err // and words has it
	})
	for _, list := range [][]slab{s.queue, s.next} {
		words(uint64(s.count(list)))
		for _, b := range list {
			words(b...)
		}
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// errDamaged says that a checkpoint is not as it was written.
var errDamaged = errors.New("it is damaged")

// load goes on from a checkpoint.
func (s *search) load() error {
	f, err := inputs.Open(s.o.Checkpoint)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = s.read(f, info.Size())
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", s.o.Checkpoint, err)
	}
	return nil
}

// read reads a checkpoint of size bytes. Counts in it that would need more bytes are
// refused.
func (s *search) read(file io.Reader, size int64) error {
	sum := sha256.New()
	body := io.LimitReader(file, size-sha256.Size)
	r := bufio.NewReaderSize(io.TeeReader(body, sum), 1<<20)
	line, err := r.ReadSlice('\n')
	var h checkpointHeader
	if err != nil || json.Unmarshal(line, &h) != nil || h.Format != checkpointFormat {
		return fmt.Errorf("it is no checkpoint of format %d", checkpointFormat)
	}
	if h.Model != s.digest() {
		return errors.New("it is of another search: repeat the flags that it was made with")
	}
	n := uint64(s.m.layout.words)
	list := func(words uint64, each func(words []uint64)) error {
		return readList(r, words, uint64(size)/8, each)
	}
	entry := uint64(1)
	if s.o.Exact {
		entry = n
	}
	states := uint64(0)
	err = list(entry, func(words []uint64) {
		fp := words[0]
		if s.o.Exact {
			fp = fingerprint(words)
		}
		if s.seen.insert(fp, words) {
			states++
		}
	})
	for _, to := range []*[]slab{&s.queue, &s.next} {
		if err == nil {
			err = list(n, func(words []uint64) { *to = s.appendState(*to, words, &[]slab{}) })
		}
	}
	if err != nil {
		return err
	}
	var want [sha256.Size]byte
	if _, err := r.ReadByte(); err != io.EOF || states != h.States {
		return errDamaged
	}
	if _, err := io.ReadFull(file, want[:]); err != nil || !bytes.Equal(want[:], sum.Sum(nil)) {
		return errDamaged
	}
	s.depth.Store(int64(h.Depth))
	s.states.Store(h.States)
	s.transitions.Store(h.Transitions)
	s.spent, s.before = h.Spent, h.Reached
	if len(s.queue) == 0 { // it was halted between two levels
		s.deeper()
	}
	return nil
}

// readList reads a list of entries of so many words each, from a file that has room
// for so many words at most.
func readList(r io.Reader, words, most uint64, each func(words []uint64)) error {
	var entries uint64
	if binary.Read(r, binary.LittleEndian, &entries) != nil || entries > most/words {
		return errDamaged
	}
	entry := make([]uint64, words)
	for range entries {
		if binary.Read(r, binary.LittleEndian, entry) != nil {
			return errDamaged
		}
		each(entry)
	}
	return nil
}
