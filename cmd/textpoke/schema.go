// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

func schemaCommand(c *common) *cobra.Command {
	cmd := newCommand("schema [COMMAND...]", func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		if len(args) == 0 {
			return c.writeSchema(c.allSchemas(root))
		}
		about, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 || len(c.schemas(about)) == 0 {
			names, _ := cmd.ValidArgsFunction(cmd, nil, "")
			return notOneOf(strings.Join(args, " "), names)
		}
		return c.writeSchema(c.schemaOf(about))
	})
	return offerArgs(cmd, func() []string {
		return spelling.Each(c.allSchemas(cmd.Root()).Defs, func(p results.Property) string { return p.Name })
	})
}

// schemas are those of the tables that a command writes as JSON.
func (c *common) schemas(cmd *cobra.Command) (all []results.Schema) {
	for _, t := range c.tables[cmd] {
		if t.when == forPeople {
			continue
		}
		s := results.SchemaOf(t.Table)
		s.Title = strings.TrimSpace(cmd.CommandPath() + " " + t.when)
		all = append(all, s)
	}
	return all
}

// schemaOf is the schema of a command, which has a table at least.
func (c *common) schemaOf(cmd *cobra.Command) results.Schema {
	all := c.schemas(cmd)
	if len(all) == 1 {
		return all[0]
	}
	return results.Schema{Title: cmd.CommandPath(), AnyOf: all}
}

// allSchemas are those of a command and of all below it.
func (c *common) allSchemas(cmd *cobra.Command) (all results.Schema) {
	if len(c.schemas(cmd)) > 0 {
		name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		all.Defs = append(all.Defs, results.Property{Name: name, Schema: c.schemaOf(cmd)})
	}
	for _, sub := range cmd.Commands() {
		all.Defs = append(all.Defs, c.allSchemas(sub).Defs...)
	}
	return all
}

func (c *common) writeSchema(s results.Schema) error {
	s.Dialect = results.SchemaDialect
	e := json.NewEncoder(c.streams.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
