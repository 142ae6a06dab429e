// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// modprobe loads a module, or with -a several.
func (c *course) modprobe(words []string) error {
	all := false
	names, err := options("a/all C/config= d/dirname= S/set-version= q/quiet s/syslog v/verbose b/use-blacklist", words,
		func(name, _ string) { all = all || name == "all" })
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return errors.New("no module is named")
	case !all:
		names = names[:1] // its parameters follow
	}
	return c.modules(names)
}

func (c *course) insmod(words []string) error {
	if len(words) == 0 {
		return errors.New("no file is named")
	}
	c.both("module-load:" + words[0])
	return nil
}

// moduleList has a name on each line (modules-load.d(5)).
func (c *course) moduleList(text string) error {
	var names []string
	for line := range strings.Lines(text) {
		if name := strings.TrimSpace(line); name != "" && !strings.ContainsAny(name[:1], "#;") {
			names = append(names, name)
		}
	}
	return c.modules(names)
}

// modules loads modules, each behind those that it needs: modules.dep lists the one that is loaded first last.
func (c *course) modules(names []string) error {
	dir := cmp.Or(c.Modules, filepath.Join("/lib/modules", c.Kernel.Release))
	dep, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return fmt.Errorf("modules: %w", err)
	}
	needs := ledger.ModuleFiles(string(dep))
	var loaded []string
	for _, name := range names {
		all := needs[ledger.ModuleName(name)]
		if all == nil {
			c.unknown("module %s, which modules.dep does not have", name)
		}
		for _, file := range slices.Backward(all) {
			if !slices.Contains(loaded, file) {
				loaded = append(loaded, file)
				c.both("module-load:" + filepath.Join(dir, file))
			}
		}
	}
	return nil
}
