// SPDX-License-Identifier: Apache-2.0

package force

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/release"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
)

// Case is a counterexample as a schedule of a kernel.
type Case struct {
	Name     string          // of the museum's case
	Releases string          // that have it
	Since    release.Numbers // the first that shows it; the zero value for any
	CPUs     int             // of the machine
	Action   string          // of the guest; MODULE stands for a file that somebody gives
	Site     string          // a function whose call site the steps are about; "" for none
	Modules  int             // files that the action takes
	Breaks   []string        // what the console says where the kernel broke; none where the steps see it
	Steps    []Step
}

//go:embed cases/*.schedule
var schedules embed.FS

// Cases are those that can be forced, by name.
var Cases = sync.OnceValue(func() []Case { return inputs.Shipped(schedules, "cases", Read) })

// Named finds a case.
func Named(name string) (*Case, error) {
	c, err := spelling.Find("schedule of bug", name, Cases(), func(c Case) string { return c.Name })
	return &c, err
}

// Names are the cases'.
func Names() []string { return spelling.Each(Cases(), func(c Case) string { return c.Name }) }

// module is a file in an action.
const module = "MODULE"

// Read reads a schedule: headers, an empty line, steps. Text behind a # is a note for people, about the next step.
func Read(file, text string) (*Case, error) {
	c := &Case{}
	headers := map[string]func(string) error{
		"name": keep(&c.Name), "releases": keep(&c.Releases), "action": keep(&c.Action), "site": keep(&c.Site),
		"since": func(s string) (err error) { c.Since, err = release.Of(s); return err },
		"cpus":  func(s string) (err error) { c.CPUs, err = strconv.Atoi(s); return err },
		"breaks": func(s string) error {
			c.Breaks = append(c.Breaks, s)
			return nil
		},
	}
	var note []string
	for i, line := range strings.Split(text, "\n") {
		said, remark, _ := strings.Cut(line, "#")
		said, remark = strings.TrimSpace(said), strings.TrimSpace(remark)
		if remark != "" {
			note = append(note, remark)
		}
		if said == "" {
			continue
		}
		var err error
		if key, value, ok := strings.Cut(said, ":"); ok && headers[key] != nil && len(c.Steps) == 0 {
			err, note = headers[key](strings.TrimSpace(value)), nil
		} else {
			var st Step
			st, err = ParseStep(said)
			st.Note, note = strings.Join(note, " "), nil
			c.Steps = append(c.Steps, st)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", file, i+1, said, err)
		}
	}
	c.Modules = strings.Count(c.Action, module)
	if c.Name == "" || c.Action == "" || c.CPUs < 2 || len(c.Steps) == 0 || c.Steps[len(c.Steps)-1].kind != letGo {
		return nil, fmt.Errorf("%s: want a name, an action, 2 CPUs or more, and steps that end with %q", file, "go")
	}
	return c, nil
}

// keep is a header whose text is kept.
func keep(to *string) func(string) error {
	return func(s string) error { *to = s; return nil }
}

// symbol finds the first of some functions or variables that an image has, each with an offset where it is NAME+OFFSET. A
// number is an address of its own.
func symbol(k *image.Kernel, names []string) (uint64, error) {
	for _, place := range names {
		if at, err := strconv.ParseUint(place, 0, 64); err == nil {
			return at, nil
		}
		name, offset, _ := strings.Cut(place, "+")
		n, err := strconv.ParseUint("0"+offset, 10, 16)
		if at, ok := k.Addr(name); ok && err == nil {
			return at + n, nil
		}
	}
	return 0, fmt.Errorf("the image has no %s", strings.Join(names, " nor "))
}

// shows tells why a case would show nothing on a release.
func (c *Case) shows(name string) error {
	has, err := release.Of(name)
	if c.Since != (release.Numbers{}) && err == nil && has.Before(c.Since) {
		err = fmt.Errorf("%s shows on releases since %d.%d, and not on %s", c.Name, c.Since[0], c.Since[1], name)
	}
	return err
}

// Fits tells why a case cannot be forced on a kernel.
func (c *Case) Fits(k *image.Kernel) error {
	if err := c.shows(k.Release); err != nil {
		return err
	}
	for i, st := range c.Steps {
		names := [][]string{st.place}
		for _, cond := range slices.Concat(st.when, st.unless) {
			names = append(names, cond.symbols())
		}
		for _, list := range names {
			if _, err := symbol(k, list); err != nil && list != nil {
				return fmt.Errorf("step %d: %s: %w", i+1, st.Text, err)
			}
		}
	}
	if c.Site == "" {
		return nil
	}
	_, err := c.site(k)
	return err
}

// site is the call site of the case's function.
func (c *Case) site(k *image.Kernel) (uint64, error) {
	at, err := symbol(k, []string{c.Site})
	if err != nil {
		return 0, err
	}
	const entry = 16 // bytes in which a function's call site lies
	i := slices.IndexFunc(k.Records.Sites, func(site uint64) bool { return at <= site && site < at+entry })
	if i < 0 {
		return 0, fmt.Errorf("%s cannot be traced in this image", c.Site)
	}
	return k.Records.Sites[i], nil
}
