// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring"
)

// The names of a table's records are kept beside their numbers, so that what clients want
// can be found again in another table: after the kernel was changed, numbers and addresses
// are others, and names are mostly not.

// namesPrefix is what the names of files with names begin with.
const namesPrefix = "names-"

// packNames is how names are kept: one a line, packed (RFC 1951).
func packNames(names []string) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := io.WriteString(w, name+"\n"); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

func unpackNames(list []byte) ([]string, error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(list)))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// about makes the state one about a table, whose names are put on the disk before.
func (s *Store) about(id Identity) error {
	b := &s.state.beginning
	b.Version, b.Records, b.Hash, b.Count = version, id.Records, id.Hash, id.Count
	if id.Names == nil {
		return nil
	}
	list, err := packNames(id.Names)
	if err != nil {
		return err
	}
	return putNames(s.disk, b, list)
}

// putNames puts names on the disk, of which a beginning tells then.
func putNames(d Disk, b *beginning, list []byte) error {
	sum := sha(list)
	b.Names, b.NamesSum = fmt.Sprintf("%s%.16s", namesPrefix, sum), sum
	if err := putFile(d, b.Names, list); err != nil {
		return err
	}
	return d.Sync()
}

// follow brings the directory to the table that it is opened with.
func (s *Store) follow(id Identity) error {
	got := &s.state.beginning
	same := got.Records == id.Records && got.Hash == id.Hash && got.Count == id.Count
	switch {
	case got.Hash == "" || same && got.Names == "" && id.Names != nil:
		if err := s.about(id); err != nil {
			return err
		}
		return s.rotate(nil)
	case same:
		return nil
	case got.Names == "" || id.Names == nil:
		return &ForeignError{s.file, fmt.Sprintf("it is about the records %s (%d, %s), these are %s (%d, %s), and it does "+
			"not know the names of its own", got.Records, got.Count, got.Hash, id.Records, id.Count, id.Hash)}
	}
	list, err := getFile(s.disk, got.Names, got.NamesSum)
	if err != nil {
		return err
	}
	names, err := unpackNames(list)
	if err != nil || len(names) != got.Count {
		return &DamagedError{got.Names, fmt.Sprintf("the names of %d records, of which there are %d", got.Count, len(names))}
	}
	// Where the table has another name now, that is all. Otherwise a backup keeps the directory as it was with its table: a
	// server may have been given the wrong one. A disk that is simulated has none.
	if got.Hash != id.Hash && s.file != "" {
		to := filepath.Join(s.file, fmt.Sprintf("textpoke-%.8s-%d.backup", s.state.Hash, s.log.next-1))
		if err := backup(s.disk, s.log, s.state, to); err != nil {
			return err
		}
	}
	return s.remap(&renumbering{names, numbersOf(names), numbersOf(id.Names)}, id)
}

// remap gives wishes and open updates the numbers of the new table, and begins a segment with them.
// Wishes for records that the new table lacks become an update of that client that takes them away;
// an accepted update that cannot be carried out as it was asked for has failed.
func (s *Store) remap(r *renumbering, id Identity) error {
	st, at := s.state, time.Now().UTC()
	if err := s.about(id); err != nil {
		return err
	}
	var more []entry
	for _, who := range slices.SortedFunc(maps.Keys(st.wants), compareOwners) {
		now, gone, lost := r.numbers(which{st.wants[who]}.numbers())
		if st.wants[who] = newWhich(now).Bitmap; len(now) == 0 {
			delete(st.wants, who)
		}
		if lost > 0 {
			st.Update++
			u := Update{ID: st.Update, Client: who.client, Ops: who.ops, Records: lost, State: Live, Error: missing(gone, id),
				Submitted: at, Began: at, Ended: at}
			s.remapped = append(s.remapped, u)
			more = append(more, entry{Accept: &accepted{Update: u, Which: which{roaring.New()}}}, entry{End: &ending{Update: u}})
		}
	}
	for _, open := range slices.Sorted(maps.Keys(st.open)) {
		a := st.open[open]
		now, gone, lost := r.numbers(a.Which.numbers())
		changed := *a
		changed.Which = newWhich(now)
		if st.open[a.ID] = &changed; lost > 0 {
			u := a.Update
			u.State, u.Error, u.Ended = Failed, missing(gone, id), at
			more = append(more, entry{End: &ending{Update: u}})
			s.remapped = append(s.remapped, u)
		}
	}
	return s.rotate(more)
}

// missing says which records another table does not have, as far as there is room.
func missing(gone []string, id Identity) string {
	const most = 20
	more := ""
	if len(gone) > most {
		gone, more = gone[:most], fmt.Sprintf(" and %d more", len(gone)-most)
	}
	return fmt.Sprintf("the records %s do not have %s%s", id.Records, strings.Join(gone, ", "), more)
}

// Remapped is the updates that ended when the directory was opened with another table than
// before: what clients lost, each with what in its Error.
func (s *Store) Remapped() []Update { return s.remapped }

// renumbering leads from one table's records to another's, by name. Several records of one
// name are told apart by their order, as long as there are as many of them.
type renumbering struct {
	names    []string
	old, now map[string][]int // numbers of a name's records, ascending
}

func numbersOf(names []string) map[string][]int {
	out := make(map[string][]int, len(names))
	for i, name := range names {
		out[name] = append(out[name], i)
	}
	return out
}

// numbers is where records are now, ascending, the names of those that are nowhere, and how
// many these are. A client that wanted all of a name wants all of it. For one that wanted some,
// and there are fewer or more now, it is not known which.
func (r *renumbering) numbers(which []int) (now []int, gone []string, lost int) {
	byName := map[string][]int{}
	for _, rec := range which {
		byName[r.names[rec]] = append(byName[r.names[rec]], rec)
	}
	for name, mine := range byName {
		old, there := r.old[name], r.now[name]
		switch {
		case len(there) > 0 && len(mine) == len(old):
			now = append(now, there...)
		case len(there) == len(old):
			for _, rec := range mine {
				now = append(now, there[slices.Index(old, rec)])
			}
		case len(there) == 0:
			gone, lost = append(gone, name), lost+len(mine)
		default:
			gone = append(gone, fmt.Sprintf("%s (%d of %d, and there are %d)", name, len(mine), len(old), len(there)))
			lost += len(mine)
		}
	}
	slices.Sort(now)
	slices.Sort(gone)
	return now, gone, lost
}
