// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// Hints about mistyped names, and the quoting of commands that repeat a run.
var (
	nearest  = spelling.Hint
	notOneOf = spelling.NotOneOf
	quote    = sim.ShellQuote
)

// flagError words the flag parser's complaints as those about values are.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var valid []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { valid = append(valid, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("no flag %s%s", name, nearest(name, valid))
	case errors.As(err, &invalid):
		f, want := invalid.GetFlag(), invalid.Unwrap().Error()
		if f.Value.Type() == "bool" {
			want = "want true or false"
		}
		return fmt.Errorf("--%s %q: %s", f.Name, invalid.GetValue(), want)
	}
	return err
}

// declarations are the flags of commands: what they have below NAME: is declared as [choice.ParseDeclared] says.
//
//go:embed flags.txt
var declarations string

// declared are the flags below a name. The texts of said take the places of %s.
func declaredFlags(name string, said ...any) (out []choice.Declared) {
	for _, line := range strings.Split(fmt.Sprintf(strings.Join(inputs.Below(declarations, name), "\n"), said...), "\n") {
		d, err := choice.ParseDeclared(line)
		if err != nil {
			panic(fmt.Sprintf("flags.txt: %s: %v", name, err))
		}
		out = append(out, d)
	}
	return out
}

// fields are the choices that are declared below a name, for variables of a struct.
func fields(name string, of any, said ...any) []*choice.Field {
	return spelling.Each(declaredFlags(name, said...),
		func(d choice.Declared) *choice.Field { return d.Of(d.Variable(of)) })
}

// declare adds the flags that are declared below a name, for variables of a struct. One that has a value has that as its
// default. It hands the command back.
func declare(cmd *cobra.Command, name string, of any, said ...any) *cobra.Command {
	f := cmd.Flags()
	for _, d := range declaredFlags(name, said...) {
		switch to := d.Variable(of).(type) {
		case *[]string:
			if d.Repeated {
				f.StringArrayVar(to, d.Name, nil, d.Doc)
				continue
			}
			f.StringSliceVar(to, d.Name, strings.FieldsFunc(d.Default, func(r rune) bool { return r == ',' }), d.Doc)
		default:
			add(cmd, d.Of(to))
		}
		if d.Required {
			_ = cmd.MarkFlagRequired(d.Name) // it has just been added
		}
	}
	return cmd
}

// together refuses choices of a command that flags.txt says do not go together.
func together(asked choice.Request) error {
	for _, line := range inputs.Below(declarations, asked.Name+" goes") {
		rule, why, told := strings.Cut(line, " : ")
		words := strings.Fields(rule)
		names, how, other := words[:len(words)-2], words[len(words)-2], words[len(words)-1]
		flag, value, one := strings.Cut(other, "=")
		there := asked.Has(flag) && (!one || slices.Contains(asked.Config[flag], value))
		for _, name := range names {
			if asked.Has(name) && there != (how == "with") {
				if told {
					why = ": " + why
				}
				return fmt.Errorf("--%s goes %s --%s%s", name, how, strings.Replace(other, "=", " ", 1), why)
			}
		}
	}
	return nil
}

// completed are the names that can stand where a shell is, also behind the commas of a
// list, each with the typed text before it.
func completed(names []string, typed string) (out []string) {
	at := strings.LastIndexByte(typed, ',') + 1
	before := strings.Split(typed[:at], ",")
	for _, name := range names {
		if strings.HasPrefix(name, typed[at:]) && !slices.Contains(before, name) {
			out = append(out, typed[:at]+name)
		}
	}
	return out
}

// offerArgs lets the shell complete a command's arguments, by names or by files.
func offerArgs(cmd *cobra.Command, names func() []string) *cobra.Command {
	cmd.ValidArgsFunction = func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completed(names(), typed), cobra.ShellCompDirectiveDefault
	}
	return cmd
}

// add adds a flag for each choice, with its default, its help and what shells complete.
func add(cmd *cobra.Command, fields ...*choice.Field) { addTo(cmd.Flags(), cmd, fields...) }

// addTo adds the flags to a set of the command's.
func addTo(set *pflag.FlagSet, cmd *cobra.Command, fields ...*choice.Field) {
	if err := choice.Complete(fields); err != nil {
		panic(err) // a default of ours
	}
	flags.Bind(set, fields...)
	for _, f := range fields {
		complete(cmd, &f.Spec)
	}
}

// complete lets the shell complete the values of a choice, beside files where it may name them.
func complete(cmd *cobra.Command, s *choice.Spec) {
	if s.Offers == nil && len(s.Names) == 0 {
		return
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if s.NamesFile != nil {
		directive = cobra.ShellCompDirectiveDefault
	}
	// The flag was added by the caller, unless it stands elsewhere.
	_ = cmd.RegisterFlagCompletionFunc(s.Name, func(_ *cobra.Command, _ []string, typed string) ([]string,
		cobra.ShellCompDirective) {
		return completed(s.Completions(), typed), directive
	})
}

// offer lets the shell complete a flag's values.
func offer(cmd *cobra.Command, flag string, names func() []string) {
	complete(cmd, &choice.Spec{Name: flag, Offers: names})
}

// offerFiles lets the shell complete a flag's values, names or files.
func offerFiles(cmd *cobra.Command, flag string, names func() []string) {
	complete(cmd, &choice.Spec{Name: flag, Offers: names, NamesFile: choice.AnyFile})
}

// offerColumns lets the shell complete --columns by the columns of the command at hand.
func (c *common) offerColumns(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("columns", func(cmd *cobra.Command, _ []string, typed string) ([]string,
		cobra.ShellCompDirective) {
		names := []string{"all"}
		for _, t := range c.tables[cmd] {
			for _, column := range t.Columns {
				if !slices.Contains(names, column.Name) {
					names = append(names, column.Name, "+"+column.Name)
				}
			}
		}
		return completed(names, typed), cobra.ShellCompDirectiveNoFileComp
	})
}

// short are the letters of the flags that are typed most.
var short = map[string]string{
	"arch": "a", "buffer": "b", "cpus": "c", "mutate": "m", "protocol": "p", "records": "r", "sites": "s",
}

// addAxes adds a flag for each axis, with its help and what shells complete.
func addAxes[C any](cmd *cobra.Command, axes axis.Table[C]) {
	f := cmd.Flags()
	for i := range axes {
		a := &axes[i]
		switch a.Form {
		case axis.List:
			f.StringSliceP(a.Name, short[a.Name], a.Presets(), a.Usage())
		case axis.Repeat:
			f.StringArrayP(a.Name, short[a.Name], a.Presets(), a.Usage())
		case axis.One:
			f.StringP(a.Name, short[a.Name], a.Default, a.Usage())
		case axis.Switch:
			f.Bool(a.Name, false, a.Usage())
		}
		complete(cmd, &a.Spec)
	}
}

// chosen are the choices of a request that are of axes.
func chosen[C any](asked choice.Request, axes axis.Table[C]) axis.Choices {
	choices := axis.Choices{}
	for _, a := range axes {
		if texts := asked.Config[a.Name]; texts != nil && a.Form != axis.Elsewhere {
			choices[a.Name] = texts
		}
	}
	return choices
}
