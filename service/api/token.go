// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Access is what a request may do.
type Access uint8

// The accesses; each includes those before it.
const (
	Open Access = iota // what anybody may: ask for health, version, this API and the page
	Read
	Own // ask for updates of the clients that the token names, and cancel them
	Full
)

// Tokens say who may do what. The zero value lets everybody do everything.
type Tokens struct{ entries []token }

// token is a hash of a token, so that all are of one length and none is in a dump
// of memory.
type token struct {
	sum     [sha256.Size]byte
	access  Access
	clients []string // of Own
}

// shortestToken is how many characters a token has at least: 16 random letters or
// digits cannot be guessed.
const shortestToken = 16

// ReadTokens reads lines "full TOKEN", "read TOKEN" and "own TOKEN CLIENT..."; empty lines
// and those that begin with # say nothing. Errors name file and line, and never a token.
func ReadTokens(r io.Reader, name string) (Tokens, error) {
	var t Tokens
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		access, ok := map[string]Access{"full": Full, "read": Read, "own": Own}[words[0]]
		switch {
		case !ok || len(words) < 2 || (access == Own) != (len(words) > 2):
			return Tokens{}, fmt.Errorf("%s:%d: want full or read and a token, or own, a token, and names of clients", name, n)
		case len(words[1]) < shortestToken:
			return Tokens{}, fmt.Errorf("%s:%d: the token has %d characters, want at least %d", name, n, len(words[1]),
				shortestToken)
		}
		t.entries = append(t.entries, token{sha256.Sum256([]byte(words[1])), access, words[2:]})
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

// access is what a token allows, and the clients that it names. It takes the same time
// whatever the token is: all are compared, each in constant time.
func (t Tokens) access(presented string) (Access, []string) {
	sum := sha256.Sum256([]byte(presented))
	best, at := 0, len(t.entries)
	for i, e := range t.entries {
		same := subtle.ConstantTimeCompare(sum[:], e.sum[:]) & subtle.ConstantTimeLessOrEq(best, int(e.access))
		best = subtle.ConstantTimeSelect(same, int(e.access), best)
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if Access(best) == Own {
		return Own, t.entries[at].clients
	}
	return Access(best), nil
}

// bearer is the token that a request shows.
func bearer(r *http.Request) string {
	scheme, presented, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(presented)
}

// check refuses what the request's token does not allow, and says whose updates it is
// about; nil for everybody's.
func (t Tokens) check(r *http.Request, need Access) (clients []string, err error) {
	if need == Open || t.None() {
		return nil, nil
	}
	presented := bearer(r)
	if presented == "" {
		return nil, problem(http.StatusUnauthorized, "Authorization", "want Bearer and a token")
	}
	have, clients := t.access(presented)
	switch {
	case have == Open:
		return nil, problem(http.StatusUnauthorized, "Authorization", "no such token")
	case have == Own && need > Own:
		return nil, problem(http.StatusForbidden, "Authorization", "this token may only read, and ask for updates of its clients")
	case have < need:
		return nil, problem(http.StatusForbidden, "Authorization", "this token may only read")
	}
	return clients, nil
}

// peerOf is who asks, where it is known (see peer).
func peerOf(r *http.Request) (name string, all, known bool) {
	conn, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		return "", false, false
	}
	return peer(conn)
}

// ofPeer is what somebody at a unix socket may do: root and the server's user everything, another user what a token of a
// line "own TOKEN USER" allows.
func ofPeer(name string, all bool, need Access) (clients []string, err error) {
	switch {
	case all || need == Open:
		return nil, nil
	case name == "" || need > Own:
		return nil, problem(http.StatusForbidden, "", "%q may read, and ask for updates of the client %q", name, name)
	}
	return []string{name}, nil
}

// mine refuses what is about a client that the request's token does not name.
func mine(w http.ResponseWriter, client string) error {
	if a, ok := w.(*answer); ok && a.clients != nil && !slices.Contains(a.clients, client) {
		return problem(http.StatusForbidden, "client", "%.40q: who asks may do so for %s", client, strings.Join(a.clients, ", "))
	}
	return nil
}

// rates is how many requests each token may make (Limits.Rate): all at once, and they come again evenly.
type rates struct {
	mu    sync.Mutex
	spent map[[sha256.Size]byte]time.Time // of each token, or of each user of a socket; see service.Limit
}

// rateError refuses a request that is one too many.
type rateError struct{ after time.Duration }

func (e *rateError) Error() string {
	return fmt.Sprintf("too many requests with this token: the next one fits after %v", e.after.Round(time.Millisecond))
}

// spend counts a request, and says in its answer how many are left (https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/).
func (h *Handler) spend(w http.ResponseWriter, r *http.Request) error {
	limit, now := h.cfg.Limits.Rate, time.Now()
	if limit.Max == 0 {
		return nil
	}
	who, _, _ := peerOf(r)
	if !h.tokens.Load().None() { // else anybody may show any token, and has no more requests for it
		who += "\x00" + bearer(r)
	}
	key := sha256.Sum256([]byte(who))
	h.rates.mu.Lock()
	until := h.rates.spent[key]
	fits := limit.Fits(now, until, 1)
	if !fits.After(now) {
		until = limit.Spend(now, until, 1)
		h.rates.spent[key] = until
	}
	h.rates.mu.Unlock()
	busy := max(until.Sub(now), 0)
	left := limit.Max - int(math.Ceil(float64(limit.Max)*float64(busy)/float64(limit.Period)))
	header := w.Header()
	header.Set("RateLimit-Policy", fmt.Sprintf(`"token";q=%d;w=%.0f`, limit.Max, math.Ceil(limit.Period.Seconds())))
	header.Set("RateLimit", fmt.Sprintf(`"token";r=%d;t=%.0f`, left, math.Ceil(busy.Seconds())))
	if fits.After(now) {
		return &rateError{fits.Sub(now)}
	}
	return nil
}
