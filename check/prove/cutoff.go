// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check/cutoff"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// ErrDisagree says that the views and the cutoff do not say the same: one of them is
// wrong.
var ErrDisagree = errors.New("the views say proved, and a machine breaks all the same")

// Second asks the other way to any number of CPUs and sites, which has nothing to do with
// views: a search of the machine of one site that stands for every larger one, if there is
// such a machine. Cutoff then says its verdict and its CPUs, or which condition fails, and
// whether it stands for any number of sites as well. A search that finds what the views
// have proved away is ErrDisagree.
func (r *Row) Second(ctx context.Context, o explore.Options) error {
	q := *r.Question
	q.Sites, q.Roles = 1, slices.Repeat([]cpus.Role{cpus.Busy}, 2)
	if q.Model.Code.Path.Tells() {
		q.Roles = append(q.Roles, cpus.Isolated)
	}
	if err := q.Build(); err != nil {
		return err
	}
	a, err := cutoff.Of(ctx, q.Model, 0)
	if err != nil {
		return err
	}
	if !a.Holds() {
		var names []string
		for _, c := range a.Failed() {
			names = append(names, c.Name)
		}
		r.Cutoff = "none: " + strings.Join(names, ", ")
		return nil
	}
	found, err := explore.Explore(ctx, a.Model, o)
	if err != nil {
		return err
	}
	r.Cutoff = fmt.Sprintf("%s with cpus %s", found.Verdict, cpus.FormatRoles(a.Roles))
	if r.Verdict == Proved && found.Verdict == explore.Unsafe {
		return fmt.Errorf("%s %s: %w: %s", r.Arch.Traits().Name, r.Protocol, ErrDisagree, found.Violation)
	}
	if found.Verdict != explore.Safe {
		return nil
	}
	if q.Model.SharesReferences() { // a CPU may get in here because another one holds elsewhere
		q.Setup.Roles = a.Examined
	}
	sites, err := anySites(ctx, &q.Setup, o)
	r.Cutoff += sites
	return err
}

// anySites says of what is safe with one site, alone, of how many it is.
func anySites(ctx context.Context, s *explore.Setup, o explore.Options) (string, error) {
	a, err := cutoff.Sites(ctx, s, 0)
	if err != nil || !a.Holds() {
		return " and one site", err
	}
	cpus, err := cutoff.Of(ctx, a.Model, 0)
	if err != nil || !cpus.Holds() {
		return " and one site", err
	}
	found, err := explore.Explore(ctx, cpus.Model, o)
	if err != nil || found.Verdict != explore.Safe { // perhaps a false alarm
		return " and one site", err
	}
	return " and any sites", nil
}
