// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring"
)

// entry is what one frame says: one of these.
type entry struct {
	Begin  *beginning `json:"begin,omitempty"`
	Accept *accepted  `json:"accept,omitempty"`
	End    *ending    `json:"end,omitempty"`
	Want   *wanted    `json:"want,omitempty"`
	Run    *keptRun   `json:"run,omitempty"`
	Forget *forgotten `json:"forget,omitempty"`
	Renew  *renewed   `json:"renew,omitempty"`
	File   *kept      `json:"file,omitempty"`
	Whole  bool       `json:"whole,omitempty"` // the last one of a backup
}

// beginning is the first entry of every segment. The wishes, open updates and runs of that moment
// follow it, so that older segments hold only updates that have ended.
type beginning struct {
	Version  int    `json:"version"`
	Records  string `json:"records"` // name of the table
	Hash     string `json:"hash"`
	Count    int    `json:"count"`
	Names    string `json:"names,omitempty"` // the file with the names of its records
	NamesSum string `json:"names_sum,omitempty"`
	Link     link   `json:"link"`           // of the frame before
	Batch    int64  `json:"batch"`          // greatest number of a batch that was ever answered
	Update   int64  `json:"update"`         // the last ID of an update
	LastRun  int64  `json:"run"`            // and of a run
	Gone     int64  `json:"gone,omitempty"` // updates up to this ID that have ended are not kept
	Backup   bool   `json:"backup,omitempty"`
	Ends     bool   `json:"ends,omitempty"` // with entry.Whole: backups of earlier programs do not
	// Spent is until when each allowance has been spent.
	Spent map[string]time.Time `json:"spent,omitempty"`
}

// Spent says, as of a time, until when allowances are spent; those until before it are not any more.
type Spent struct {
	At    time.Time            `json:"at"`
	Until map[string]time.Time `json:"until"`
}

// accepted is an Order.
type accepted struct {
	Update
	Which  which     `json:"which"`
	Digest string    `json:"digest"`
	Over   time.Time `json:"over,omitzero"` // see Order.Over
}

// ending is how an update ended. One that is live changes what its client wants.
type ending struct {
	Update
	Past  bool   `json:"past,omitempty"`  // its client's wishes after it stand in entries of their own
	Spent *Spent `json:"spent,omitempty"` // on it and those that ended with it; nil: nothing, or the first of them says it
}

// wanted is what a client wants, in whole.
type wanted struct {
	Client string `json:"client"`
	Ops    string `json:"ops"`
	Which  which  `json:"which"`
	Lease  Lease  `json:"lease,omitzero"`
}

// renewed says that a client, or every client, which is "", still wants what it has leased.
type renewed struct {
	Client string    `json:"client"`
	At     time.Time `json:"at"`
}

// forgotten says what is not kept any more.
type forgotten struct {
	Updates int64   `json:"updates,omitempty"` // those that have ended, up to this ID
	Runs    []int64 `json:"runs,omitempty"`
}

// kept is a file of a run: in a backup, which is one file.
type kept struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// which is numbers of records.
type which struct{ *roaring.Bitmap }

func newWhich(ns []int) which {
	w := which{roaring.New()}
	for _, n := range ns {
		w.Add(uint32(n))
	}
	w.RunOptimize()
	return w
}

// numbers is them, ascending; nil for none.
func (w which) numbers() (ns []int) {
	for _, n := range w.ToArray() {
		ns = append(ns, int(n))
	}
	return ns
}

// MarshalJSON writes base64 of https://github.com/RoaringBitmap/RoaringFormatSpec.
func (w which) MarshalJSON() ([]byte, error) {
	text, err := w.ToBase64()
	return fmt.Appendf(nil, "%q", text), err
}

// UnmarshalJSON reads that. The frame's sum was looked at before.
func (w *which) UnmarshalJSON(text []byte) error {
	if len(text) < 2 {
		return errors.New("want base64 of a bitmap")
	}
	w.Bitmap = roaring.New()
	_, err := w.FromBase64(string(text[1 : len(text)-1]))
	return err
}

// below refuses numbers that a table of so many records does not have; 0 for one that is not
// known, where the beginning of an old segment is damaged.
func (w which) below(count int) error {
	if count > 0 && !w.IsEmpty() && int(w.Maximum()) >= count {
		return fmt.Errorf("record %d: there are %d", w.Maximum(), count)
	}
	return nil
}
