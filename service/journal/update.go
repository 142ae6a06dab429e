// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring"
)

// State is how far an update has got.
type State string

// The states. The first three are on their way, the others are final.
const (
	Queued    State = "queued"
	Held      State = "held"    // it waits until it fits into a budget; never in the file
	Running   State = "running" // an update of the text carries it out; never in the file
	Live      State = "live"
	Failed    State = "failed" // every site is as it was before
	Cancelled State = "cancelled"
	Expired   State = "expired" // its deadline came first
)

// States lists them all.
func States() []State { return []State{Queued, Running, Live, Failed, Cancelled, Expired, Held} }

// Final tells whether nothing changes any more.
func (s State) Final() bool { return s != Queued && s != Held && s != Running }

// Update is what one client asked for, and what became of it.
type Update struct {
	ID      int64  `json:"id"` // ascending in the order of acceptance, never used twice
	Client  string `json:"client"`
	Key     string `json:"key,omitempty"` // the client's own name for it, "" for none
	Ops     string `json:"ops"`
	Enable  bool   `json:"enable"`
	Set     bool   `json:"set,omitempty"` // its client wants these records with the ops and no others; goes with Enable
	Records int    `json:"records"`       // how many it is about
	// Lease is for how many seconds its client wants what it wants with the ops, unless it renews
	// that; 0: for ever. Of an update that disables it says nothing.
	Lease int64  `json:"lease,omitempty"`
	State State  `json:"state"`
	Batch int64  `json:"batch,omitempty"` // number of the text's update that carried it out, 0: none yet
	Phase string `json:"phase,omitempty"` // step that this one is at, while it is running, or what it is held for; never in the file
	Error string `json:"error,omitempty"` // why it failed
	// Fits is when it fits, of one that is held; never in the file.
	Fits time.Time `json:"fits,omitzero"`

	// Receipt is of the text's update that carried it out; nil for none.
	Receipt *Receipt `json:"receipt,omitempty"`

	// The zero time: not yet, or none.
	Submitted time.Time `json:"submitted,omitzero"`
	Began     time.Time `json:"began,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"`
}

// HasEnded tells whether nothing more will become of it.
func (u *Update) HasEnded() bool { return !u.Ended.IsZero() }

// Receipt is the forecast of an update of the text, and the interrupts counted around it.
type Receipt struct {
	Row      string    `json:"row"` // of /proc/interrupts
	Forecast *Forecast `json:"forecast,omitempty"`
	Patcher  *int      `json:"patcher,omitempty"` // the CPU that all of the update was carried out on; nil if there were several
	Taken    []Taken   `json:"taken"`             // by every CPU that was online, whoever sent them
}

// Missed tells whether the forecast does not hold: a CPU other than the patcher's took fewer, or each of them took more,
// which others may have sent.
func (r *Receipt) Missed() bool {
	if r == nil || r.Forecast == nil || r.Patcher == nil {
		return false
	}
	receivers, above := 0, 0
	for _, t := range r.Taken {
		switch {
		case t.CPU == *r.Patcher:
			continue
		case t.Interrupts < int64(r.Forecast.Least):
			return true
		case t.Others > 0:
			above++
		}
		receivers++
	}
	return receivers > 0 && above == receivers
}

// Forecast is the interrupts that each CPU but the patcher's was to take, and between what bounds.
type Forecast struct {
	Interrupts int  `json:"interrupts"`
	Least      int  `json:"least"`
	Most       int  `json:"most"`
	OrMore     bool `json:"or_more,omitempty"` // there is no upper bound
}

// Taken is the interrupts that one CPU took.
type Taken struct {
	CPU        int   `json:"cpu"`
	Interrupts int64 `json:"interrupts"`
	Others     int64 `json:"others"` // of them, those that the update has not sent, at the least
}

// Order is an update as it is accepted: with everything that is needed to carry
// it out after a restart.
type Order struct {
	Update
	Which  []int  // numbers of its records, ascending
	Digest string // of the request, to tell whether a key is used for another one
	// Match is what Tag must have been when the update is accepted, with nothing of the client's
	// and ops' on its way; "" for whatever it was.
	Match string
	// Over, where set, has the update accepted only if the lease is over at that time.
	Over time.Time
	// Unsynced is for an update of which its client is told nothing before its end: it is not waited
	// for until the update is on the disk. A kill leaves it there, a power cut may not, until Store.Sync
	// has returned, or anything else is written that does not say so.
	Unsynced bool
}

// Want is what a client wants with one ops of its own.
type Want struct {
	Client, Ops string
	Which       []int
	Tag         string // another one for each Which of a client and ops
	Lease       Lease
}

// Lease is how long something is wanted; the zero value is for ever.
type Lease struct {
	Seconds int64     `json:"seconds,omitempty"` // that each renewal adds
	Until   time.Time `json:"until,omitzero"`
}

// Query chooses updates, ascending by ID.
type Query struct {
	Client string // "" for all
	Ops    string // "" for all
	State  State  // "" for all
	After  int64  // only greater IDs
	Before int64  // only smaller IDs; 0 for all
	Newest bool   // descending by ID
	Limit  int    // 0: 100
}

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
