// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

func recordsCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "records", Short: "tables of patchable call sites: list, show, convert"}
	var opt records.Options
	f := cmd.PersistentFlags()
	f.StringVar(&opt.Kallsyms, "kallsyms", "", "`file` with the addresses that a list of functions lacks, "+
		"as /proc/kallsyms has them")
	f.StringVar(&opt.Arch, "arch", "", "instruction `set`, where the source does not tell: "+strings.Join(cpus.ArchNames(),
		", "))
	offer(cmd, "arch", cpus.ArchNames())
	cmd.AddCommand(recordsList(c), offerArgs(recordsShow(c, &opt), builtinRecords),
		offerArgs(recordsConvert(c, &opt), builtinRecords))
	return cmd
}

// builtinRecords are the names of the built-in tables.
func builtinRecords() (names []string) {
	for _, b := range records.Builtins() {
		names = append(names, b.Name)
	}
	return names
}

// openRecords opens what a command is about.
func (c *common) openRecords(cmd *cobra.Command, src string, opt *records.Options) (*records.Table, error) {
	if cmd.Flags().Changed("arch") {
		if _, err := named("arch", opt.Arch, cpus.ArchNames(), identity); err != nil {
			return nil, err
		}
	}
	if err := c.kallsyms(opt.Kallsyms); err != nil {
		return nil, err
	}
	c.note(src)
	return records.Open(cmd.Context(), src, *opt)
}

// builtinColumns are the columns of the list of built-in tables.
var builtinColumns = results.Columns[records.Builtin]{
	{Name: "name", Doc: "for --records", Cell: func(b records.Builtin) any { return b.Name }},
	{Name: "arch", Doc: "instruction set", Cell: func(b records.Builtin) any { return b.Arch }},
	{Name: "kernel", Doc: "version that the table was read from",
		Cell: func(b records.Builtin) any { return b.Kernel }},
	{Name: "records", Kind: results.Integer,
		Doc: "patchable call sites", Cell: func(b records.Builtin) any { return b.Records }},
	{Name: "about", Doc: "where it comes from", Cell: func(b records.Builtin) any { return b.About }},
}

func recordsList(c *common) *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "list", Short: "the built-in tables", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printRows(cmd.Context(), c, builtinColumns, "records", records.Builtins())
		},
	}, "", builtinColumns.Table("records"))
}

// sourcesHelp says what SRC, and --records, can be.
const sourcesHelp = `

SRC, as --records, is one of:
  NAME       a built-in table (textpoke records list)
  FILE       a kernel's list of functions (available_filter_functions_addrs), a vmlinux, module
             or program built with -fpatchable-function-entry, or CSV; packed or not
  gen:KEYS   a generated table: KEY=VALUE,... of
               n           records (40000)
               groups      groups of the core kernel (1)
               order       grouped (the default), sorted, random or descending
               spacing     mean bytes from record to record, a multiple of 8 (64)
               modules     share of records that live in modules (0)
               misaligned  share of records shifted by 4 bytes (0)
               seed        of all random choices (1)
               base        address where the core kernel starts (0xffffffff81000000)`

func recordsShow(c *common, opt *records.Options) *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "show SRC", Short: "what is in a table: counts, groups, spacing, modules, order breaks",
		Args:    cobra.ExactArgs(1),
		Long:    "show tells what is in a table: counts, groups, spacing, modules, order breaks." + sourcesHelp,
		Example: "  textpoke records show x86_64-6.12\n  textpoke records show gen:n=45000,groups=7,order=grouped",
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := c.openRecords(cmd, args[0], opt)
			if err != nil {
				return err
			}
			return printRows(cmd.Context(), c, shownColumns, "records", []shown{{t, t.Stats()}})
		},
	}, "", shownColumns.Table("records"))
}

// shown is a table and what is in it.
type shown struct {
	*records.Table
	records.Stats
}

// shownColumns are the columns of what is in a table.
var shownColumns = slices.Concat(
	results.Columns[shown]{
		{Name: "name", Doc: "as asked for", Cell: func(s shown) any { return s.Name() }},
		{Name: "arch", Doc: "instruction set, where the source tells",
			Cell: func(s shown) any { return results.OrEmpty(s.Arch()) }},
		{Name: "records", Kind: results.Integer,
			Doc: "patchable call sites", Cell: func(s shown) any { return s.Records }},
		{Name: "groups", Kind: results.Integer, Doc: "runs of records that are sorted inside",
			Cell: func(s shown) any { return s.Stats.Groups }},
		{Name: "modules", Kind: results.Integer,
			Doc: "modules with records", Cell: func(s shown) any { return s.Modules }},
		{Name: "module_share", Kind: results.Number, Doc: "share of records that live in modules",
			Cell: func(s shown) any { return s.ModuleShare() }},
		{Name: "order_breaks", Kind: results.Integer, Doc: "records whose address is lower than their predecessor's",
			Cell: func(s shown) any { return s.OrderBreaks }},
	},
	results.Columns[shown]{
		{Name: "spacing_min_bytes", Kind: results.Integer, Doc: "between neighbours by address, least",
			Cell: func(s shown) any { return s.SpacingMin }},
		{Name: "spacing_median_bytes", Kind: results.Integer,
			Doc: "median", Cell: func(s shown) any { return s.SpacingMedian }},
		{Name: "spacing_max_bytes", Kind: results.Integer,
			Doc: "most", Cell: func(s shown) any { return s.SpacingMax }},
	}.When(func(s shown) bool { return s.Records > 1 }),
	results.Columns[shown]{
		{Name: "span_bytes", Kind: results.Integer,
			Doc: "from the lowest record to the highest", Cell: func(s shown) any { return s.Span }},
		{Name: "misaligned_share", Kind: results.Number, Cell: func(s shown) any { return s.MisalignedShare() },
			Doc: "share of records that are not 4 past a multiple of 8, where literals need that"},
	},
)

// sheets are the formats that tables can be converted to.
var sheets = map[string]struct {
	file    string
	columns []results.Column
	write   func(io.Writer, *records.Table) error
}{
	"csv": {"records.csv", []results.Column{
		{Name: "address", Doc: "of the record"},
		{Name: "symbol", Doc: "that it lies in"},
		{Name: "module", Doc: "that it lives in; empty in the core kernel"},
		{Name: "group", Kind: results.Integer, Doc: "run of records that is sorted inside, from 0"},
	}, records.WriteCSV},
	"addrs": {"records.txt", []results.Column{}, records.WriteAddrs},
}

func recordsConvert(c *common, opt *records.Options) *cobra.Command {
	var to string
	names := []string{"csv", "addrs"}
	cmd := &cobra.Command{
		Use: "convert SRC", Short: "write a table in another format to stdout", Args: cobra.ExactArgs(1),
		Example: "  textpoke records convert x86_64-6.12 --to csv\n" +
			"  textpoke records convert available_filter_functions --kallsyms kallsyms --arch arm64",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := named("to", to, names, identity); err != nil {
				return err
			}
			if cmd.Flags().Changed("format") && c.format.String() != to {
				return fmt.Errorf("--format %s: the format of convert is chosen by --to", c.format)
			}
			t, err := c.openRecords(cmd, args[0], opt)
			if err != nil {
				return err
			}
			return c.convert(t, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "csv", "`format`: csv, or addrs (as the kernel's available_filter_functions_addrs)")
	offer(cmd, "to", names)
	return cmd
}

// convert writes a table, also under --out.
func (c *common) convert(t *records.Table, to string) error {
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	sheet := sheets[to]
	w := bufio.NewWriter(c.streams.out)
	if err := sheet.write(w, t); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	if f == nil {
		return nil
	}
	if err := f.dir.Write(sheet.file, func(w io.Writer) error { return sheet.write(w, t) }); err != nil {
		return err
	}
	f.manifest.Files = append(f.manifest.Files, results.ManifestFile{Name: sheet.file, Rows: t.Len(),
		Columns: sheet.columns})
	return f.close(true)
}
