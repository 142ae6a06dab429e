// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/records"
)

// Picks are the records of a table that a scenario changes, as the kernel walks them. all
// is true where the scenario leaves it to others which they are.
func (k *Kernel) Picks(s Scenario, t *records.Table) (which []records.Addr, all bool, err error) {
	action, arg, err := ParseAction(string(s))
	if err != nil || free(action, arg) {
		return nil, true, err
	}
	_, updates, err := k.replayed(s, true, t)
	if err != nil || updates == 0 {
		return nil, false, err
	}
	r, err := k.NewReplay(t)
	if err != nil {
		return nil, false, err
	}
	which, err = action.picks(&asked{r, arg, t})
	return which, false, err
}

// free tells whether an action takes any records.
func free(a Action, arg string) bool { return arg == "" && a.Argument == "FILTER" }

func pickFilter(a *asked) ([]records.Addr, error) { return a.chosenBy(a.arg) }

func pickChange(a *asked) ([]records.Addr, error) {
	from, to, _ := strings.Cut(a.arg, ">")
	which, _, err := a.changed(from, to)
	return which, err
}

func pickSymbol(a *asked) ([]records.Addr, error) { return a.chosenBy(cmp.Or(a.arg, defaultSymbol)) }

func pickFirst(a *asked) ([]records.Addr, error) {
	n, _, err := a.first()
	if err != nil || a.table == nil {
		return nil, cmp.Or(err, errNoTable)
	}
	return a.table.Addrs()[:n], nil
}

// changed are the records that only one of two filters chooses, and those of the first.
func (a *asked) changed(from, to string) (changed, old []records.Addr, err error) {
	if old, err = a.chosenBy(from); err != nil {
		return nil, nil, err
	}
	now, err := a.chosenBy(to)
	if err != nil {
		return nil, nil, err
	}
	seen := map[records.Addr]int{}
	for _, at := range slices.Concat(old, now) {
		seen[at]++
	}
	for _, at := range a.table.Addrs() {
		if seen[at] == 1 {
			changed = append(changed, at)
		}
	}
	if len(changed) == 0 {
		return nil, nil, fmt.Errorf("filters %q and %q choose the same records", from, to)
	}
	return changed, old, nil
}
