// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

//go:embed config/*.config
var fragments embed.FS

// fragment is a part of a configuration: lines as in .config. An option that is not there is off.
type fragment struct {
	name string
	text []byte
	must bool // somebody asked for it: every option must be had
}

// Fragments are the names of the parts that are added by name.
func Fragments() []string { return []string{"lockdep", "selftests"} }

// configurations are the fragments of a build: ours, and those that are asked for, by file or by name.
func (b *builder) configurations() (all []fragment, err error) {
	for _, name := range []string{"base", b.arch.Name} {
		text, err := fragments.ReadFile(path.Join("config", name+".config"))
		if err != nil {
			return nil, err
		}
		all = append(all, fragment{name, text, false})
	}
	for _, name := range b.Fragments {
		text, err := fragments.ReadFile(path.Join("config", name+".config"))
		if err != nil {
			if text, err = os.ReadFile(name); err != nil {
				return nil, fmt.Errorf("configuration %w, and %w", err, spelling.NotOneOf(name, Fragments()))
			}
		}
		all = append(all, fragment{name, text, true})
	}
	return all, nil
}

// configure writes the configuration. It leaves out, and tells, options of our own fragments
// that the release does not know. Options of the request that it does not know are an error.
func (b *builder) configure(ctx context.Context) error {
	var all []byte
	for _, p := range b.parts {
		all = append(append(all, p.text...), '\n')
	}
	if err := b.choose(ctx, all); err != nil {
		return err
	}
	got, err := os.ReadFile(b.path("objects/.config"))
	if err != nil {
		return err
	}
	have := options(got)
	for _, p := range b.parts {
		var not []string
		for option, value := range options(p.text) {
			if have[option] != value && (value != "n" || have[option] != "") {
				not = append(not, option+"="+value)
			}
		}
		if slices.Sort(not); p.must && len(not) > 0 {
			return fmt.Errorf("configuration %s: %s is not to be had of %s for %s", p.name, strings.Join(not, ", "),
				b.Config.Source, b.arch.Name)
		}
		b.Left = append(b.Left, not...)
	}
	return nil
}

// choose lets the source's own program complete the options. It does nothing where they are the
// same as before: make would take the configuration for a new one.
func (b *builder) choose(ctx context.Context, all []byte) error {
	wanted := b.path("wanted.config")
	if before, err := os.ReadFile(wanted); err == nil && bytes.Equal(before, all) {
		return nil
	}
	pending := wanted + ".new"
	if err := os.WriteFile(pending, all, 0o644); err != nil {
		return err
	}
	b.tell("configure")
	if err := b.make(ctx, "KCONFIG_ALLCONFIG="+pending, "allnoconfig"); err != nil {
		return err
	}
	return os.Rename(pending, wanted)
}

// options are what lines of a configuration set.
func options(text []byte) map[string]string {
	set := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		name, value, ok := strings.Cut(s.Text(), "=")
		if ok && strings.HasPrefix(name, "CONFIG_") {
			set[name] = value
		}
	}
	return set
}
