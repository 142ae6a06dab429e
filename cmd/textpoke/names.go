package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type pflagFlag = pflag.Flag

// nearest proposes the name that was probably meant, as ": did you mean X?".
func nearest(name string, valid []string) string {
	best, distance := "", len(name)/2+2
	for _, v := range valid {
		d := levenshtein.ComputeDistance(name, v)
		if strings.HasPrefix(v, name) && name != "" {
			d = 0
		}
		if d < distance {
			best, distance = v, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// named checks a flag's value against the valid names before parse sees it.
func named[T any](flag, value string, valid []string, parse func(string) (T, error)) (T, error) {
	if !slices.Contains(valid, value) {
		var zero T
		return zero, fmt.Errorf("--%s %q: not one of %s%s", flag, value, strings.Join(valid, ", "), nearest(value, valid))
	}
	return parse(value)
}

// namedList does so for each value of a list.
func namedList[T any](flag string, values, valid []string, parse func(string) (T, error)) ([]T, error) {
	return list(flag, values, func(s string) (T, error) { return named(flag, s, valid, parse) })
}

// list parses each value of a list flag.
func list[T any](flag string, values []string, parse func(string) (T, error)) ([]T, error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("--%s: empty list", flag)
	}
	var out []T
	for _, s := range values {
		v, err := parse(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--") {
				err = fmt.Errorf("--%s: %w", flag, err)
			}
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// identity is the parse of flags whose values are their names.
func identity(s string) (string, error) { return s, nil }

// suggestFlag adds the nearest flag to cobra's message about an unknown one.
func suggestFlag(cmd *cobra.Command, err error) error {
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	var valid []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { valid = append(valid, f.Name) })
	if near := nearest(name, valid); near != "" {
		return fmt.Errorf("%w%s", err, strings.Replace(near, "mean ", "mean --", 1))
	}
	return err
}
