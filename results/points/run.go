// SPDX-License-Identifier: Apache-2.0

package points

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

// Run is what all points of a sweep have in common.
type Run struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision"`
	Request  choice.Request    `json:"request"` // with the choices that rows depend on
	Inputs   map[string]string `json:"inputs"`  // SHA-256 of each file that is read, by its name
	Columns  string            `json:"columns"` // of all tables, by name
	Points   int               `json:"points"`
}

// NewRun is the run whose tables are to be written with a manifest. The ignored choices say how points are done, and
// rows do not depend on them.
func NewRun(m *results.Manifest, tables []results.Table, n int, ignored ...string) Run {
	r := Run{Version: m.Version, Revision: m.Revision, Request: choice.ParseArgs(m.Args).Without(ignored...), Points: n,
		Inputs: maps.Clone(m.Inputs)}
	if r.Inputs == nil {
		r.Inputs = map[string]string{}
	}
	for _, t := range tables {
		for _, c := range t.Columns {
			r.Columns += t.Name + "." + c.Name + " "
		}
	}
	return r
}

// written is the run whose tables a manifest describes.
func written(m *results.Manifest, ignored ...string) Run {
	var tables []results.Table
	for _, f := range m.Files {
		tables = append(tables, results.Table{Name: strings.TrimSuffix(f.Name, ".csv"), Columns: f.Columns})
	}
	n := 0
	if m.Part != nil {
		n = m.Part.Points
	}
	return NewRun(m, tables, n, ignored...)
}

// plain is the run as it is read back: names of files need not be text.
func (r Run) plain() (out Run) {
	data, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return r // the types rule it out
	}
	return out
}

// facts are all that the run is, by what people call it.
func (r Run) facts() map[any]string {
	f := map[any]string{"version": r.Version, "revision": r.Revision, "command": r.Request.Name, "columns": r.Columns,
		"combinations": strconv.Itoa(r.Points)}
	for name, texts := range r.Request.Config {
		f[choice.Name(name)] = strings.Join(texts, ",")
	}
	for name, sum := range r.Inputs {
		f["SHA-256 of "+name] = sum
	}
	return f
}

// differs says how another run differs from this one; inThere and inHere name the two. It is nil for equal runs.
func (r Run) differs(there Run, inThere, inHere string) error {
	is, was := r.facts(), there.facts()
	both := maps.Clone(is)
	maps.Copy(both, was)
	var errs []error
	for _, what := range slices.SortedFunc(maps.Keys(both), func(a, b any) int {
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}) {
		if is[what] != was[what] {
			errs = append(errs, choice.Errorf("%s: %s %s, %s %s", what, cmp.Or(was[what], "none"), inThere,
				cmp.Or(is[what], "none"), inHere))
		}
	}
	return errors.Join(errs...)
}
