// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// head is the last of a chain of commits: how many there have been, and what they
// wrote, each hashed together with the one before. It is in the database, in the same
// transaction, and after each commit in a file of its own. SQLite takes the first frame
// of its log that is damaged for the log's end
// (https://www.sqlite.org/walformat.html, 4.4): what was acknowledged behind it would be
// gone without a word. The head in the file knows that there was more.
type head struct {
	batch   int64 // greatest number of a batch that was ever answered
	commits int64
	chain   [sha256.Size]byte
}

// write writes a head into the database.
func (h *head) write(tx *sql.Tx) error {
	_, err := tx.Exec("UPDATE identity SET batch=?, commits=?, chain=?, sum=textpoke_sum(records, hash, count, ?, ?, ?)",
		h.batch, h.commits, h.chain[:], h.batch, h.commits, h.chain[:])
	return err
}

var errSums = errors.New("a row's sum does not match it")

// querier is a database or a transaction of it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readIdentity is what a database is about, and its head.
func readIdentity(ctx context.Context, db querier) (id Identity, h head, err error) {
	var chain []byte
	var sum int64
	if err := db.QueryRowContext(ctx, "SELECT records, hash, count, batch, commits, chain, sum FROM identity").Scan(
		&id.Records, &id.Hash, &id.Count, &h.batch, &h.commits, &chain, &sum); err != nil {
		return id, h, err
	}
	if copy(h.chain[:], chain) != len(h.chain) || sum != sumOf(id.Records, id.Hash, id.Count, h.batch, h.commits, chain) {
		return id, h, fmt.Errorf("identity: %w", errSums)
	}
	return id, h, nil
}

// txn is a transaction, and what it adds to the chain.
type txn struct {
	*sql.Tx
	next head
	sums []byte // of what it has written
}

// wrote notes the sum of something that was written.
func (tx *txn) wrote(sum int64) { tx.sums = binary.BigEndian.AppendUint64(tx.sums, uint64(sum)) }

// close writes the head that the transaction leads to; last, where nothing was written.
func (tx *txn) close(last head) error {
	if len(tx.sums) == 0 {
		tx.next = last
		return nil
	}
	tx.next.commits = last.commits + 1
	text := binary.BigEndian.AppendUint64(last.chain[:], uint64(tx.next.commits))
	tx.next.chain = sha256.Sum256(append(text, tx.sums...))
	return tx.next.write(tx.Tx)
}

// HeadName is the name of the file with the head of the chain.
const HeadName = "textpoke.head"

// tip is that file: two places, written in turn, of which one is whole whenever the
// power fails. It is not synced: a head that is older than the database's says nothing.
type tip struct {
	file string
	out  *os.File
}

const (
	tipMagic = "tpokhead"
	tipPlace = 512 // a sector: what is written to it is written or not
	tipLen   = len(tipMagic) + 8 + sha256.Size
)

func (h *head) encode() []byte {
	out := binary.BigEndian.AppendUint64([]byte(tipMagic), uint64(h.commits))
	out = append(out, h.chain[:]...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// decodeHead reads one place.
func decodeHead(b []byte) (h head, ok bool) {
	if len(b) < tipLen+4 || string(b[:len(tipMagic)]) != tipMagic ||
		crc32.ChecksumIEEE(b[:tipLen]) != binary.BigEndian.Uint32(b[tipLen:]) {
		return h, false
	}
	h.commits = int64(binary.BigEndian.Uint64(b[len(tipMagic):]))
	copy(h.chain[:], b[len(tipMagic)+8:])
	return h, true
}

// openTip opens the file of a directory, and makes it where it is missing.
func openTip(dir string) (t *tip, err error) {
	t = &tip{file: filepath.Join(dir, HeadName)}
	t.out, err = os.OpenFile(t.file, os.O_RDWR|os.O_CREATE, 0o600)
	return t, err
}

// read is the later of the two heads; none in a file that is new.
func (t *tip) read() (h head, empty bool, err error) {
	b, err := io.ReadAll(io.NewSectionReader(t.out, 0, 2*tipPlace))
	if err != nil {
		return h, false, err
	}
	found := false
	for at := 0; at < len(b); at += tipPlace {
		if one, ok := decodeHead(b[at:]); ok && (!found || one.commits > h.commits) {
			h, found = one, true
		}
	}
	if !found && len(b) > 0 {
		return h, false, &DamagedError{t.file, "neither head in it is whole"}
	}
	return h, !found, nil
}

// put writes a head down.
func (t *tip) put(h head) error {
	_, err := t.out.WriteAt(h.encode(), h.commits%2*tipPlace)
	return err
}

// follow holds a database's head against the file's. The file's may be the older one,
// since it is not synced, or of the commit after which the process was killed.
func (t *tip) follow(db head) error {
	known, empty, err := t.read()
	switch {
	case err != nil:
		return err
	case empty && db.commits > 0:
		return &DamagedError{t.file, "it is missing or empty, and nothing else says whether commits are lost " +
			"(textpoke restore makes a directory of a database alone)"}
	case known.commits > db.commits:
		return &DamagedError{t.file, fmt.Sprintf("of %d commits that were on the disk the database and its log have %d",
			known.commits, db.commits)}
	case known.commits == db.commits && known.chain != db.chain && !empty:
		return &DamagedError{t.file, "the database is of another history"}
	}
	return t.put(db)
}
