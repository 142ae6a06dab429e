// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

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

// seconds are whole ones, as headers have them.
func (e *rateError) seconds() string { return strconv.Itoa(int(math.Ceil(e.after.Seconds()))) }

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
