// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Window is a part of every day, by the clock of the place, as minutes since midnight. One that ends before it begins
// goes over midnight.
type Window struct{ From, Until int }

const clock = "15:04"

// ParseWindow reads 08:00-18:00.
func ParseWindow(text string) (w Window, err error) {
	from, until, _ := strings.Cut(text, "-")
	a, err := time.Parse(clock, from)
	b, bad := time.Parse(clock, until)
	if w = (Window{minute(a), minute(b)}); err != nil || bad != nil || w.From == w.Until {
		return w, fmt.Errorf("%q: want two times of a day, such as 08:00-18:00", text)
	}
	return w, nil
}

func minute(at time.Time) int { return at.Hour()*60 + at.Minute() }

func (w Window) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", w.From/60, w.From%60, w.Until/60, w.Until%60)
}

// has tells whether a time is in it.
func (w Window) has(at time.Time) bool {
	now := minute(at)
	if w.From < w.Until {
		return w.From <= now && now < w.Until
	}
	return now >= w.From || now < w.Until
}

// quiet tells why nothing is switched at a time; nil where something is.
func (s *Service) quiet(at time.Time) error {
	for _, w := range s.cfg.Quiet {
		if w.has(at) {
			return fmt.Errorf("%w: nothing is switched at %v", ErrBudget, w)
		}
	}
	return nil
}

// afford refuses an update that comes at a quiet time, or would cost too much if it came alone. What is taken away because
// its lease is over may cost anything.
func (s *Service) afford(ctx context.Context, r *Request, which []int) error {
	if err := s.quiet(s.cfg.Now()); err != nil || len(s.cfg.Budget) == 0 || !r.over.IsZero() {
		return err
	}
	p, err := s.plan(ctx, r, which)
	if err != nil {
		return err
	}
	each := float64(p.Cost.IPIsPerCPU + p.Cost.OtherIPIsPerCPU)
	for _, l := range s.cfg.Budget {
		if _, there := p.Roles[l.Name]; (there || l.Name == "ipis") && each > l.Max {
			return fmt.Errorf("%w: %s=%.0f, and each would take %.0f interrupts", ErrBudget, l.Name, l.Max, each)
		}
	}
	return nil
}
