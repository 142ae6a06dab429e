// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressLine: a command that is done within two seconds says nothing of itself; one that
// takes longer has one line, no wider than the screen, that goes away before anything else
// is written.
func TestProgressLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := &progress{screen: &screen, width: func() int { return 30 }}
		p.watch("textpoke run")
		p.say("1 of 8 rows")
		time.Sleep(patience - time.Millisecond)
		if screen.Len() > 0 {
			t.Errorf("%q before anybody has waited", screen.String())
		}
		wrote := func(what, want string) {
			t.Helper()
			synctest.Wait()
			if screen.String() != want {
				t.Errorf("%s: %q, want %q", what, screen.String(), want)
			}
			screen.Reset()
		}
		time.Sleep(2 * time.Millisecond)
		wrote("after two seconds", "\r\x1b[K1 of 8 rows (2s)")
		p.say("2 of 8 rows and more than fits")
		wrote("a long line", "\r\x1b[K2 of 8 rows and more tha (2s)")
		if _, err := p.Write([]byte("warning\n")); err != nil {
			t.Fatal(err)
		}
		wrote("beside a warning", "\r\x1b[Kwarning\n")
		time.Sleep(time.Second)
		p.unwatch()
		wrote("at the end", strings.Repeat("\r\x1b[K2 of 8 rows and more tha (2s)", 1)+
			"\r\x1b[K2 of 8 rows and more tha (3s)\r\x1b[K")
		p.say("too late")
		time.Sleep(10 * time.Second)
		wrote("after the end", "")
	})
	var nobody *progress
	nobody.watch("textpoke run")
	nobody.say("1 of 8 rows")
	nobody.unwatch()
}
