// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestTogetherRefuses: together wants seconds and two actions, of which the first is known; a module must be there.
func TestTogetherRefuses(t *testing.T) {
	for arg, want := range map[string]string{
		"together":                      "want seconds and some actions",
		"together:x:idle&churn":         "want seconds and some actions",
		"together:2:idle":               "want seconds and some actions",
		"together:2:walk&idle":          `the guest knows no action "walk"`,
		"together:2:reload:no.ko&churn": "open /no.ko: no such file",
		"reload:no/such.ko":             "open /no/such.ko: no such file",
		"stress:often":                  `parsing "often"`,
	} {
		if a, err := newAction(arg); err == nil || a != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", arg, err, want)
		}
	}
}
