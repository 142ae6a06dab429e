// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

// imagesHelp says what IMAGE can be.
const imagesHelp = `

IMAGE is what a machine boots, or what that was made of: vmlinuz (bzImage), Image of arm64 and
riscv64, EFI zboot, the ELF file vmlinux; packed with gzip, xz, zstd, bzip2, lzma or lz4, or not.
It needs CONFIG_KALLSYMS, which every distribution has.`

// inspectFlags are what inspect writes and reads besides.
type inspectFlags struct {
	records, ledger, config, modules string
	evidence                         bool
}

func kernelInspect(c *common) *cobra.Command {
	var f inspectFlags
	cmd := newCommand("inspect IMAGE", func(cmd *cobra.Command, args []string) error {
		return c.inspect(cmd.Context(), args[0], &f)
	})
	cmd.Long = imagesHelp
	c.prints(cmd, "", imageColumns.Table("kernel"))
	c.prints(cmd, "with --modules", moduleColumns.Table("modules"))
	c.prints(cmd, "with --evidence", evidenceColumns.Table("mechanisms"))
	declare(cmd, "kernel inspect", &f)
	return offerArgs(cmd, ledger.Names)
}

// inspect prints what an image holds, or what is kept of a built-in kernel's, and writes what was asked for.
func (c *common) inspect(ctx context.Context, name string, f *inspectFlags) error {
	i, err := c.inspected(ctx, name, f)
	if err != nil {
		return err
	}
	if f.records != "" {
		if i.Table == nil {
			return fmt.Errorf("--records: there is no table of the records of %s", name)
		}
		write := records.WriteAddrs
		if strings.HasSuffix(f.records, ".csv") {
			write = records.WriteCSV
		}
		if err := files.Write(f.records, 0o644, func(w io.Writer) error { return write(w, i.Table) }); err != nil {
			return fmt.Errorf("--records: %w", err)
		}
	}
	if f.ledger != "" {
		facts, err := i.facts()
		if err == nil {
			err = files.Write(f.ledger, 0o644, func(w io.Writer) error { return ledger.WriteFacts(w, facts) })
		}
		if err != nil {
			return fmt.Errorf("--ledger: %w", err)
		}
	}
	switch {
	case f.modules != "":
		modules, err := modulesIn(f.modules, i.Arch)
		if err != nil {
			return fmt.Errorf("--modules: %w", err)
		}
		return printRows(ctx, c, moduleColumns, "modules", modules)
	case f.evidence:
		k, err := i.facts()
		if err != nil {
			return fmt.Errorf("--evidence: %w", err)
		}
		return printRows(ctx, c, evidenceColumns, "mechanisms", evidenceOf(k.Facts))
	}
	return printAnswer(ctx, c, i.answer(), imageColumns, "kernel", []*inspected{i})
}

// answer is what can be patched, and how, in a line.
func (i *inspected) answer() string {
	line := fmt.Sprintf("ANSWER: %s %s has %s records", i.Arch, i.Release, results.Thousands(i.Table.Len()))
	if i.Protocol != "" {
		line += ", which " + i.Protocol + " changes"
	}
	if i.Slots > 0 {
		line += fmt.Sprintf(", up to %d at once", i.Slots)
	}
	return line
}

// modulesIn reads all modules below a directory.
func modulesIn(dir, arch string) (out []*image.Module, err error) {
	paths, err := image.Modules(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		m, err := image.OpenModule(path)
		switch {
		case err != nil:
			return nil, err
		case m.Arch != arch:
			return nil, fmt.Errorf("%s is of %s, the image of %s", path, m.Arch, arch)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no modules (*.ko) below it", dir)
	}
	return out, nil
}

// moduleColumns are the columns of what modules hold.
var moduleColumns = results.Declare(declared, "module", map[string]func(*image.Module) any{
	"foreign_keys": func(m *image.Module) any { return len(m.Keys) },
})

// inspected is a kernel and its table of records.
type inspected struct {
	*image.Kernel           // nil where only what is kept of the image is there
	Table                   *records.Table
	Arch, Release, Protocol string
	Slots                   int // 0 where they are unknown or there are none
	facts                   func() (*ledger.Kernel, error)
}

// inspected opens an image, or a built-in kernel.
func (c *common) inspected(ctx context.Context, name string, f *inspectFlags) (*inspected, error) {
	if slices.Contains(ledger.Names(), name) {
		if f.modules != "" || f.config != "" {
			return nil, fmt.Errorf("--modules and --config go with an image: %s is built in", name)
		}
		return inspectedKnown(ctx, name)
	}
	k, err := image.Open(name)
	if err != nil {
		return nil, err
	}
	c.note(name)
	if f.config != "" {
		b, err := inputs.Read(f.config, maxSmall)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		k.Config = string(b)
		c.note(f.config)
	}
	n, _ := k.Slots()
	if n == image.Unlimited {
		n = 0
	}
	i := &inspected{Kernel: k, Arch: k.Arch.Name, Release: k.Release, Protocol: k.Protocol(), Slots: n,
		facts: func() (*ledger.Kernel, error) { return ledger.FromImage(k) }}
	i.Table, err = k.Table()
	return i, err
}

// inspectedKnown is what is kept of a built-in kernel's image.
func inspectedKnown(ctx context.Context, name string) (*inspected, error) {
	k, err := ledger.Open(name)
	if err != nil {
		return nil, err
	}
	i := &inspected{Arch: k.Arch, Release: k.Release, Protocol: k.Protocol, Slots: k.Facts.Mechanisms[image.BatchSlots].Value,
		facts: func() (*ledger.Kernel, error) { return k, nil }}
	if k.Table != "" {
		i.Table, err = records.Open(ctx, k.Table, records.Options{})
	}
	return i, err
}

// imageColumns are the columns of an image's contents.
var imageColumns = results.Declare(declared, "image", map[string]func(*inspected) any{
	"records":           func(i *inspected) any { return i.Table.Len() },
	"groups":            func(i *inspected) any { return len(i.Table.Groups()) },
	"invalid_records":   func(i *inspected) any { return i.Records.Invalid + i.Records.Empty },
	"static_keys":       func(i *inspected) any { return len(i.Keys.Branches) },
	"static_call_sites": func(i *inspected) any { return i.Sites.Entries - i.Sites.Init },
	"trace_events":      func(i *inspected) any { return len(i.Events) },
	"preempt":           func(i *inspected) any { return results.OrEmpty(i.preempt()) },
	"symbols":           func(i *inspected) any { return len(i.All) },
	"notes":             func(i *inspected) any { return results.OrEmpty(strings.Join(i.Notes, "; ")) },
})

// preempt is the model of preemption, by the banner or else by the configuration.
func (i *inspected) preempt() string {
	if p := i.Preempt(); p != "" {
		return p
	}
	for _, o := range []struct{ option, model string }{
		{"CONFIG_PREEMPT_RT", "rt"}, {"CONFIG_PREEMPT_DYNAMIC", "dynamic"}, {"CONFIG_PREEMPT_LAZY", "lazy"},
		{"CONFIG_PREEMPT", "full"}, {"CONFIG_PREEMPT_VOLUNTARY", "voluntary"}, {"CONFIG_PREEMPT_NONE", "none"},
	} {
		if image.ConfigValue(i.Config, o.option) == "y" {
			return o.model
		}
	}
	return ""
}

// mechanism is one row of evidence.
type mechanism struct {
	name  string
	value any
	shows string
}

var evidenceColumns = results.Declare[mechanism](declared, "evidence", nil)

func evidenceOf(f *ledger.Facts) (out []mechanism) {
	for _, name := range slices.Sorted(maps.Keys(f.Mechanisms)) {
		out = append(out, mechanism{name, f.Mechanisms[name].Value, f.Mechanisms[name].Evidence})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Unknown)) {
		out = append(out, mechanism{name, results.Empty, f.Unknown[name]})
	}
	return out
}
