// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
)

// shardField is the choice of a part of what a command goes through.
func shardField(c *common) *choice.Field {
	return choice.One(&c.shard, "shard", "",
		"do only part `i/n` of it, i from 0: the i-th point and every n-th after it; /n takes i from "+
			"JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID. See merge",
		choice.Kind[points.Shard]{Type: "i/n", Parse: points.ParseShard, Format: points.Shard.String})
}

// divide notes which part of n points, with so many rows each, the files will hold.
func (c *common) divide(n, rows int) {
	if c.shard.Of > 0 {
		c.part = &results.Part{Index: c.shard.Index, Of: c.shard.Of, Points: n, Rows: rows}
	}
}

// divided are the points of this shard, with a row each.
func divided[T any](c *common, all []T) (mine []T) {
	c.divide(len(all), 1)
	return spelling.Each(c.shard.Points(len(all)), func(i int) T { return all[i] })
}

// mergedColumns are the columns of what merge has written.
var mergedColumns = results.Declare[results.ManifestFile](declared, "merged", nil)

func mergeCommand(c *common) *cobra.Command {
	return c.prints(newCommand("merge DIR...", func(cmd *cobra.Command, dirs []string) error {
		if c.out == "" {
			return errors.New("--out \"\": want the directory that the tables go to")
		}
		whole, err := points.Merge(dirs, append(process, "shard")...)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if same, _ := files.Same(dir, c.out); same {
				return fmt.Errorf("--out %s: it is one of the shards, which would be lost", c.out)
			}
		}
		return c.write(cmd, whole)
	}), "", mergedColumns.Table("merged"))
}

// write writes what shards make together, the manifest last, and answers as they did.
func (c *common) write(cmd *cobra.Command, whole *points.Whole) error {
	dir, err := results.OpenDir(c.out)
	if err != nil {
		return err
	}
	if err := whole.Write(dir); err != nil {
		return err
	}
	all := strings.HasPrefix(strings.Join(whole.Manifest.Args, " "), "textpoke experiment all")
	if all {
		if err := gather(c.out, whole); err != nil {
			return err
		}
	}
	if err := dir.WriteManifest(whole.Manifest); err != nil {
		return err
	}
	if all {
		if err := c.writePage(c.out, filepath.Join(c.out, reportName)); err != nil {
			return err
		}
	}
	own := *c
	own.out = "" // that directory is the sweep's
	if err := printRows(cmd.Context(), &own, mergedColumns, "merged", whole.Manifest.Files); err != nil {
		return err
	}
	switch whole.Manifest.Exit {
	case exitDone:
		return nil
	case exitCut:
		return errCut
	}
	return errNo
}

// gather copies the directories of experiments, which their rows name, and puts the index
// together.
func gather(out string, whole *points.Whole) error {
	n, index := len(whole.Dirs), ""
	for i, row := range whole.Tables[0].Rows {
		from, name := whole.Dirs[i%n], row[0].String()
		if err := copyFiles(filepath.Join(from, name), filepath.Join(out, name)); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		text, err := os.ReadFile(filepath.Join(from, indexName))
		if err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		sections := strings.Split(string(text), indexSection)
		if len(sections) < 2+i/n {
			return fmt.Errorf("merge: %s: no section about %s", filepath.Join(from, indexName), name)
		}
		if i == 0 {
			index = sections[0]
		}
		index += indexSection + sections[1+i/n]
	}
	dir, err := results.OpenDir(out)
	if err != nil {
		return err
	}
	return dir.Write(indexName, files.From(strings.NewReader(index)))
}

// copyFiles copies the files of a directory.
func copyFiles(from, to string) error {
	all, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	dir, err := results.OpenDir(to)
	if err != nil {
		return err
	}
	for _, f := range all {
		r, err := os.Open(filepath.Join(from, f.Name()))
		if err == nil {
			err = errors.Join(dir.Write(f.Name(), files.From(r)), r.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
