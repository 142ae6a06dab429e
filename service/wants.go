// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/service/journal"
)

// Want is what a client wants with one ops of its own.
type Want = journal.Want

// WantedBy is the records of a symbol or an address, and who wants which of them.
func (s *Service) WantedBy(name string) (found []Record, wants []Want, err error) {
	var which []int
	for _, i := range s.names.find(name) {
		which = append(which, int(i))
	}
	slices.Sort(which)
	if which == nil {
		return nil, nil, fmt.Errorf("%q: no such symbol or address: %w", clip(name), ErrNotFound)
	}
	return s.records(which), s.store.WantedBy(which), nil
}

// Client lists a client's wishes, by ops, and its updates on their way. A client that has never
// asked for anything wants nothing.
func (s *Service) Client(client string) (wants []Want, open []Update) {
	for _, p := range s.pending() {
		if u := p.update(); u.Client == client {
			open = append(open, u)
		}
	}
	return s.store.WantsOf(client), open
}

// Renew has the leases of a client begin again.
func (s *Service) Renew(client string) error { return s.store.Renew(client, s.cfg.Now()) }

// EndLeases takes away what clients want by leases that are over: an update of theirs, as if they
// had asked for it. One that cannot be accepted now is tried again by the next call.
func (s *Service) EndLeases(ctx context.Context) error {
	now := s.cfg.Now()
	if _, why := s.quiet(now); why != "" { // they are over afterwards, too
		return nil
	}
	var errs []error
	for _, w := range s.store.Over(now) {
		u, err := s.Submit(ctx, Request{Client: w.Client, Ops: w.Ops, Enable: true, Set: true, Match: w.Tag, over: now})
		switch {
		case err == nil:
			s.log.Info("lease over", zap.String("client", w.Client), zap.String("ops", w.Ops), zap.Int64("update", u.ID))
		case !errors.Is(err, ErrChanged): // it has been renewed, or is on its way
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Ops is what a client wants with one ops, and its tag.
func (s *Service) Ops(client, ops string) (found []Record, tag string) {
	for _, w := range s.store.WantsOf(client) {
		if w.Ops == ops {
			return s.records(w.Which), w.Tag
		}
	}
	return nil, s.store.Tag(client, ops)
}
