// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Access is what a request may do.
type Access uint8

// The accesses; each includes those before it.
const (
	Open Access = iota // what anybody may: ask for health, version, this API and the page
	Read
	Full
)

// Tokens say who may do what. The zero value lets everybody do everything.
type Tokens struct{ entries []token }

// token is a hash of a token, so that all are of one length and none is in a dump
// of memory.
type token struct {
	sum    [sha256.Size]byte
	access Access
}

// shortestToken is how many characters a token has at least: 16 random letters or
// digits cannot be guessed.
const shortestToken = 16

// ReadTokens reads lines "full TOKEN" and "read TOKEN"; empty lines and those that
// begin with # say nothing. Errors name file and line, and never a token.
func ReadTokens(r io.Reader, name string) (Tokens, error) {
	var t Tokens
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		access, ok := map[string]Access{"full": Full, "read": Read}[words[0]]
		switch {
		case !ok || len(words) != 2:
			return Tokens{}, fmt.Errorf("%s:%d: want full or read, a blank, and a token", name, n)
		case len(words[1]) < shortestToken:
			return Tokens{}, fmt.Errorf("%s:%d: the token has %d characters, want at least %d", name, n, len(words[1]),
				shortestToken)
		}
		t.entries = append(t.entries, token{sha256.Sum256([]byte(words[1])), access})
	}
	if err := lines.Err(); err != nil {
		return Tokens{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(t.entries) == 0 {
		return Tokens{}, fmt.Errorf("%s: there is no token in it", name)
	}
	return t, nil
}

// None tells whether there are no tokens.
func (t Tokens) None() bool { return len(t.entries) == 0 }

// access is what a token allows. It takes the same time whatever the token is: all
// are compared, each in constant time.
func (t Tokens) access(presented string) Access {
	sum := sha256.Sum256([]byte(presented))
	best := 0
	for _, e := range t.entries {
		same := subtle.ConstantTimeCompare(sum[:], e.sum[:])
		best = subtle.ConstantTimeSelect(same, max(best, int(e.access)), best)
	}
	return Access(best)
}

// check refuses what the request's token does not allow.
func (t Tokens) check(r *http.Request, need Access) error {
	if need == Open || t.None() {
		return nil
	}
	scheme, presented, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || presented == "" {
		return problem(http.StatusUnauthorized, "Authorization", "want Bearer and a token")
	}
	switch have := t.access(strings.TrimSpace(presented)); {
	case have == Open:
		return problem(http.StatusUnauthorized, "Authorization", "no such token")
	case have < need:
		return problem(http.StatusForbidden, "Authorization", "this token may only read")
	}
	return nil
}
