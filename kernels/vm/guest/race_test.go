// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestRaceRefuses: a race wants seconds and two modules that are there.
func TestRaceRefuses(t *testing.T) {
	for arg, want := range map[string]string{
		"":                   "want seconds and two files",
		"x:a.ko:b.ko":        "want seconds and two files",
		"2:a.ko":             "want seconds and two files",
		"2:a.ko:b.ko:c.ko":   "want seconds and two files",
		"2:a.ko:no/such.ko":  "open /no/such.ko: no such file",
		"-1:a.ko:no/such.ko": "open /no/such.ko",
	} {
		if a, err := newAction(moduleRace + ":" + arg); err == nil || a != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", arg, err, want)
		}
	}
}
