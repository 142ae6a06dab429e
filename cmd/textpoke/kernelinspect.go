// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/files"
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
	cmd := &cobra.Command{
		Use: "inspect IMAGE", Short: "what a kernel's image is and holds", Args: cobra.ExactArgs(1),
		Long: "inspect unpacks a kernel's image and tells what in it can be patched, and how. Of a built-in kernel, such as\n" +
			"x86_64-6.12, it tells what is kept of its image." + imagesHelp,
		Example: "  textpoke kernel inspect /boot/vmlinuz\n" +
			"  textpoke kernel inspect x86_64-6.12\n" +
			"  textpoke kernel inspect vmlinuz --records table.csv --evidence",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseEmpty(cmd, "records", "ledger", "config", "modules"); err != nil {
				return err
			}
			if slices.Contains(ledger.Names(), args[0]) {
				return c.inspectKnown(cmd.Context(), args[0], f)
			}
			k, err := image.Open(args[0])
			if err != nil {
				return err
			}
			c.note(args[0])
			return c.inspect(cmd, k, f)
		},
	}
	c.prints(cmd, "", imageColumns.Table("kernel"))
	c.prints(cmd, "with --modules", moduleColumns.Table("modules"))
	c.prints(cmd, "with --evidence", evidenceColumns.Table("mechanisms"))
	cmd.Flags().StringVar(&f.records, "records", "",
		"write the table of records into this `file`: CSV where its name ends in .csv, else as the kernel lists it")
	cmd.Flags().
		StringVar(&f.ledger, "ledger", "", "write what predictions need into this `file`, which --kernel and predict read")
	cmd.Flags().
		StringVar(&f.modules, "modules", "", "print the modules below this `directory` instead, and what of each can be "+
			"patched")
	cmd.Flags().StringVar(&f.config, "config", "", "`file` with the kernel's configuration, where the image carries none")
	cmd.Flags().BoolVar(&f.evidence, "evidence", false, "print the mechanisms instead, and what in the code shows each")
	return offerArgs(cmd, ledger.Names)
}

// inspect prints what an image holds, and writes what was asked for.
func (c *common) inspect(cmd *cobra.Command, k *image.Kernel, f inspectFlags) error {
	if f.config != "" {
		b, err := os.ReadFile(f.config)
		if err != nil {
			return fmt.Errorf("--config: %w", err)
		}
		k.Config = string(b)
		c.note(f.config)
	}
	t, err := k.Table()
	if err != nil {
		return err
	}
	if f.records != "" {
		if err := writeTable(f.records, t); err != nil {
			return fmt.Errorf("--records: %w", err)
		}
	}
	if f.ledger != "" {
		own, err := ledger.FromImage(k)
		if err == nil {
			err = files.Write(f.ledger, 0o644, func(w io.Writer) error { return ledger.WriteFacts(w, own) })
		}
		if err != nil {
			return fmt.Errorf("--ledger: %w", err)
		}
	}
	switch {
	case f.modules != "":
		modules, err := modulesIn(f.modules, k.Arch.Name)
		if err != nil {
			return fmt.Errorf("--modules: %w", err)
		}
		return printRows(cmd.Context(), c, moduleColumns, "modules", modules)
	case f.evidence:
		return printRows(cmd.Context(), c, evidenceColumns, "mechanisms", evidenceOf(k))
	}
	return printRows(cmd.Context(), c, imageColumns, "kernel", []inspected{ofImage(k, t)})
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
var moduleColumns = results.Columns[*image.Module]{
	{Name: "module", Doc: "the file's name", Cell: func(m *image.Module) any { return m.Name }},
	{Name: "records", Kind: results.Integer,
		Doc: "patchable call sites", Cell: func(m *image.Module) any { return m.Records }},
	{Name: "static_call_sites", Kind: results.Integer, Doc: "each is patched by itself when the module is loaded",
		Cell: func(m *image.Module) any { return m.Sites }},
	{
		Name: "init_sites", Kind: results.Integer,
		Doc:  "of them, in text that is thrown away",
		Cell: func(m *image.Module) any { return m.SitesInit },
	},
	{Name: "branches", Kind: results.Integer,
		Doc: "of static keys", Cell: func(m *image.Module) any { return m.Branches }},
	{Name: "foreign_keys", Kind: results.Integer, Doc: "static keys that are not the module's own",
		Cell: func(m *image.Module) any { return len(m.Keys) }},
}

// writeTable writes records into a file that is whole, or not there.
func writeTable(path string, t *records.Table) error {
	write := records.WriteAddrs
	if strings.HasSuffix(path, ".csv") {
		write = records.WriteCSV
	}
	return files.Write(path, 0o644, func(w io.Writer) error { return write(w, t) })
}

// inspected is a kernel and its table of records.
type inspected struct {
	*image.Kernel        // nil where only what is kept of the image is there
	table                *records.Table
	arch, name, protocol string
	slots                int // 0 where they are unknown or there are none
}

func ofImage(k *image.Kernel, t *records.Table) inspected {
	n, _ := k.Slots()
	if n == image.Unlimited {
		n = 0
	}
	return inspected{k, t, k.Arch.Name, k.Release, k.Protocol(), n}
}

// inspectKnown prints what is kept of a built-in kernel's image, and writes what was asked for.
func (c *common) inspectKnown(ctx context.Context, name string, f inspectFlags) error {
	if f.modules != "" || f.config != "" {
		return fmt.Errorf("--modules and --config go with an image: %s is built in", name)
	}
	k, err := ledger.Open(name)
	if err != nil {
		return err
	}
	row := inspected{arch: k.Arch, name: k.Release, protocol: k.Protocol}
	if k.Table != "" {
		if row.table, err = records.Open(ctx, k.Table, records.Options{}); err != nil {
			return err
		}
	}
	if f.records != "" {
		if row.table == nil {
			return fmt.Errorf("--records: there is no table of the records of %s", name)
		}
		if err := writeTable(f.records, row.table); err != nil {
			return fmt.Errorf("--records: %w", err)
		}
	}
	if f.ledger != "" {
		if err := files.Write(f.ledger, 0o644, func(w io.Writer) error { return ledger.WriteFacts(w, k) }); err != nil {
			return fmt.Errorf("--ledger: %w", err)
		}
	}
	var evidence []mechanism
	for _, name := range slices.Sorted(maps.Keys(k.Facts.Mechanisms)) {
		m := k.Facts.Mechanisms[name]
		evidence = append(evidence, mechanism{name, m.Value, m.Evidence})
	}
	for _, name := range slices.Sorted(maps.Keys(k.Facts.Unknown)) {
		evidence = append(evidence, mechanism{name, results.Empty, k.Facts.Unknown[name]})
	}
	if f.evidence {
		return printRows(ctx, c, evidenceColumns, "mechanisms", evidence)
	}
	row.slots = k.Facts.Mechanisms[image.BatchSlots].Value
	return printRows(ctx, c, imageColumns, "kernel", []inspected{row})
}

// imageColumns are the columns of what an image holds.
var imageColumns = slices.Concat(
	results.Columns[inspected]{
		{Name: "arch", Doc: "instruction set", Cell: func(i inspected) any { return i.arch }},
		{Name: "release", Doc: "as uname -r has it", Cell: func(i inspected) any { return i.name }},
	},
	results.Columns[inspected]{
		{Name: "records", Kind: results.Integer,
			Doc: "patchable call sites, after boot", Cell: func(i inspected) any { return i.table.Len() }},
		{Name: "groups", Kind: results.Integer, Doc: "runs of records that are sorted inside",
			Cell: func(i inspected) any { return len(i.table.Groups()) }},
	}.When(func(i inspected) bool { return i.table != nil }),
	results.Columns[inspected]{
		{Name: "init_records", Kind: results.Integer, Doc: "in text that is thrown away after boot",
			Cell: func(i inspected) any { return i.Records.Init }},
		{Name: "invalid_records", Kind: results.Integer, Doc: "of weak functions that lost: never patched",
			Cell: func(i inspected) any { return i.Records.Invalid + i.Records.Empty }},
		{Name: "static_keys", Kind: results.Integer, Doc: "with branches in text that stays",
			Cell: func(i inspected) any { return len(i.Keys.Branches) }},
		{Name: "static_call_sites", Kind: results.Integer, Doc: "in text that stays",
			Cell: func(i inspected) any { return i.Sites.Entries - i.Sites.Init }},
		{Name: "trace_events", Kind: results.Integer,
			Doc: "in the core kernel", Cell: func(i inspected) any { return len(i.Events) }},
		{Name: "call_ops", Kind: results.Boolean, Doc: "each record has a literal that names its ops",
			Cell: func(i inspected) any { return i.CallOps() }},
		{Name: "direct_calls", Kind: results.Boolean, Doc: "functions can be attached to without the common entry",
			Cell: func(i inspected) any { return i.Direct() }},
		{Name: "bti", Kind: results.Boolean,
			Doc: "most functions begin with a landing pad", Cell: func(i inspected) any { return i.Records.LandingPads() }},
		{Name: "preempt", Doc: "model of preemption; empty where neither banner nor configuration say",
			Cell: func(i inspected) any { return results.OrEmpty(i.preempt()) }},
	}.When(func(i inspected) bool { return i.Kernel != nil }),
	results.Columns[inspected]{
		{Name: "protocol", Doc: "how records are changed; empty where that is not understood",
			Cell: func(i inspected) any { return results.OrEmpty(i.protocol) }},
		{Name: "slots", Kind: results.Integer,
			Doc:  "of the vector of patches; empty where there is none, the image does not say, or it grows",
			Cell: func(i inspected) any { return results.If(i.slots > 0, i.slots) }},
	},
	results.Columns[inspected]{
		{
			Name:   "form",
			Detail: true,
			Doc:    "how it was packed, from the outside in",
			Cell:   func(i inspected) any { return i.Form },
		},
		{Name: "symbols", Kind: results.Integer,
			Detail: true, Doc: "that the image names", Cell: func(i inspected) any { return len(i.All) }},
		{Name: "layout", Detail: true, Doc: "of its symbol table", Cell: func(i inspected) any { return i.Layout }},
		{Name: "sha256", Detail: true, Doc: "of the file", Cell: func(i inspected) any { return i.Hash }},
		{Name: "notes", Detail: true, Doc: "what was found by what it holds, and what was not found",
			Cell: func(i inspected) any { return results.OrEmpty(strings.Join(i.Notes, "; ")) }},
	}.When(func(i inspected) bool { return i.Kernel != nil }),
)

// preempt is the model of preemption, by the banner or else by the configuration.
func (i inspected) preempt() string {
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

var evidenceColumns = results.Columns[mechanism]{
	{Name: "mechanism", Doc: "what the code shows", Cell: func(m mechanism) any { return m.name }},
	{Name: "value", Kind: results.Integer, Doc: "how many, or 1 for yes; empty where it is not understood",
		Cell: func(m mechanism) any { return m.value }},
	{Name: "evidence", Doc: "what shows it", Cell: func(m mechanism) any { return m.shows }},
}

func evidenceOf(k *image.Kernel) (out []mechanism) {
	found, unknown := k.Mechanisms()
	for _, m := range found {
		out = append(out, mechanism{m.Name, m.Value, m.Evidence})
	}
	for _, u := range unknown {
		name, why, _ := strings.Cut(u, ": ")
		out = append(out, mechanism{name, results.Empty, why})
	}
	return out
}
