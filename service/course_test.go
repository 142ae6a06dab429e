// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// TestCourse: the observer is told of each update once, with its client's trace and moments that follow each other.
func TestCourse(t *testing.T) {
	told := make(chan service.Course, 9)
	m := started(t, setup{dir: t.TempDir(), records: "gen:n=16", cpus: "2", observer: service.Observer{
		Ended: func(c service.Course) { told <- c }}})
	all, err := m.names()
	if err != nil {
		t.Fatal(err)
	}
	want := service.Parent{Trace: strings.Repeat("a", 32), Span: strings.Repeat("b", 16)}
	before := time.Now()
	for _, waits := range []bool{false, true} {
		r := request("c", all[:1], !waits)
		r.Parent, r.Waits = want, waits
		u, err := m.Submit(t.Context(), r)
		if err == nil {
			u, err = m.Wait(t.Context(), u.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := <-told
		if c.Update != u || c.Parent != want || c.Waits != waits {
			t.Errorf("%+v of %+v", c, u)
		}
		for _, next := range []time.Time{c.Asked, c.Handed, c.Written, c.Taken, c.Switched, c.Told} {
			if !next.After(before) {
				t.Errorf("%v is not after %v: %+v", next, before, c)
			}
			before = next
		}
	}
	if len(told) > 0 {
		t.Errorf("one more: %+v", <-told)
	}
}
