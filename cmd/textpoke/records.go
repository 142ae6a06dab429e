package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

func recordsCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "records", Short: "tables of patchable call sites: list, show, convert"}
	var opt records.Options
	cmd.PersistentFlags().StringVar(&opt.Kallsyms, "kallsyms", "", "`file` with the addresses for a list of functions without")
	cmd.PersistentFlags().StringVar(&opt.Arch, "arch", "", "instruction set, where the source does not tell")
	cmd.AddCommand(recordsList(c), recordsShow(c, &opt), recordsConvert(c, &opt))
	for _, sub := range cmd.Commands() {
		sub.Args = exactly(sub.Args, sub.Use)
	}
	return cmd
}

// exactly words cobra's complaint about the number of arguments for people.
func exactly(args cobra.PositionalArgs, use string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if err := args(cmd, a); err != nil {
			return fmt.Errorf("usage: %s", cmd.Parent().CommandPath()+" "+use)
		}
		return nil
	}
}

func recordsList(c *common) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "the built-in tables", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := results.Table{Name: "records", Columns: []results.Column{
				{Name: "name", Doc: "for --records"},
				{Name: "arch", Doc: "instruction set"},
				{Name: "kernel", Doc: "version that the table was read from"},
				{Name: "records", Doc: "patchable call sites"},
				{Name: "about", Doc: "where it comes from"},
			}}
			for _, b := range records.Builtins() {
				if err := t.Add(b.Name, b.Arch, b.Kernel, b.Records, b.About); err != nil {
					return err
				}
			}
			return results.Write(c.streams.out, c.format, t)
		},
	}
}

func recordsShow(c *common, opt *records.Options) *cobra.Command {
	return &cobra.Command{
		Use: "show SRC", Short: "what is in a table: counts, groups, spacing, modules, order breaks", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := records.Open(cmd.Context(), args[0], *opt)
			if err != nil {
				return err
			}
			return results.Write(c.streams.out, c.format, statsTable(t))
		},
	}
}

// statsTable has one row.
func statsTable(t *records.Table) results.Table {
	s := t.Stats()
	out := results.Table{Name: "records", Columns: []results.Column{
		{Name: "name", Doc: "as asked for"},
		{Name: "arch", Doc: "instruction set, where the source tells"},
		{Name: "records", Doc: "patchable call sites"},
		{Name: "groups", Doc: "runs of records that are sorted inside"},
		{Name: "modules", Doc: "modules with records"},
		{Name: "module_share", Doc: "share of records that live in modules"},
		{Name: "order_breaks", Doc: "records whose address is lower than their predecessor's"},
		{Name: "spacing_min_bytes", Doc: "between neighbours by address, least"},
		{Name: "spacing_median_bytes", Doc: "median"},
		{Name: "spacing_max_bytes", Doc: "most"},
		{Name: "span_bytes", Doc: "from the lowest record to the highest"},
		{Name: "misaligned_share", Doc: "share of records that are not 4 past a multiple of 8, where literals need that"},
	}}
	arch := results.Empty
	if t.Arch() != "" {
		arch = results.String(t.Arch())
	}
	spacing := []any{results.Empty, results.Empty, results.Empty}
	if s.Records > 1 {
		spacing = []any{s.SpacingMin, s.SpacingMedian, s.SpacingMax}
	}
	cells := append([]any{t.Name(), arch, s.Records, s.Groups, s.Modules, s.ModuleShare(), s.OrderBreaks}, spacing...)
	// The columns stand right above: a row that does not fit them cannot happen.
	_ = out.Add(append(cells, s.Span, s.MisalignedShare())...)
	return out
}

func recordsConvert(c *common, opt *records.Options) *cobra.Command {
	var to string
	writers := map[string]func(io.Writer, *records.Table) error{"csv": records.WriteCSV, "addrs": records.WriteAddrs}
	cmd := &cobra.Command{
		Use: "convert SRC", Short: "write a table in another format to stdout", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := named("to", to, []string{"csv", "addrs"}, identity); err != nil {
				return err
			}
			t, err := records.Open(cmd.Context(), args[0], *opt)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(c.streams.out)
			if err := writers[to](w, t); err != nil {
				return err
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVar(&to, "to", "csv", "format: csv, or addrs (as the kernel's available_filter_functions_addrs)")
	return cmd
}
