// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// TestDeadlineBeyond2262: an update that may wait until the year 9999 is carried out by the next
// start, and not taken for one whose time was up long ago.
func TestDeadlineBeyond2262(t *testing.T) {
	w := newWorld(t)
	st, err := journal.Open(t.Context(), w.dir, Identity(w.Sim.Table))
	if err != nil {
		t.Fatal(err)
	}
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	u, err := st.Accept(journal.Order{Which: []int{1}, Digest: "d", Update: Update{Client: "a", Ops: "o", Enable: true,
		Records: 1, Submitted: time.Now().UTC(), Deadline: last}}, func(Update) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil { // as after a kill
		t.Fatal(err)
	}
	s, _ := w.start(t)
	if u, err = s.Update(t.Context(), u.ID); err != nil || u.State != journal.Live || !u.Deadline.Equal(last) {
		t.Errorf("%+v, %v", u, err)
	}
}
