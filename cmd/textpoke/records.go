// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

// recordsFlags say which table a command is about, and which records of it.
type recordsFlags struct {
	records.Options
	filter []string
}

func recordsCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "records"}
	var r recordsFlags
	f := cmd.PersistentFlags()
	flags.Bind(f, fields("records", &r, strings.Join(cpus.ArchNames(), "|"))...)
	f.StringArrayVar(&r.filter, "filter", nil, "only records that match this `pattern` of the kernel's filter syntax, such as "+
		"vfs_*, :mod:ext4 or !tcp_*; again for more")
	offer(cmd, "arch", cpus.ArchNames)
	cmd.AddCommand(recordsList(c, &r), offerArgs(recordsShow(c, &r), records.BuiltinNames),
		offerArgs(recordsConvert(c, &r), records.BuiltinNames))
	return cmd
}

// open opens the table that a command is about.
func (r *recordsFlags) open(ctx context.Context, c *common, src string) (*records.Table, error) {
	if err := c.kallsyms(r.Kallsyms); err != nil {
		return nil, err
	}
	filter, err := records.ParseFilter(r.filter)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	c.note(src)
	t, err := records.Open(ctx, src, r.Options)
	if err != nil {
		return nil, err
	}
	return filter.Only(t)
}

// builtinColumns are the columns of the list of built-in tables.
var builtinColumns = results.Declare[records.Builtin](declared, "builtin", nil)

// matched is a record that a filter chooses.
type matched struct {
	*records.Table
	record int
}

// matchedColumns are the columns of the records that a filter chooses.
var matchedColumns = results.Declare(declared, "matched", map[string]func(matched) any{
	"address": func(m matched) any { return fmt.Sprintf("%#x", uint64(m.Addr(m.record))) },
	"symbol":  func(m matched) any { return m.Symbol(m.record) },
	"module":  func(m matched) any { return results.OrEmpty(m.Module(m.record)) },
})

func recordsList(c *common, r *recordsFlags) *cobra.Command {
	cmd := c.prints(newCommand("list", func(cmd *cobra.Command, _ []string) error {
		if r.filter != nil {
			return r.listMatched(cmd.Context(), c)
		}
		return printRows(cmd.Context(), c, builtinColumns, "records", records.Builtins())
	}), "", builtinColumns.Table("records"))
	return c.prints(cmd, "with --filter", matchedColumns.Table("matched"))
}

// listMatched lists the records of the built-in tables that match. No match in any table is an error.
func (r *recordsFlags) listMatched(ctx context.Context, c *common) error {
	var all []matched
	for _, b := range records.Builtins() {
		if r.Arch != "" && r.Arch != b.Arch {
			continue
		}
		t, err := r.open(ctx, c, b.Name)
		if err != nil && !errors.Is(err, records.ErrNoMatch) {
			return err
		}
		for i := 0; err == nil && i < t.Len(); i++ {
			all = append(all, matched{t, i})
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("--filter: %w %q in any built-in table", records.ErrNoMatch, strings.Join(r.filter, " "))
	}
	return printRows(ctx, c, matchedColumns, "matched", all)
}

func recordsShow(c *common, r *recordsFlags) *cobra.Command {
	return c.prints(newCommand("show SRC", func(cmd *cobra.Command, args []string) error {
		t, err := r.open(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return printRows(cmd.Context(), c, shownColumns, "records", []shown{{t, t.Stats()}})
	}), "", shownColumns.Table("records"))
}

// shown is a table and its statistics.
type shown struct {
	*records.Table
	records.Stats
}

// Spaced tells whether there are neighbours.
func (s shown) Spaced() bool { return s.Records > 1 }

// shownColumns are the columns of a table's statistics.
var shownColumns = results.Declare[shown](declared, "shown", nil)

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

func recordsConvert(c *common, r *recordsFlags) *cobra.Command {
	var w struct{ to string }
	cmd := newCommand("convert SRC", func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("format") && c.format.String() != w.to {
			return fmt.Errorf("--format %s: the format of convert is chosen by --to", c.format)
		}
		t, err := r.open(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return c.convert(t, w.to)
	})
	return declare(cmd, "records convert", &w)
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
